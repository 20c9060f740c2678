"""Every shipped option of the workload groups builds, and nothing is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import servesim
from servesim.check import check
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Gamma, Poisson
from servesim.workload.formats.options import TimedTrace
from servesim.workload.lengths import Fixed, Geometric, Lognormal, Range, Uniform
from servesim.workload.quantiles import Quantiles
from servesim.workload.schedule import Schedule
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace
from servesim.workload.vllm_bench import VllmBench

CONF = Path(__file__).parents[2] / "conf" / "workload"
ARRIVALS = {
    "poisson": Poisson,
    "gamma": Gamma,
    "constant": Constant,
    "schedule": Schedule,
    "closed_loop": ClosedLoop,
    "burst": Burst,
    "vllm_bench": VllmBench,
}
LENGTHS = {
    "quantiles": Quantiles,
    "fixed": Fixed,
    "uniform": Uniform,
    "range": Range,
    "lognormal": Lognormal,
    "geometric": Geometric,
}


def options(group: str) -> list[Path]:
    return sorted((CONF / group).glob("*.yaml"))


def built(path: Path, kinds: dict[str, type]) -> Any:
    values = yaml.safe_load(path.read_text())
    return kinds[values.pop("kind")](**values)


def test_every_kind_has_an_option() -> None:
    kinds = {yaml.safe_load(path.read_text())["kind"] for path in options("arrivals") + options("lengths")}
    assert kinds == ARRIVALS.keys() | LENGTHS.keys()


@pytest.mark.parametrize("lengths", options("lengths"), ids=lambda path: path.stem)
@pytest.mark.parametrize("arrivals", options("arrivals"), ids=lambda path: path.stem)
def test_any_arrivals_go_with_any_lengths(arrivals: Path, lengths: Path) -> None:
    values = yaml.safe_load((CONF / "synthetic.yaml").read_text())
    assert values.pop("kind") == "synthetic"
    del values["defaults"]
    workload = Synthetic(built(arrivals, ARRIVALS), built(lengths, LENGTHS), **values)
    check(workload, "workload")
    assert sum(batch.size for batch in workload.batches(Streams(0))) == 2000


def test_a_trace_lacks_its_path_only() -> None:
    values = yaml.safe_load((CONF / "trace.yaml").read_text())
    assert values.pop("kind") == "trace"
    assert values.pop("path") == "???"  # OmegaConf's way to ask for it
    values["timed_trace"] = TimedTrace(**values["timed_trace"])
    assert Trace("x", **values) == Trace("x")


@pytest.mark.parametrize("option", ["sessions", "agentic"])
def test_conversations_compose(option: str) -> None:
    workload = servesim.load(f"workload={option}").workload
    assert isinstance(workload, Sessions)
    kinds = {path.stem for path in options("turns")}
    assert kinds == {"agent_task", "fixed", "geometric", "uniform"}
    assert workload.tools.lengths == Lognormal(500.0, 150.0, 1.5, 1.0)


def test_agents_begin_one_by_one_and_take_other_turns_and_arrivals() -> None:
    assert servesim.load("workload=agentic").workload.users.start_s(63) > 59
    other = servesim.load("workload=agentic", "workload/turns=fixed", "workload/arrivals=poisson").workload
    assert other.users is None


def test_the_shipped_day_sends_4_requests_per_second_on_average() -> None:
    day = built(CONF / "arrivals" / "schedule.yaml", ARRIVALS)
    sizes = [batch.size for batch in Synthetic(day, Fixed(1, 1), duration_s=day.period_s).batches(Streams(0))]
    assert abs(sum(sizes) - 4 * 86_400) <= 4.5 * (4 * 86_400) ** 0.5
