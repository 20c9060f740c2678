"""Loading: every shipped option builds, and every mistake is listed."""

import itertools
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servesim import ConfigError, load
from servesim.check import Problem
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.config.groups import Groups, conf_dir
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.workload.arrivals import Gamma, Poisson

GROUPS = Groups.of(None)
CHOICES = [
    (group, option)
    for group in sorted(
        path.relative_to(conf_dir()).as_posix() for path in conf_dir().rglob("*") if path.is_dir()
    )
    for option in GROUPS.options(group)
    if option != "trace"  # names no file until the user does
]


def faults(*overrides: str, **more: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(*overrides, **more)
    return [str(problem) for problem in caught.value.problems]


def test_the_default_is_a_70b_on_one_node_under_continuous_batching() -> None:
    scenario = load()
    assert (scenario.model.name, scenario.model.weights_dtype, scenario.gpu.name) == (
        "llama3.1-70b",
        "fp8",
        "h100-sxm",
    )
    assert isinstance(scenario.scheduler, Continuous)
    assert scenario.cluster == Pool(replicas=2, tensor_parallel_size=4, gpus_per_node=8)
    assert isinstance(scenario.workload.arrivals, Poisson)  # type: ignore[union-attr]
    assert scenario.calibration.name == "auto"
    assert scenario.engine_overhead is not None
    assert scenario.engine_overhead.name == "vllm-0.12"


@pytest.mark.parametrize(("group", "option"), [choice for choice in CHOICES if choice[0] != "experiment"])
def test_every_shipped_option_builds(group: str, option: str) -> None:
    beside = {
        "cluster": f"scheduler={option}",
        "transfer_overhead": "scheduler=disaggregated",
        "workload/turns": "workload=sessions",
    }
    place = "@cluster.transfer.overhead" if group == "transfer_overhead" else ""
    load(f"{group}{place}={option}", beside.get(group, "seed=1"), "ignore_capacity=true")


def test_every_group_has_a_default_that_a_folder_offers() -> None:
    assert {group for group, _ in CHOICES} >= {
        "model",
        "gpu",
        "scheduler",
        "cluster",
        "router",
        "workload/lengths",
    }


def test_overrides_reach_their_fields() -> None:
    scenario = load(
        "scheduler=static",
        "scheduler.batch_size=8",
        "workload/arrivals=gamma",
        "workload.arrivals.burstiness=2",
    )
    assert isinstance(scenario.scheduler, Static)
    assert scenario.scheduler.batch_size == 8
    assert scenario.workload.arrivals == Gamma(4.0, 2)  # type: ignore[union-attr]


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert load("workload.requests=1e6").workload.requests == 1_000_000


def test_pools_follow_the_gpu_unless_they_name_their_own() -> None:
    scenario = load(
        "scheduler=disaggregated",
        "gpu.usd_per_hour=2",
        "cluster.prefill.gpu=h200-sxm",
        "cluster.decode.gpu.max_w=500",
    )
    assert isinstance(scenario.cluster, PrefillDecode)
    prefill, decode = scenario.cluster.prefill.gpu, scenario.cluster.decode.gpu
    assert prefill is not None
    assert decode is not None
    assert prefill.name == "h200-sxm"
    assert (decode.name, decode.usd_per_hour, decode.max_w) == ("h100-sxm", 2, 500)
    assert load("scheduler=disaggregated").cluster.prefill.gpu is None  # type: ignore[union-attr]


def test_everything_wrong_is_listed_at_once() -> None:
    found = faults(
        "gpu=mi300x",
        "schedulr=x",
        "scheduler.max_num_seq=3",
        "workload.arrivals.rate_rps=0",
        "seed=-1",
        "oops",
    )
    assert [line.partition(":")[0] for line in found] == [
        "gpu = 'mi300x'",
        "oops",
        "schedulr = 'x'",
        "scheduler.max_num_seq = 3",
        "workload.arrivals.rate_rps = 0",
        "seed = -1",
    ]
    assert "did you mean scheduler.max_num_seqs?" in found[3]
    assert "at least 1e-09 and at most 1e+09 (requests/s)" in found[4]


def test_what_does_not_fit_together_is_listed_beside_what_is_wrong_alone() -> None:
    found = faults("workload.arrivals.rate_rps=0", "cluster.tensor_parallel_size=3", "slo.ttft_s=-1", "sed=1")
    paths = [line.partition(" ")[0] for line in found]
    assert set(paths) == {"workload.arrivals.rate_rps", "cluster.tensor_parallel_size", "slo.ttft_s", "sed"}


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "-inf", "null", "fast", "[1]", "true", "{a: 1}"])
def test_a_rate_is_a_finite_positive_number(rate: str) -> None:
    (line,) = faults(f"workload.arrivals.rate_rps={rate}")
    assert line.startswith("workload.arrivals.rate_rps")
    assert line.endswith("(requests/s)")


@pytest.mark.parametrize(
    ("override", "path"),
    [
        ("model.num_local_experts=8", "model.num_local_experts"),
        ("cluster.pipeline_parallel_size=2", "cluster.pipeline_parallel_size"),
        ("cluster.data_parallel_size=2", "cluster.data_parallel_size"),
        ("cluster.enable_expert_parallel=true", "cluster.enable_expert_parallel"),
        ("cluster.expert_parallel_size=2", "cluster.expert_parallel_size"),
        ("model.moe_intermediate_size=2", "model.moe_intermediate_size"),
    ],
)
def test_what_comes_later_is_refused_in_a_clear_sentence(override: str, path: str) -> None:
    (line,) = faults(override)
    assert line.startswith(f"{path} = ")
    assert "not modelled in this version" in line


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["scheduler=static", "scheduler.max_num_seqs=8"], "batch_size"),
        (["scheduler=disaggregated", "cluster.replicas=4"], "cluster.prefill.replicas"),
        (["cluster.prefill.replicas=4"], "scheduler=disaggregated"),
        (["scheduler.num_speculative_tokens=2"], "scheduler/speculation=ngram"),
        (["speculative_config=x"], "scheduler/speculation=NAME"),
        (["scheduler=static", "scheduler/speculation=ngram"], "'ngram': static batching decodes one token"),
        (
            ["scheduler.speculation.num_speculative_tokens=2"],
            "choose scheduler/speculation=ngram, draft_model, eagle, eagle3 or mtp first",
        ),
        (["workload=sessions", "workload.turns.count=4"], "choose workload/turns=fixed"),
        (["router=sticky"], "there is no such option; they are kv_aware, "),
        (["model=deepseek-v3"], "there is no such option; they are codellama-34b, "),
        (["scheduler/speculation=ngram", "scheduler.max_num_seqs=2000"], "scheduler.max_num_seqs=1638"),
        (["scheduler/speculation=draft_model", "scheduler.speculation.model=qwen3-32b"], "128256"),
        (["scheduler/speculation=mtp", "scheduler.speculation.acceptance=1.5"], "at most 1"),
        (["scheduler/speculation=mtp", "scheduler/queue_order=fair"], "counts a token per step"),
        (["scheduler/speculation=mtp", "scheduler.prefill_policy=decode_first"], "must be stall_free"),
        (["cluster.prefill.gpu=h200-sxm"], "not part of the configuration chosen here"),
        (["workload.arrivals.burstiness=2"], "workload/arrivals=gamma"),
        (["workload.arrivals=gamma"], "workload/arrivals=NAME"),
        (["rate=3"], "did you mean workload.arrivals.rate_rps?"),
        (["sead=3"], "did you mean seed?"),
        (["max_seqs=3"], "did you mean scheduler.max_num_seqs?"),
        (["scheduler=continous"], "did you mean continuous?"),
        (["rate_rps=3"], "did you mean workload.arrivals.rate_rps?"),
        (["cluster.tensor_parallel_size=3"], "64 query heads"),
        (["model=llama3.1-405b", "cluster.tensor_parallel_size=1"], "weights"),
        (["gpu.nvlink_bytes_per_s=0"], "bytes/s"),
        (["scheduler.max_model_len=100000000"], "max_model_len"),
        (["workload=trace"], "workload.path: is missing (the path of a trace file)"),
        (["workload=trace", "workload.path=/nowhere/a b,(c)=d.csv"], "no such file"),
        (["~gpu.idle_w"], "gpu.idle_w: is missing"),
        (["seed=${nothing}"], "nothing"),
        (["+seed=3"], "seed"),
        (["hydra.nothing=3"], "hydra.nothing"),
    ],
)
def test_each_mistake_is_told_with_a_way_out(overrides: list[str], words: str) -> None:
    assert words in faults(*overrides)[0]


def test_the_arrivals_of_a_trace_are_told_beside_the_rest() -> None:
    found = faults("workload=trace", "workload/arrivals=gamma", "workload/lengths=code", "seed=x")
    assert [line.partition(" ")[0] for line in found] == [
        "workload/arrivals",
        "workload/lengths",
        "workload.path:",
        "seed",
    ]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("seed=${nothing}", "seed = '${nothing}': Interpolation key 'nothing' not found"),
        ("+gpu=h100-sxm", "gpu = 'h100-sxm': gpu appears more than once"),
        ("~nonsense", "nonsense: Could not delete from config."),
        ("+x=[", "+x=[: is not an override; write key=value"),
        ("+=3", "+=3: is not an override; write key=value"),
    ],
)
def test_what_hydra_refuses_hides_nothing_else(override: str, line: str) -> None:
    first, *others = faults("horizon_s=-1", override, "slo.ttft_s=-1", "workload.requests=0")
    assert first.startswith(line)
    assert {other.partition(" = ")[0] for other in others} == {
        "horizon_s",
        "slo.ttft_s",
        "workload.requests",
    }


def test_an_overhead_without_a_field_is_one_problem() -> None:
    (line,) = faults("~engine_overhead.engine")
    assert line == "engine_overhead.engine: is missing"


def test_the_overhead_of_transfers_is_chosen_by_name() -> None:
    assert load("scheduler=disaggregated", "cluster.transfer.overhead=mooncake") == load(
        "scheduler=disaggregated"
    )
    (line,) = faults("scheduler=disaggregated", "cluster.transfer.overhead=foo")
    assert line.startswith("transfer_overhead@cluster.transfer.overhead = 'foo': ")
    assert "mooncake" in line


@pytest.mark.parametrize("option", ["", "null"])
def test_no_option_at_all_is_told_which_there_are(option: str) -> None:
    (line,) = faults(f"gpu={option}")
    assert line.startswith("gpu: needs an option; they are a100-sxm-80gb,")


def test_a_trace_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a${x}.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,5,7\n")
    assert load("workload=trace", f"workload.path={path}").workload.path == str(path)  # type: ignore[union-attr]


def test_a_wrong_choice_says_nothing_of_what_stands_in_for_it() -> None:
    assert len(faults("scheduler=continous", "scheduler.max_num_seqs=0", "cluster.replicas=0")) == 1
    assert len(faults("gpu=mi300x", "model=llama3.1-405b")) == 1


KEYS = [
    *(
        "workload",
        "workload.path",
        "workload.arrivals.rate_rps",
        "workload.arrivals.kind",
        "workload.lengths.table",
    ),
    *(
        "gpu",
        "gpu.",
        "gpu@x",
        "gpu@cluster.prefill.gpu",
        "cluster.prefill",
        "cluster.prefill.gpu",
        "workload/arrivals",
    ),
    *(
        "seed",
        "foo",
        "a b",
        "",
        "..",
        "+a",
        "++gpu.x",
        "~gpu",
        "hydra",
        "hydra.x",
        "hydra.mode",
        "hydra.searchpath",
    ),
    *("_target_", "defaults", "slo", "scheduler.kind", "model.hidden_size"),
]
VALUES = [
    *(
        "1",
        "0",
        "null",
        "nan",
        "inf",
        "[1",
        "{a:1}",
        "{}",
        "[]",
        "a=b",
        "(",
        "'",
        '"x',
        "${gpu}",
        "${x",
        "???",
        "1,2",
    ),
    *(
        "range(1,3)",
        "true",
        "1e400",
        "9" * 400,
        "\x00",
        "é",
        "a\\",
        "glob(*)",
        "choice(",
        "tag(a)",
        "../config",
        "@",
    ),
    *("${oc.env:NOTHING}", "static", "gamma", "h100-sxm"),
]
WORDS = (st.sampled_from(KEYS), st.sampled_from(["=", ""]), st.sampled_from(VALUES))


@given(st.lists(st.tuples(*WORDS), max_size=3))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_typed_gives_a_scenario_or_a_list_of_problems(typed: list[tuple[str, str, str]]) -> None:
    found: tuple[Problem, ...] | None = None
    try:
        load(*("".join(parts) for parts in typed))
    except ConfigError as error:
        found = error.problems
    assert found is None or all(str(problem) for problem in found)


@pytest.mark.parametrize("name", ["plain", "it's mine, (2) = [b]"])
def test_a_folder_of_the_users_offers_options(tmp_path: Path, name: str) -> None:
    (tmp_path / name / "slo").mkdir(parents=True)
    (tmp_path / name / "slo" / "my own.yaml").write_text("ttft_s: 0.1\nattainment: 0.5\n")
    assert load("slo=my own", config_dir=tmp_path / name).slo.ttft_s == 0.1
    assert "my own" in faults("slo=mine", config_dir=tmp_path / name)[0]


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "a: {b: c: d}", "\t", "ttft_s: ${nowhere}", "\x00"])
def test_a_broken_file_of_the_users_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "slo").mkdir()
    (tmp_path / "slo" / "mine.yaml").write_text(text)
    assert len(faults("slo=mine", config_dir=tmp_path)) == 1


def test_loading_leaves_a_program_that_uses_hydra_alone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("own: 1\n")
    with hydra.initialize_config_dir(str(tmp_path), version_base="1.3"):
        load()
        assert hydra.compose("config") == {"own": 1}
    assert not GlobalHydra.instance().is_initialized()


def test_schedulers_and_clusters_must_agree() -> None:
    for scheduler, cluster in itertools.permutations(["continuous", "disaggregated"], 2):
        (line,) = faults(f"scheduler={scheduler}", f"cluster={cluster}")
        assert line.startswith("cluster")
