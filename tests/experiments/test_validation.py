"""The comparison with measured runs: its scores are what they say, and the runs at hand are met as told."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

import servesim
from experiments.validation.__main__ import HERE, in_markdown, main, rows, write
from experiments.validation.requests import llm_d, rtx_pro_6000
from experiments.validation.score import Errors, Part, Score, headline
from experiments.validation.static import splitwise
from experiments.validation.steps import CONF, sarathi
from tests.shared import shared_data


@pytest.mark.parametrize("path", sorted((HERE / "conf").glob("*/*.yaml")), ids=lambda path: path.stem)
def test_every_configuration_of_its_own_is_built(path: Path) -> None:
    own = [f"{path.parent.name}={path.stem}"]
    if path.stem == "yi-34b":
        own += ["cluster.tensor_parallel_size=2"]
    scenario = servesim.load(*own, config_dir=CONF)
    part = getattr(scenario, path.parent.name)
    assert part.name == path.stem == yaml.safe_load(path.read_text())["name"]


def test_errors_are_of_what_both_sides_know() -> None:
    nan = float("nan")
    errors = Errors.of([1.1, 0.9, nan, 5.0], [1.0, 1.0, 1.0, nan])
    assert (errors.n, errors.size, errors.bias) == pytest.approx((2, 0.1, 0.0))
    assert str(errors) == "10.0% (+0.0%)"
    assert str(Errors.of([0.9], [1.0])) == "-10.0%"


def test_a_bound_is_kept_up_to_its_size_and_not_beyond() -> None:
    def verdict(simulated: float, bound: float | None) -> str:
        return Score("runs", "figure", None, Errors.of([simulated], [1.0]), "terms", bound).verdict

    assert verdict(1.09, 0.1) == verdict(0.91, 0.1) == "within 10%"
    assert verdict(1.11, 0.1) == verdict(0.89, 0.1) == "NOT within 10%"
    assert verdict(9.0, None) == ""


def test_tables_have_a_cell_for_every_column() -> None:
    part = Part(
        "a set",
        [Score("runs", "figure", None, Errors.of([1.0], [1.0]), "terms")],
        {"rows": pd.DataFrame({"name": ["x"], "figure": [float("nan")]})},
    )
    assert {line.count("|") for line in headline([part])} == {8}
    assert in_markdown(part.tables["rows"]).splitlines() == ["| name | figure |", "| --- | --: |", "| x |  |"]
    assert list(rows([part]))[:2] == ["## a set", "rows:"]


def test_what_is_written_stands_between_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("before\n<!-- tables -->\nold\n<!-- end of the tables -->\nafter\n")
    write(path, "new")
    assert path.read_text() == "before\n<!-- tables -->\n\nnew\n\n<!-- end of the tables -->\nafter\n"
    path.write_text("no marks\n")
    with pytest.raises(ValueError, match="needs its two marks"):
        write(path, "new")


def test_a_folder_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "DATA" in capsys.readouterr().err


def judged(part: Part) -> dict[str, str]:
    """Return the verdicts of what is judged, by what it is of."""
    return {f"{score.runs}: {score.figure}": score.verdict for score in part.scores if score.bound}


def test_a_queue_that_was_measured_is_met_with_nothing_fitted_on_it() -> None:
    part = rtx_pro_6000(shared_data("serving"))
    assert set(judged(part).values()) == {"within 15%", "within 5%"}
    ((_, counts),) = [item for item in part.tables.items() if "running" in item[0]]
    for name, most in (("running", 8), ("waiting", 10)):
        assert (counts[f"{name}, simulated"] - counts[f"{name}, measured"]).abs().mean() <= most


def test_two_replicas_of_70b_are_met_but_for_what_a_cache_saved() -> None:
    part = llm_d(shared_data("serving"))
    verdicts = judged(part)
    assert [name for name, verdict in verdicts.items() if "NOT" in verdict] == [
        "vLLM about 0.8.5, Llama-3.1-70B BF16, 2 x TP2 H100, sharegpt: p50 TPOT"
    ]
    assert len(verdicts) == 3


def test_prefill_steps_of_another_stack_are_met() -> None:
    assert all(verdict.startswith("within") for verdict in judged(sarathi(shared_data("serving"))).values())


@pytest.mark.slow
def test_batches_of_an_old_stack_differ_by_their_gpu_as_simulated() -> None:
    ratio = next(
        score for score in splitwise(shared_data("serving")).scores if "ratio of prompt" in score.figure
    )
    assert ratio.errors.size < 0.2


def test_the_answer_holds_a_score_of_every_set() -> None:
    answer = (HERE / "README.md").read_text()
    table = answer.partition("<!-- tables -->")[2].partition("<!-- end")[0]
    for name in (
        "Qwen3-32B",
        "TensorRT-LLM",
        "RTX PRO 6000",
        "sharegpt",
        "10,000 in",
        "Sarathi",
        "Splitwise",
    ):
        assert f"{name}" in table
