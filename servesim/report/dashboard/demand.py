"""What is asked of the configurations, as its controls say it: traffic, who sends it, and the SLO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from servesim.report.dashboard.option_files import Chosen, settings
from servesim.report.dashboard.part import Part, Value, control, written
from servesim.workload import sessions, synthetic

#: What is said of paying tenants, where there are any beside those who do not pay.
_OF_TENANTS = ("paid_priority", "paid_weight", "paid_slack")
_FREE_SHARE = "workload.tenants.free.share"


@dataclass(frozen=True)
class Demand(Part):
    """What is asked of the configurations: traffic, and the limits that a request must meet."""

    workload: str = control(str, "synthetic", "workload")
    rate: Value = control(float, 4.0, "workload.arrivals.rate_rps")
    concurrency: Value = control(int, None, "workload.arrivals.concurrency")
    arrivals: str | None = control(str, None, "workload/arrivals")
    burstiness: Value = control(float, None, "workload.arrivals.burstiness")
    lengths: str | None = control(str, None, "workload/lengths")
    input: Value = control(int, None, "workload.lengths.input")
    output: Value = control(int, None, "workload.lengths.output")
    requests: Value = control(int, None, "workload.requests")
    seed: Value = control(int, 0, "seed")

    turns: Value = control(float, None, "workload.turns.turns")
    think: Value = control(float, None, "workload.think_time_s")
    system_prompt: Value = control(int, None, "workload.system_prompt_tokens")
    calls: Value = control(float, None, "workload.tools.calls")
    tool_delay: Value = control(float, None, "workload.tools.delay_s")
    paid: Value = control(float, None, "workload.tenants.paid.share")
    paid_priority: Value = control(int, None, "workload.tenants.paid.priority")
    paid_weight: Value = control(float, None, "workload.tenants.paid.weight")
    paid_slack: Value = control(float, None, "workload.tenants.paid.slack_s")
    client: str = control(str, "default", "client")
    outstanding: Value = control(int, None, "client.max_concurrency")
    timeout: Value = control(float, None, "client.timeout_s")
    ttft_timeout: Value = control(float, None, "client.ttft_timeout_s")
    retries: Value = control(int, None, "client.max_retries")
    backoff: Value = control(float, None, "client.backoff_s")

    ttft: Value = control(float, 0.5, "slo.ttft_s")
    tpot: Value = control(float, 0.05, "slo.tpot_s")
    attainment: Value = control(float, 0.99, "slo.attainment")

    @property
    def chosen(self) -> Chosen:
        """The options that its controls choose, and those that the workload does of itself."""
        own = settings("workload", self.workload)
        inner = {"arrivals": self.arrivals, "lengths": self.lengths, "turns": None}
        chosen = {name: option or own.get(name) for name, option in inner.items()}
        return Chosen(
            {
                "workload": ("workload", self.workload),
                **{f"workload.{name}": (f"workload/{name}", str(each)) for name, each in chosen.items()},
                "client": ("client", self.client),
            }
        )

    @property
    def load(self) -> str | None:
        """The control that says how much is asked; None where the arrivals have no such figure."""
        return next((name for name in ("rate", "concurrency") if self.shows(name)), None)

    @property
    def talks(self) -> bool:
        """Whether requests are turns of conversations."""
        return settings("workload", self.workload).get("kind") == "sessions"

    def shows(self, name: str) -> bool:
        """Tell whether a control is seen: whether the options have it, and what it speaks of is there.

        Users and conversations limit by themselves how many requests are unanswered.
        """
        if name == "outstanding" and (self.talks or self.shows("concurrency")):
            return False
        return super().shows(name) and (self.paid is not None or name not in _OF_TENANTS)

    def own(self, name: str) -> Any:
        """Return what a control without a value stands at: of requests, what ends the sending."""
        if name == "requests":
            return sessions.DEFAULT_REQUESTS if self.talks else synthetic.DEFAULT_REQUESTS
        return super().own(name)

    def overrides(self) -> Iterator[str]:
        """Yield what is seen, and not as the configuration files have it; who does not pay sends the rest."""
        for text in super().overrides():
            yield text
            if text.startswith(f"{self.keys('paid')[0]}="):
                yield f"{_FREE_SHARE}={written(float(f'{1 - float(self.paid or 0):.12g}'))}"
