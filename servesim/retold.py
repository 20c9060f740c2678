"""The requests of a run told as a trace, with what they share and, where there is room, their sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from servesim.check import ConfigError
from servesim.config.saved import saved_trace
from servesim.report.run.saved import Run
from servesim.workload.formats import Recording
from servesim.workload.formats.turns import blocks_of_turns, whole
from servesim.workload.formats.writers import WRITERS
from servesim.workload.sent import Sent, as_followed, as_sent
from servesim.workload.trace import Trace

#: Tokens of the blocks of a run's prompts, where the format to be written asks for no others.
_BLOCK_TOKENS = 16

_NOT_KEPT = "what prompts share is not kept"
_EACH_AT_ITS_TIME = (
    "sessions: each turn at the time it was sent in this run, not when the answer before has ended"
)


def retold(run: Run, to: str) -> Recording:
    """Return the requests that a run has sent, for a format; its remarks say what differs and is not kept."""
    recording, shared = _requests(run, to)
    return recording._replace(remarks=(*_on_a_run(run.summary["accounting"]), *shared))


def _requests(run: Run, to: str) -> tuple[Recording, tuple[str, ...]]:
    """Return the requests of a run, and what is not kept of what they share."""
    rows = run.requests[run.requests.attempt == 0].sort_values("request_id")
    sent = Sent(
        np.rint(rows.sent_s.to_numpy() * 1e9).astype(np.int64),
        rows.input_tokens.to_numpy(),
        rows.output_tokens.to_numpy(),
        *(rows[name].fillna(unset).to_numpy(np.int64) for name, unset in (("session", -1), ("turn", 0))),
    )
    workload, room = run.summary["scenario"]["workload"], WRITERS[to].room
    size = room.block_tokens or _BLOCK_TOKENS
    if workload["kind"] == "sessions":
        common = workload["system_prompt_tokens"] if workload["system_prompts"] == 1 else 0
        blocks = blocks_of_turns(sent.session, sent.input_tokens, size, common)
        return sent.recording(blocks), tuple(_on_sessions(workload))
    if workload["kind"] == "trace":
        return _of_a_trace(run.summary["scenario"], sent, room.turns, size)
    return sent.recording(), (_NOT_KEPT,) if run.summary["prefill"]["cached_tokens"] else ()


def _of_a_trace(
    scenario: Mapping[str, Any], sent: Sent, turns: bool, size: int
) -> tuple[Recording, tuple[str, ...]]:
    """Return what a run has sent of a trace, with what its file says of blocks and of sessions."""
    path = scenario["workload"]["path"]
    try:
        trace = saved_trace(scenario)
    except ConfigError:
        return sent.recording(), (f"sessions, and what prompts share, are not kept: {path} cannot be read",)
    followed = trace.recorded is not None
    recording = as_followed(trace, sent) if followed and turns else as_sent(trace, sent, size)
    if recording is None:
        return sent.recording(), (f"sessions, and what prompts share, are not kept: {path} has changed",)
    return recording, tuple(_on_turns(trace, recording) if followed else ())


def _on_turns(trace: Trace, recording: Recording) -> Iterator[str]:
    """Yield what a recording of the turns of a trace does not say of them."""
    assert trace.recorded is not None
    if recording.dialogue is None:
        yield _EACH_AT_ITS_TIME
        if trace.recorded.spans is not None and not trace.recorded.whole:
            yield "what sessions share is not kept; what turns share is"
        return
    if whole(recording) != trace.recorded.whole:
        said = f"workload.turn_inputs={'whole' if trace.recorded.whole else 'new'}"
        yield f"what lengths of later prompts are of, which the file does not say: read it with {said}"
    if not trace.prefix_sharing:
        yield "turns shared nothing in this run: read it with workload.prefix_sharing=false"


def _on_a_run(accounting: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the requests of a run differ from what its traffic asks for."""
    if accounting["not_sent"]:
        yield f"past the horizon, so never sent, and left out: {accounting['not_sent']:,}"
    if accounting["retries"]:
        yield f"retries, which are the client's doing, and left out: {accounting['retries']:,}"
    if accounting["length_capped"]:
        yield f"outputs cut at max_model_len: {accounting['length_capped']:,}"


def _on_sessions(workload: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a trace does not hold of what the requests of drawn sessions have in common."""
    yield _EACH_AT_ITS_TIME
    if workload["system_prompts"] > 1 and workload["system_prompt_tokens"]:
        yield "what sessions share, one of several system prompts, is not kept; what turns share is"
