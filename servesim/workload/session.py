"""A session: one conversation, as it will go unless something ends it early."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from servesim.workload.origin import Origin


class Session(NamedTuple):
    """The turns of one conversation, in order, whatever becomes of it.

    Attributes:
        origin: where its first request comes from; those of later turns differ in their turn alone.
        system_tokens: tokens of the system prompt, which every prompt begins with.
        inputs: tokens that each turn adds to what was said before.
        outputs: tokens of each answer.
        waits_s: seconds from the answer before each turn to its sending; those of the first turn, from the
            end of the same user's last session, are for the arrivals to say.

    """

    origin: Origin
    system_tokens: int
    inputs: list[int]
    outputs: list[int]
    waits_s: list[float]

    @property
    def turns(self) -> int:
        """Return the number of turns."""
        return len(self.inputs)

    @property
    def prompts(self) -> list[int]:
        """Return the tokens of each turn's prompt: all that was said before, and what is new."""
        grown = (new + answer for new, answer in zip(self.inputs[1:], self.outputs, strict=False))
        return list(accumulate(grown, initial=self.system_tokens + self.inputs[0]))

    def prompt(self, turn: int, said: int) -> int:
        """Return the tokens of a turn's prompt after so many of the prompt and the answer before it."""
        return said + self.inputs[turn] if turn else self.system_tokens + self.inputs[0]

    def sent_s(self, turn: int, begun_s: float, answered_s: float) -> float:
        """Return when a later turn is sent (seconds), the answer before it having ended at ``answered_s``."""
        return answered_s + self.waits_s[turn]

    def turns_within(self, first: float, later: float) -> int:
        """Return how many turns go by before a prompt of more than ``first`` tokens, or ``later`` then."""
        prompts = self.prompts
        return bisect_right(prompts, later, lo=1) if prompts[0] <= first else 0

    def origin_of(self, turn: int) -> Origin:
        """Return where the request of a turn comes from."""
        session, _, tenant, priority, attempt, prefix, stream, slack_s, weight = self.origin
        return Origin(session, turn, tenant, priority, attempt, prefix, stream, slack_s, weight)
