"""`servesim plan`: the command, its screen and its files."""

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest

from servesim import load, run
from servesim.cli import main

QUICK = ["model=llama3.1-8b", "--requests", "150", "--seeds", "2", "--jobs", "1", "--max-gpus", "12"]
SMALL = [
    *QUICK,
    "--gpus",
    "h100-sxm=3,l40s",
    "--tensor-parallel",
    "1,2",
    "workload.arrivals.rate_rps=4",
    "--top",
    "2",
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def test_the_screen_ranks_the_cheapest(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *SMALL, "--top", "2"]) == 0
    printed, complaints = capfd.readouterr()
    assert complaints == ""
    lines = printed.splitlines()
    assert lines[0].startswith("Plan: llama3.1-8b (weights bf16, KV cache bf16) for 4 requests/s (poisson)")
    assert "TTFT 500 ms and TPOT 50 ms for 99.0% of requests" in lines[0]
    first, second = (line.split() for line in lines if line.startswith(("1 ", "2 ")))
    assert float(first[6]) <= float(second[6])
    others = [line for line in lines if line.startswith("   ") and line.split()[0].isdecimal()]
    assert sum(int(line.split()[0]) for line in others) == 6
    assert "The other 6:" in lines
    assert any(line.startswith("  servesim -m gpu=") for line in lines)
    table = lines[3 : lines.index("The other 6:")]
    assert max(map(len, table)) <= 100


def test_the_files_have_a_row_for_each_and_the_same_ranking(here: Path) -> None:
    assert main(["plan", *SMALL, "--out", "mine/plan"]) == 0
    frame = pd.read_parquet(here / "mine" / "plan" / "plan.parquet")
    assert len(frame) == 8
    assert frame["rank"].dropna().tolist() == list(range(1, frame["rank"].count() + 1))
    assert frame["usd_per_hour"][frame["rank"].notna()].is_monotonic_increasing
    assert frame["gpus"].gt(0).all()
    assert (here / "mine" / "plan" / "plan.csv").read_text().count("\n") == 9
    said = json.loads((here / "mine" / "plan" / "plan.json").read_text())
    assert [row["fate"] for row in said["answers"]] == frame["fate"].tolist()
    assert said["question"]["trial"]["requests"] == 150


@pytest.mark.parametrize("scheduler", ["continuous", "disaggregated"])
def test_the_command_of_a_row_gives_its_figures(here: Path, scheduler: str) -> None:
    assert main(["plan", *SMALL, "--schedulers", scheduler, "--out", "out", "--top", "1"]) == 0
    best = pd.read_parquet(here / "out" / "plan.parquet").iloc[0]
    command = shlex.split(best["command"])
    assert command[:2] == ["servesim", "-m"]
    assert main([*command[1:], "hydra.sweep.dir=again"]) == 0
    summaries = [json.loads((here / "again" / str(n) / "summary.json").read_text()) for n in range(2)]
    shares = [summary["goodput"]["attainment"] for summary in summaries]
    assert min(shares) == pytest.approx(best["attainment_worst_seed"])
    hours = [summary["cost"]["usd"] / summary["cost"]["gpu_hours"] for summary in summaries]
    assert hours == pytest.approx([best["usd_per_hour"] / best["gpus"]] * 2)
    judged = sum(summary["latency"]["e2e_s"]["n"] for summary in summaries)
    assert judged == best["judged_requests"]


def test_two_plans_are_equal_to_the_last_byte(here: Path) -> None:
    for folder in ("a", "b"):
        main(["plan", *SMALL, "--out", folder])
    for name in ("plan.parquet", "plan.csv", "plan.json"):
        assert (here / "a" / name).read_bytes() == (here / "b" / name).read_bytes()


def test_nothing_meets_an_impossible_objective(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *SMALL, "slo.tpot_s=0.001"]) == 3
    printed = capfd.readouterr().out
    assert "No configuration meets the SLO." in printed
    assert "Nearest: " in printed
    assert "8 out of reach of TPOT 1 ms even for a request by itself" in printed


def test_an_absurd_rate_is_told_how_much_it_needs(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *SMALL, "workload.arrivals.rate_rps=1e5"]) == 3
    assert "are needed at the least" in capfd.readouterr().out


def test_what_is_too_dense_to_simulate_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    dense = ["model=llama3.1-8b", "workload.arrivals.rate_rps=1e5", "--gpus", "h100-sxm", "--jobs", "1"]
    assert main(["plan", *dense, "--max-gpus", "1000000", "--max-replicas", "1000000"]) == 1
    assert "too many to simulate" in capfd.readouterr().err


def test_a_model_that_fits_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "model=llama3.1-405b", "--gpus", "l40s", "--jobs", "1"]) == 3
    assert "8 too large for the memory" in capfd.readouterr().out


def test_a_trace_can_be_planned_for(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [f"2023-11-16 18:{15 + n // 60:02}:{n % 60:02}.0,100,10" for n in range(200)]
    (here / "trace.csv").write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    arguments = ["workload=trace", "workload.path=trace.csv", "--gpus", "h100-sxm", "--top", "1"]
    assert main(["plan", "model=llama3.1-8b", "--jobs", "1", *arguments]) == 0
    assert "trace.csv at its recorded rate" in capfd.readouterr().out


def test_a_trace_without_times_needs_a_rate_to_be_planned_for(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "lengths.csv").write_text("num_prefill_tokens,num_decode_tokens\n" + "100,10\n" * 200)
    trace = ["workload=trace", "workload.path=lengths.csv", "--gpus", "h100-sxm", "--top", "1"]
    assert main(["plan", "model=llama3.1-8b", "--jobs", "1", *trace]) == 1
    assert "has no times; set workload.rate_rps" in capfd.readouterr().err
    assert main(["plan", "model=llama3.1-8b", "--jobs", "1", "workload.rate_rps=1", *trace]) == 0
    assert "lengths.csv at 1 requests/s (poisson)" in capfd.readouterr().out


def test_a_key_of_one_scheduler_holds_for_that_one(here: Path) -> None:
    own = ["scheduler.max_num_seqs=64", "scheduler.batch_size=4", "cluster.transfer.link=pcie"]
    schedulers = ["--schedulers", "static,continuous,disaggregated", "--gpus", "h100-sxm"]
    arguments = [*QUICK, *own, *schedulers, "--tensor-parallel", "1", "workload.arrivals.rate_rps=2"]
    assert main(["plan", *arguments, "--out", "out", "slo.ttft_s=5"]) == 0
    rows = pd.read_parquet(here / "out" / "plan.parquet").set_index("scheduler")["command"]
    assert "batch_size" in rows["static"]
    assert "max_num_seqs" not in rows["static"]
    assert "max_num_seqs" in rows["continuous"]
    assert "transfer" not in rows["continuous"]
    assert "transfer" in rows["disaggregated"]


def test_a_gpu_of_ones_own_is_found(here: Path) -> None:
    (here / "mine" / "gpu").mkdir(parents=True)
    text = "defaults: [h100-sxm, _self_]\nname: my-gpu\nusd_per_hour: 0.5\n"
    (here / "mine" / "gpu" / "my-gpu.yaml").write_text(text)
    arguments = [*QUICK, "--config-dir", "mine", "--tensor-parallel", "1", "--schedulers", "continuous"]
    assert main(["plan", *arguments, "--out", "out", "--top", "1"]) == 0
    best = pd.read_parquet(here / "out" / "plan.parquet").iloc[0]
    assert best["gpu"] == "my-gpu"
    assert main(shlex.split(best["command"])[1:]) == 0


def test_every_mistake_is_told_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = shlex.split("--gpus h100 --schedulers statc --seeds 0 --max-gpus many --requests 9")
    keys = ["gpu=l40s", "cluster.replicas=2", "workload.requests=9", "sed=1", "workload/arrivals=closed_loop"]
    assert main(["plan", *wrong, *keys, "slo=batch"]) == 1
    complaints = capfd.readouterr().err
    for word in (
        *("h100-sxm", "static", "--seeds", "--max-gpus", "--requests", "--gpus NAME", "--max-replicas N"),
        *("did you mean seed", "closed_loop", "slo.ttft_s", "use --requests N"),
    ):
        assert word in complaints


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--nonsense"], "servesim plan --help"),
        (["--gpus", "h100-sxm=free"], "the price must be"),
        (["--tensor-parallel", "1,x"], "--tensor-parallel"),
        (["cluster.decode.gpu=l40s"], "--gpus"),
        (["--config-dir", "nowhere"], "no such folder"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], word: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--schedulers", "continuous", "--gpus", "h100-sxm", *arguments]) == 1
    assert word in capfd.readouterr().err


def test_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--help"]) == 0
    printed = capfd.readouterr().out
    assert "--max-gpus N" in printed
    assert max(map(len, printed.splitlines())) <= 110


def test_the_verdict_is_that_of_the_runs(here: Path) -> None:
    """A configuration one replica smaller than the plan's misses: its runs say so, too."""
    assert main(["plan", *SMALL, "--schedulers", "continuous", "--gpus", "l40s", "--out", "out"]) == 0
    best = pd.read_parquet(here / "out" / "plan.parquet").iloc[0]
    settings = [text for text in shlex.split(best["command"])[2:] if not text.startswith("seed=")]
    met = [run(load(*settings, f"seed={seed}")).summary for seed in (0, 1)]
    assert all(summary["saturated"] is False for summary in met)
    fewer = f"cluster.replicas={best['replicas'] - 1}"
    missed = [run(load(*settings, fewer, f"seed={seed}")).summary for seed in (0, 1)]
    bad = sum((1 - each["goodput"]["attainment"]) * each["latency"]["e2e_s"]["n"] for each in missed)
    judged = sum(each["latency"]["e2e_s"]["n"] for each in missed)
    assert any(each["saturated"] for each in missed) or bad > 0.01 * judged


@pytest.mark.parametrize(
    "option", ["--top", "--seeds", "--requests", "--jobs", "--max-gpus", "--tensor-parallel"]
)
@pytest.mark.parametrize("number", ["9" * 5000, "1000000000000", "0", "x", ""])
def test_a_number_out_of_bounds_is_refused(
    option: str, number: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *SMALL, option, number]) == 1
    printed, complaints = capfd.readouterr()
    assert printed == ""
    assert complaints.startswith(f"1 problem in the input:\n  {option} = ")
    assert "must be a whole number, at least" in complaints


def test_a_gpu_has_one_price_and_the_message_says_whose(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *QUICK, "--gpus", "h100-sxm,l40s=-1,h100-sxm=1,a100-sxm-80gb=x"]) == 1
    complaints = capfd.readouterr().err
    assert "--gpus = 'h100-sxm=1': is named twice" in complaints
    assert "--gpus = 'l40s=-1': the price must be" in complaints
    assert "--gpus = 'a100-sxm-80gb=x': the price must be" in complaints


def test_a_folder_that_cannot_be_written_is_noticed_before_anything_runs(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_text("")
    monkeypatch.setattr("servesim.plan.find", None)
    assert main(["plan", *SMALL, "--out", "file/plan"]) == 1
    assert "--out = 'file/plan': cannot be written into" in capfd.readouterr().err


def test_a_plan_is_printed_even_if_its_files_fail(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("servesim.frontier.table.save", full)
    assert main(["plan", *SMALL, "--tensor-parallel", "1", "--out", "out"]) == 1
    printed, complaints = capfd.readouterr()
    assert "Run the first:" in printed
    assert "No space left" in complaints


def test_the_command_has_each_key_once(capfd: pytest.CaptureFixture[str]) -> None:
    main(["plan", *SMALL, "--tensor-parallel", "1", "seed=7"])
    command = next(line for line in capfd.readouterr().out.splitlines() if line.startswith("  servesim"))
    assert command.count("seed=") == 1
    assert "seed=7,8" in command


def test_flags_of_an_engine_hold_but_for_what_the_plan_finds(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = "engine_args=-tp 8 -dp 9 --max-num-seqs 32 --served-model-name a,b"
    one = [*QUICK, "--gpus", "h100-sxm", "--tensor-parallel", "1", "--schedulers", "continuous", "--top", "1"]
    assert main(["plan", *one, flags, "workload.arrivals.rate_rps=4"]) == 0
    out = capfd.readouterr().out
    assert "engine_args outdone by the keys beside them: -tp 8, -dp 9" in out
    (command,) = (line for line in out.splitlines() if line.startswith("  servesim -m gpu="))
    assert main(shlex.split(command)[1:]) == 0
    found = [json.loads(path.read_text())["scenario"] for path in here.glob("runs/*/*/summary.json")]
    assert len(found) == 2  # one for each seed
    for scenario in found:
        assert scenario["scheduler"]["max_num_seqs"] == 32
        assert scenario["cluster"]["tensor_parallel_size"] == 1
        assert scenario["engine_args"] == flags.partition("=")[2]
