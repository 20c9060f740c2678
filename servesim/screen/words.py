"""What the screen of a run and its page both say in words: formats, memory, goodput and energy."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from servesim.cost.memory import MemorySheet
from servesim.screen.figures import counted, number, percent
from servesim.screen.hardware import gpus
from servesim.words import listed


def formats(scenario: Mapping[str, Any]) -> str:
    """Tell the formats of weights and KV."""
    kv = scenario["scheduler"]["kv_cache_dtype"]
    return f"weights {scenario['model']['weights_dtype']}, KV cache {'bf16' if kv == 'auto' else kv}"


def memory_table(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: the memory sheets of all pools side by side, in GB per GPU.

    Below them stands what an engine makes of the memory: blocks, and the longest sequence.
    """
    pools = {role: dict(sheet) for role, sheet in summary["memory"].items()}
    blocks, lengths = ([pool.pop(key) for pool in pools.values()] for key in ("kv_blocks", "max_model_len"))
    sheets = [
        MemorySheet(**{key: value for key, value in pool.items() if key != "fits"}) for pool in pools.values()
    ]
    rows = [
        [each[0][0], *(f"{size / 1e9:,.2f}" for _, size in each)]
        for each in zip(*(sheet.lines() for sheet in sheets), strict=True)
    ]
    given = ", as given" if sheets[0].overridden else ""
    label = f"KV blocks of {counted(sheets[0].block_size, 'token')}, per replica{given}"
    rows.append([label, *(f"{count:,}" for count in blocks)])
    auto = " (auto)" if summary["scenario"]["scheduler"]["max_model_len"] == "auto" else ""
    rows.append([f"max_model_len{auto}, tokens", *(f"{count:,}" for count in lengths)])
    return ["GB per GPU", *("" if role == "serve" else role for role in pools)], rows


def goodput(goodput: Mapping[str, Any]) -> str:
    """Tell how many requests met the objective, of which limits, and how many were cut."""
    if goodput["attainment"] is None:
        return "no limits given"
    limits = ((name, limit) for name, limit in goodput["limits"].items() if limit is not None)
    asked = listed((f"{name.removesuffix('_s').upper()} <= {limit:g} s" for name, limit in limits), "and")
    per_cent = Decimal(str(goodput["target"])) * 100  # 0.9999 is 99.99%, not 99.99000000000001%
    decimals = max(1, -int(per_cent.normalize().as_tuple().exponent))
    target = f"target {per_cent.normalize():f}%: {'met' if goodput['met'] else 'MISSED'}"
    rate = f"{number(goodput['requests_per_s'])} requests/s"
    left = counted(goodput["cut"], "request")
    cut = f"; {left} cut at the horizon {'counts' if goodput['cut'] == 1 else 'count'} as missed"
    shown = percent(goodput["attainment"], decimals)
    return f"{rate}; {shown} have {asked} ({target}){cut if goodput['cut'] else ''}"


def energy(summary: Mapping[str, Any]) -> str:
    """Tell the energy of a token, the mean power of a board, and what models it."""
    power, joules = summary["scenario"]["board_power"], summary["energy"]["joules"]
    gpu_s = sum(gpus(summary["scenario"]).values()) * (summary["window_s"] or 0.0)
    mean_w = None if joules is None or not gpu_s else joules / gpu_s
    fitted = "fitted on measured power" if power.get("provenance") else "not fitted"
    each = number(summary["energy"]["joules_per_output_token"])
    return f"{each} J per output token, {number(mean_w)} W per GPU (modelled: {power['name']}, {fitted})"
