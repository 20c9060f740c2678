"""What a router remembers of the prompts that it has sent to a replica."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

from servesim.workload.request import Request


class SentPrompts:
    """The prompts sent to one replica, as spans of tokens; those that were sent longest ago are forgotten.

    It stands in for a prefix tree: the key of a span stands for all that precedes it, too, so a table of
    spans holds the tree. The end of a prompt is forgotten before its beginning.

    Args:
        room: tokens that are remembered at most.
    """

    __slots__ = ("_held", "_room", "_spans")

    def __init__(self, room: int) -> None:
        self._room = room
        self._held = 0
        #: (start, end) in tokens of each span by its key, the one sent longest ago first
        self._spans: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()

    def matched(self, request: Request) -> int:
        """Return the tokens from the first one on of a request's prompt that have been sent before."""
        spans, matched = self._spans, 0
        for key, start, end in _spans(request):
            known = spans.get(key)
            if known is None or known[1] <= start:
                return matched
            if known[1] < end:
                return known[1]
            matched = end
        return matched

    def note(self, request: Request) -> None:
        """Remember the prompt of a request that is being sent."""
        spans = self._spans
        for key, start, end in reversed(list(_spans(request))):
            known_start, known_end = spans.pop(key, (start, start))
            spans[key] = span = start, max(end, known_end)
            self._held += span[1] - span[0] - (known_end - known_start)
        while self._held > self._room:
            _, (start, end) = spans.popitem(last=False)
            self._held -= end - start


def _spans(request: Request) -> Iterator[tuple[Hashable, int, int]]:
    """Yield key, start and end of the spans of a prompt, the part that belongs to its stream the last."""
    origin, start = request.origin, 0
    for key, end in origin.prefix:
        yield key, start, end
        start = end
    if origin.stream is not None and start < request.input_tokens:
        yield (origin.stream,), start, request.input_tokens
