"""What is simulated: settings, each at a share of the load that saturates it."""

from __future__ import annotations

from dataclasses import dataclass

#: Requests sent at once, as good as: a run at this rate is overloaded from its first moment.
OVERLOAD_RPS = 1e6
#: The step times of most cases: those that sched-sim's own are most like.
ROOFLINE = "calibration=roofline"
FITTED = "calibration=auto"


@dataclass(frozen=True)
class Case:
    """One setting at one load.

    Attributes:
        key: what ``--only`` looks for.
        name: what the tables say.
        load: share of the saturation throughput at which requests arrive.
        setting: overrides that make up one unit of the setting.
        units: how many such units there are: the replicas of a pool.
        volume: requests, as a multiple of what is asked for.
    """

    key: str
    name: str
    load: float
    setting: tuple[str, ...]
    units: int = 1
    volume: int = 1

    @property
    def saturating(self) -> list[str]:
        """The overrides of a run that shows the saturation throughput of one unit."""
        return [*self.setting, f"workload.arrivals.rate_rps={OVERLOAD_RPS}"]

    def overrides(self, saturation_rps: float) -> list[str]:
        """Return the overrides of the case, given the saturation throughput of one unit."""
        replicas = [f"cluster.replicas={self.units}"] if self.units > 1 else []
        rate_rps = self.load * self.units * saturation_rps
        return [*self.setting, *replicas, f"workload.arrivals.rate_rps={rate_rps}"]


def _fixed(input_tokens: int, output_tokens: int) -> tuple[str, ...]:
    lengths = (f"workload.lengths.input={input_tokens}", f"workload.lengths.output={output_tokens}")
    return ("workload/lengths=fixed", *lengths)


#: The default model on four of a node's GPUs.
_ONE = (ROOFLINE, "cluster.replicas=1")
_SHORT = (*_ONE, *_fixed(512, 256))
_SHORT_FITTED = (FITTED, "cluster.replicas=1", *_fixed(512, 256))
_LONG = (*_ONE, *_fixed(512, 2048))

#: The case that is also run at several sizes, and by sched-sim.
USUAL = Case("one80", "512 in / 256 out, one replica, 80% load", 0.80, _SHORT)

CASES = (
    Case("one30", "512 in / 256 out, one replica, 30% load", 0.30, _SHORT),
    USUAL,
    Case("fitted80", f"{USUAL.name}, fitted step times", USUAL.load, _SHORT_FITTED),
    Case("one95", "512 in / 256 out, one replica, 95% load", 0.95, _SHORT),
    Case("long80", "512 in / 2,048 out, one replica, 80% load", 0.80, _LONG),
    Case("replicas", "512 in / 256 out, 100 replicas, least outstanding, 80% load", 0.80, _SHORT, 100, 5),
    Case(
        "disaggregated",
        "512 in / 256 out, a prefill and a decode replica, 80% load",
        0.80,
        (ROOFLINE, "scheduler=disaggregated", *_fixed(512, 256)),
    ),
    Case(
        "tight",
        "512 in / 256 out, KV for 31 requests, 95% load",
        0.95,
        (*_SHORT, "scheduler.num_gpu_blocks_override=1500"),
    ),
    Case(
        "tighter",
        "512 in / 2,048 out, KV for 25 requests, 100% load",
        1.00,
        (*_LONG, "scheduler.num_gpu_blocks_override=4000"),
    ),
    Case(
        "conversation",
        "conversation lengths, one replica, 80% load",
        0.80,
        (*_ONE, "workload/lengths=conversation"),
    ),
    Case(
        "shared",
        "512 in, half of it one of 8 system prompts / 256 out, prefix caching, 80% load",
        0.80,
        (
            *_ONE,
            "workload=sessions",
            "workload/turns=fixed",
            "workload.turns.count=1",
            *_fixed(256, 256),
            "workload.system_prompt_tokens=256",
        ),
    ),
    Case(
        "drafts",
        "512 in / 256 out, n-gram drafts of 4 tokens, 80% load",
        0.80,
        (*_SHORT, "scheduler/speculation=ngram", "scheduler.max_num_seqs=512"),
    ),
)
