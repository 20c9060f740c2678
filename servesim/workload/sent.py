"""What a run of a trace has sent, as a recording: with what the file of the trace says of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from servesim.workload.batch import IntArray
from servesim.workload.formats.recording import Blocks, Dialogue, Recording
from servesim.workload.formats.turns import blocks_of_turns
from servesim.workload.trace import Trace


class Sent(NamedTuple):
    """Requests of a run in order of sending: ``session`` is -1, and ``turn`` 0, of those that have none."""

    time_ns: IntArray
    input_tokens: IntArray
    output_tokens: IntArray
    session: IntArray
    turn: IntArray

    def recording(self, blocks: Blocks | None = None) -> Recording:
        """Return the requests as a recording, each at the time at which it was sent."""
        return Recording(self.time_ns, self.input_tokens, self.output_tokens, "native", blocks=blocks)


def as_sent(trace: Trace, sent: Sent, block_tokens: int) -> Recording | None:
    """Return each request at its time in the run, its prompt whole, with the blocks of the file.

    Of turns that bring only what is new the file has no blocks of whole prompts, so these get blocks of
    ``block_tokens`` tokens, of which the turns of a session have those in common that they begin with. None
    where the file is not what was sent.
    """
    rows = _rows(trace, sent)
    if rows is None:
        return None
    known = trace.recording.blocks if trace.prefix_sharing else None
    if trace.recorded is None or trace.recorded.whole:
        return sent.recording(known and known.taken(rows))
    if not trace.recorded.shares_prefixes:
        return sent.recording()
    return sent.recording(blocks_of_turns(sent.session, sent.input_tokens, block_tokens))


def as_followed(trace: Trace, sent: Sent) -> Recording | None:
    """Return the turns of sessions as the file has them: prompts whole or new, with blocks and delays.

    A session begins when it did in the run, and a turn with a time of its own keeps its distance from that.
    None where the file is not what was sent.
    """
    sessions, rows = trace.recorded, _rows(trace, sent)
    if sessions is None or rows is None:
        return None
    places = sessions.firsts[sent.session] + sent.turn
    begun_ns = np.zeros(sessions.sessions, dtype=np.int64)
    begun_ns[sent.session[sent.turn == 0]] = sent.time_ns[sent.turn == 0]
    offsets_ns = np.rint(sessions.offsets_s[places] * 1e9).astype(np.int64)
    dated = (sent.turn == 0) | (offsets_ns > 0)
    known = trace.recording.blocks if trace.prefix_sharing else None
    return sent.recording(known and known.taken(rows))._replace(
        time_ns=np.where(dated, begun_ns[sent.session] + offsets_ns, sent.time_ns),
        input_tokens=sessions.input_tokens[places],
        dialogue=Dialogue(
            sent.session, np.rint(sessions.waits_s[places] * 1e9).astype(np.int64) * (sent.turn > 0), dated
        ),
    )


def _rows(trace: Trace, sent: Sent) -> IntArray | None:
    """Return where the requests stand in the file of a trace; None where the file has others."""
    if (sessions := trace.recorded) is None:
        rows, prompts = trace.rows.places, trace.rows.requests.input_tokens
        known = len(rows) >= len(sent.time_ns) and bool((sent.session < 0).all())
        places = np.arange(len(sent.time_ns))
    else:
        assert trace.followed is not None
        rows, prompts = trace.followed.groups.rows, sessions.input_tokens
        known = bool(((sent.session >= 0) & (sent.session < sessions.sessions)).all())
        places = sessions.firsts[sent.session] + sent.turn if known else sent.turn
        known = known and bool((places < sessions.firsts[sent.session + 1]).all())
    if not known:
        return None
    told: IntArray = prompts[places]
    alike = told == sent.input_tokens if sessions is None or sessions.whole else told <= sent.input_tokens
    return rows[places] if bool(alike.all()) else None
