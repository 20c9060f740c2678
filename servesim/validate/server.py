"""What of the measured server a command line leaves open, and what is taken for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from servesim.cluster.pools import PrefillDecode
from servesim.scenario import Scenario
from servesim.words import listed

#: How a note begins that tells what nobody has said of the server.
ASSUMED = "not given, so taken as"


def as_measured(scenario: Scenario, overrides: Sequence[str]) -> Scenario:
    """Return the scenario as the one server that a measured run is of, with a note of what nobody said.

    An endpoint that is measured is most often one engine, so there is one replica where nothing sets
    ``cluster.replicas`` (overrides, a ``cluster=`` of the user's own, or vLLM's flags). Pools of prefill and
    decode stay as they are.
    """
    said = [*(text.partition("=")[0].lstrip("+~") for text in overrides), *_set_by_flags(scenario)]
    cluster: Any = scenario.cluster
    if not isinstance(cluster, PrefillDecode) and not {"cluster.replicas", "cluster"} & set(said):
        cluster = replace(cluster, replicas=1)
    scenario = replace(scenario, cluster=cluster)
    taken = [f"{key}={value}" for key, value in _open(scenario) if not _is_said(key, said)]
    if not taken:
        return scenario
    note = f"{ASSUMED} {listed(taken, 'and')}: say what was measured"
    return replace(scenario, notes=(note, *scenario.notes))


def _open(scenario: Scenario) -> Iterator[tuple[str, object]]:
    """Yield the keys that a server is told by, and their values."""
    yield "model", scenario.model.name
    yield "gpu", scenario.gpu.name
    cluster: Any = scenario.cluster
    split = isinstance(cluster, PrefillDecode)
    pools = {"cluster.prefill": cluster.prefill, "cluster.decode": cluster.decode} if split else None
    for place, pool in (pools or {"cluster": cluster}).items():
        yield f"{place}.replicas", pool.replicas
        yield f"{place}.tensor_parallel_size", pool.tensor_parallel_size


def _is_said(key: str, said: Sequence[str]) -> bool:
    """Tell whether keys that were typed set one, by itself or with the group that it is of."""
    group = key.partition(".")[0]
    return key in said or group in said or (group in ("model", "gpu") and f"{group}.name" in said)


def _set_by_flags(scenario: Scenario) -> Iterator[str]:
    """Yield the keys that vLLM's flags have set, as the notes tell them."""
    for note in scenario.notes:
        if note.startswith("engine_args"):
            yield from re.findall(r"([a-z_.]+)=", note)
