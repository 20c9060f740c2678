"""The limits and the price of the controls, as a loaded sweep is judged by them."""

from __future__ import annotations

from typing import Any

from servesim.check import Problem, field_problems
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import Judge
from servesim.report.dashboard.state import State
from servesim.report.frontier.drawing import limits_of
from servesim.results.pricing import Pricing
from servesim.results.slo import Slo


def out_of_bounds(state: State) -> list[Problem]:
    """Return which limits and prices for a loaded sweep a run would refuse."""
    demand = state.demand
    limits = {"ttft_s": demand.ttft, "tpot_s": demand.tpot, "attainment": demand.attainment}
    given = {name: value for name, value in limits.items() if value is not None}
    price = {"usd_per_gpu_hour": state.view.sweep_price}
    return [*field_problems(Slo, given, "slo"), *field_problems(Pricing, price, "pricing")]


def judge_of(state: State) -> Judge:
    """Return what the controls judge a loaded sweep by."""
    demand, price = state.demand, state.view.sweep_price
    limits = {"ttft_s": demand.ttft, "tpot_s": demand.tpot}
    return Judge(
        {name: None if limit is None else float(limit) for name, limit in limits.items()},
        float(demand.attainment or 0.0),
        None if price is None else float(price),
    )


def objective(loaded: Loaded | None) -> dict[str, Any]:
    """Return the limits that a sweep was run with, where all its points share them."""
    if loaded is None:
        return {}
    table = loaded.sweep.table
    limits = limits_of(table)
    targets = set(table["goodput.target"].dropna()) if "goodput.target" in table else set()
    said: dict[str, Any] = {"ttft": limits.get("ttft_s"), "tpot": limits.get("tpot_s")}
    return said | ({"attainment": float(min(targets))} if len(targets) == 1 else {})
