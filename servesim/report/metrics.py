"""What figures of a summary are called on a chart, in which unit, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

#: Unit, factor to it, and definition of each time that requests take.
_TIMES = {
    "ttft_s": ("TTFT", "s", 1.0, "time to first token: from sending a request to its first output token"),
    "tpot_s": (
        "TPOT",
        "ms",
        1e3,
        "time per output token: (E2E - TTFT) / (output tokens - 1) of a request with more than one",
    ),
    "itl_s": ("ITL", "ms", 1e3, "inter-token latency: the gaps between tokens, of all requests together"),
    "e2e_s": ("E2E", "s", 1.0, "end-to-end latency: from sending a request to its last output token"),
}
_DELIVERED = "delivered per second of the judged part of the run; per GPU: of all GPUs paid for"
_INTERACTIVITY = "tokens per second that one user sees: 1 / TPOT of a request"
_RATES = {
    "requests": ("Requests completed", "requests/s"),
    "input_tokens": ("Input throughput", "tokens/s"),
    "output_tokens": ("Output throughput", "tokens/s"),
    "total_tokens": ("Input and output throughput", "tokens/s"),
}
_SHARES = {
    "compute": (
        "Compute",
        "% of peak",
        "FLOPs over what the GPUs could do at the peak of the weights' format",
    ),
    "bandwidth": ("Bandwidth", "% of peak", "bytes of weights and KV over what HBM could move"),
    "kv_cache": ("KV cache", "% of blocks", "KV blocks held, over those that there are"),
    "busy": ("Time in steps", "% of time", "time spent in steps"),
}
_COSTS = {
    "million_output_tokens": "million output tokens",
    "million_total_tokens": "million tokens, input and output",
    "request": "request",
    "good_request": "request that met the SLO",
}
_COUNTS = {
    "injected": ("Attempts", "requests sent, each time that they were"),
    "completed": ("Completed", "attempts whose answer the client had in full"),
    "timed_out": ("Timed out", "attempts whose client hung up"),
    "retries": ("Retries", "attempts after a first one that failed"),
    "given_up": ("Given up", "requests whose last attempt failed"),
    "preemptions": ("Preemptions", "how often the blocks of a running request were taken from it"),
}


@dataclass(frozen=True)
class Metric:
    """A figure: its column in the table of a sweep, its title with the unit, and how it is drawn.

    Attributes:
        column: where the table has it, in seconds, tokens, requests or dollars.
        title: the title of an axis, in ``unit``.
        scale: what the table's figure is multiplied with to be in ``unit``.
        unit: as in the title.
        best: whether more of it is better (1), or less (-1); 0: neither.
        logarithmic: whether its values usually span orders of magnitude.
        definition: a phrase.
        limit: the limit of the SLO that bounds it, such as ``ttft_s``; empty: none does.

    """

    column: str
    title: str
    unit: str = ""
    scale: float = 1.0
    best: int = 0
    logarithmic: bool = False
    definition: str = ""
    limit: str = ""

    @property
    def name(self) -> str:
        """The title without the unit."""
        return self.title.partition(" (")[0]

    def bound(self, limit_s: float) -> float:
        """Return where a limit in seconds lies on the axis of this figure."""
        return self.scale * (1 / limit_s if self.best > 0 else limit_s)


def metric(column: str) -> Metric:
    """Return what is known of a column of the table; of one that is not known, its name."""
    group, _, rest = column.partition(".")
    maker = _MAKERS.get(group)
    return (maker(column, *rest.rsplit(".", 1)) if maker and rest else None) or Metric(column, column)


def _latency(column: str, name: str, statistic: str = "") -> Metric | None:
    said = {"mean": "Mean", "p50": "Median"}.get(statistic, statistic)
    if name == "interactivity":
        title = f"{said} interactivity (tokens/s per user)"
        return Metric(column, title, "tokens/s per user", 1.0, 1, False, _INTERACTIVITY, "tpot_s")
    if name not in _TIMES:
        return None
    short, unit, scale, definition = _TIMES[name]
    limit = "" if name == "itl_s" else name
    best = 0 if statistic == "n" else -1
    return Metric(column, f"{said} {short} ({unit})", unit, scale, best, True, definition, limit)


def _rate(column: str, name: str, *rest: str) -> Metric | None:
    if rest:
        return None  # of one role of two
    for start, (said, unit) in _RATES.items():
        if name.startswith(f"{start}_per_s"):
            unit += " per GPU" if name.endswith("_per_gpu") else ""
            return Metric(column, f"{said} ({unit})", unit, best=1, definition=_DELIVERED)
    return None


def _goodput(column: str, name: str, *rest: str) -> Metric | None:
    if name == "attainment":
        definition = (
            "requests that met every limit of the SLO / all that were asked for, dropped and cut ones too"
        )
        return Metric(column, "SLO attainment (% of requests)", "%", 100.0, 1, False, definition)
    if name.startswith("requests_per_s"):
        unit = "requests/s" + (" per GPU" if name.endswith("_per_gpu") else "")
        definition = (
            "requests per second that met every limit of the SLO, of those that the throughput counts"
        )
        return Metric(column, f"Goodput ({unit})", unit, best=1, definition=definition)
    return None


def _cost(column: str, name: str, *rest: str) -> Metric | None:
    start, _, per = name.partition("usd_per_")
    if start == "" and per in _COSTS:
        definition = "price of all GPUs paid for, idle or not / what they delivered"
        return Metric(column, f"Cost ($ per {_COSTS[per]})", "$", 1.0, -1, True, definition)
    return None


def _fairness(column: str, *rest: str) -> Metric | None:
    if rest == ("jain_index",):
        definition = "(sum x)^2 / (n sum x^2) of the tenants' services x / weight while all wait at a replica"
        return Metric(column, "Jain's index (1: even)", best=1, definition=definition)
    place, _, statistic = ".".join(rest).rpartition(".ttft_s.")
    if place.startswith("tenants.") and (said := _latency(column, "ttft_s", statistic)):
        start, unit, _ = said.title.partition(" (")
        name = place.removeprefix("tenants.")
        return replace(said, title=f"{start} of {name}{unit}{said.unit})", limit="")
    return None


def _share(column: str, name: str, *rest: str) -> Metric | None:
    if rest or name not in _SHARES:
        return None
    said, unit, definition = _SHARES[name]
    return Metric(column, f"{said} ({unit})", "%", 100.0, definition=f"{definition}: mean over paid GPU time")


def _prefill(column: str, name: str, *rest: str) -> Metric | None:
    if name == "computed_tokens":
        definition = "tokens of prompts that steps computed, and again after preemptions, in the whole run"
        return Metric(column, "Prefill computed (million tokens)", "M", 1e-6, -1, False, definition)
    if name != "hit_rate":
        return None
    definition = "tokens of prompts found in the KV cache / all of those that were scheduled"
    return Metric(column, "Prefix hit rate (% of prompt tokens)", "%", 100.0, 1, False, definition)


def _accounting(column: str, name: str, *rest: str) -> Metric | None:
    if name == "success":
        definition = "requests that completed, in whatever attempt / requests"
        return Metric(column, "Served (% of requests)", "%", 100.0, 1, False, definition)
    if rest or name not in _COUNTS:
        return None
    said, definition = _COUNTS[name]
    return Metric(column, said, definition=definition)


_MAKERS: dict[str, Callable[..., Metric | None]] = {
    "latency": _latency,
    "throughput": _rate,
    "goodput": _goodput,
    "cost": _cost,
    "prefill": _prefill,
    "accounting": _accounting,
    "utilisation": _share,
    "fairness": _fairness,
}

OUTPUT = metric("throughput.output_tokens_per_s_per_gpu")
TOTAL = metric("throughput.total_tokens_per_s_per_gpu")
INTERACTIVITY = metric("latency.interactivity.p50")
TTFT_P50, TTFT_P99 = metric("latency.ttft_s.p50"), metric("latency.ttft_s.p99")
TPOT_P50, TPOT_P99 = metric("latency.tpot_s.p50"), metric("latency.tpot_s.p99")
COST = metric("cost.usd_per_million_output_tokens")
GOODPUT, GOODPUT_PER_GPU = metric("goodput.requests_per_s"), metric("goodput.requests_per_s_per_gpu")
ATTAINMENT = metric("goodput.attainment")

#: What is said of every point.
SHOWN = (
    OUTPUT,
    TOTAL,
    INTERACTIVITY,
    TTFT_P50,
    TTFT_P99,
    TPOT_P50,
    TPOT_P99,
    COST,
    GOODPUT,
    GOODPUT_PER_GPU,
    ATTAINMENT,
)
