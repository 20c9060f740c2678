"""Prefix caching: which KV is in the cache, held by somebody or left in free blocks, and who may find it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf

from servesim.engine.span import Span, Stretch
from servesim.workload.request import Request

#: A piece of a sequence: its key, its first block, and the block behind its last one.
Piece = tuple[Hashable, int, float]


class Hold:
    """The pieces of one request's sequence, and how many of its blocks others can find in them."""

    __slots__ = ("named", "pieces")

    def __init__(self, pieces: list[Piece], named: int) -> None:
        self.pieces = pieces
        self.named = named


class PrefixCache:
    """The content of one replica's KV blocks, as far as somebody may still want it.

    As in vLLM V1 (vllm/v1/core/kv_cache_manager.py, block_pool.py) only full blocks are found, from the first
    one of a sequence on without a gap; a prompt's last token is always computed. Free blocks stand in one
    queue. Whoever needs a block takes it from the head, and its content is lost; blocks that nobody holds any
    more go to the tail, a sequence's last one first, so that its beginning is lost last; and who finds
    content in the queue takes its blocks out of the middle.

    No block is kept here. What is in the cache is kept by :class:`Span`, the blocks that one key of
    ``Origin.prefix`` or one stream stands for, and the queue as runs of them (:class:`Stretch`). Blocks that
    nobody will ask for are only counted (``given``), so a request that shares nothing costs one addition; and
    what the head loses is worked out when somebody looks.

    A prompt is found from when the last of it is scheduled, an answer when it has ended or is interrupted.
    Where two requests compute the same at one time, each has a copy and the first is found. A copy computed
    while an older one lies idle replaces it, with all that lies behind it under its key; vLLM finds the older
    one for as long as it is there.
    """

    def __init__(self, kv_blocks: int, block_size: int, *, shares: bool) -> None:
        #: blocks ever put into the queue; at first all of them, with nothing in them
        self.given = kv_blocks
        self._taken = 0
        self._noted = 0  # of the blocks given, those that stretches stand for
        self._block_size = block_size
        self._shares = shares
        self._spans: dict[Hashable, Span] = {}
        self._queue: OrderedDict[Stretch, None] = OrderedDict()
        self.holds: dict[Request, Hold] = {}
        #: findable blocks that others were put in the place of, as far as anybody has looked
        self._evicted = 0
        #: called with each run of findable blocks (key, first, behind the last) that is lost
        self.on_loss: Callable[[Hashable, int, int], None] | None = None
        #: called with a key and the block from which on nothing that was known of it holds any more
        self.on_rewrite: Callable[[Hashable, int], None] | None = None
        self._looked_at: tuple[Request | None, list[Piece]] = (None, [])

    # ---- questions --------------------------------------------------------------------------------

    @property
    def has_idle(self) -> bool:
        """Whether blocks with something in them that can be found are held by nobody."""
        return bool(self._queue)

    @property
    def queued(self) -> int:
        """Blocks in the queue, those that somebody has taken since the last look included."""
        return self.given - self._taken

    def find(self, request: Request, free_blocks: int) -> tuple[int, int] | None:
        """Return how many blocks of a request are in the cache, and how many of those nobody holds.

        None: there can be none, as it shares KV with nobody and has left nothing here that was its own.
        """
        if not self._may_find(request):
            return None
        self.evict(free_blocks)
        limit = (request.input_tokens + request.generated - 1) // self._block_size
        found = idle = 0
        for key, first, stop in self.pieces(request):
            span = self._spans.get(key)
            if span is None:
                break
            found = int(min(span.cached, stop, limit))
            idle += max(found - max(span.held, first), 0)
            if found < stop:
                break
        return found, idle

    def _may_find(self, request: Request) -> bool:
        """Say whether a request shares KV with others, or has left some here that was its own."""
        if request in self._spans or self.on_loss is not None:
            return True
        origin = request.origin
        return self._shares and (origin.stream is not None or bool(origin.prefix))

    def pieces(self, request: Request) -> list[Piece]:
        """Return the pieces of a request's sequence that hold at least one block, and the open end."""
        if request is self._looked_at[0]:
            return self._looked_at[1]
        first, pieces = 0, list[Piece]()
        prefix, stream = (request.origin.prefix, request.origin.stream) if self._shares else ((), None)
        for key, end in prefix:
            stop = end // self._block_size
            if stop > first:
                pieces.append((key, first, stop))
                first = stop
        pieces.append((request if stream is None else stream, first, inf))
        self._looked_at = request, pieces
        return pieces

    # ---- acts -------------------------------------------------------------------------------------

    def hold(self, request: Request, blocks: int) -> None:
        """Let a request hold its first ``blocks`` blocks, all of them found."""
        pieces = self.pieces(request)
        for key, first, stop in pieces:
            if first >= blocks:
                break
            span, end = self._spans[key], int(min(stop, blocks))
            self._take(span, end)
            span.join(end)
        self.holds[request] = Hold(pieces, blocks)

    def name(self, request: Request, blocks: int, *, own: bool = False, loaded: bool = False) -> None:
        """Let a request's first ``blocks`` blocks be found, if it holds any that anybody would look for.

        ``own``: also those that only it asks for. ``loaded``: they are copies of what others may still find.
        """
        hold = self.holds.get(request)
        if hold is None:
            return
        for key, first, stop in hold.pieces:
            end, begin = int(min(stop, blocks)), max(hold.named, first)
            if end <= begin:
                continue
            if key is request and not own:
                break
            span = self._spans.get(key)
            if span is None:
                span = self._spans[key] = Span(key, first)
            if span.held > begin:
                break
            self._forget(span, begin)
            if hold.named > first:
                span.leave(hold.named)
            span.join(end)
            span.cached = hold.named = end
            if self.on_rewrite is not None and not loaded:
                self.on_rewrite(key, end)

    def leave(self, request: Request, tokens: int) -> int:
        """Let go of the blocks of so many tokens of a request that has ended; return how many are free."""
        if request in self.holds:
            freed = self._release(request, tokens, ends=True)
            self._forget_own(request)
            return freed
        blocks = -(-tokens // self._block_size)
        self.given += blocks
        return blocks

    def lose(self, request: Request, tokens: int) -> int:
        """Let go of the blocks of so many tokens of one that will come back; return how many are free."""
        if request not in self.holds:
            self.hold(request, 0)
        return self._release(request, tokens, ends=False)

    def _release(self, request: Request, tokens: int, *, ends: bool) -> int:
        """Let go of the blocks of so many tokens; return how many of them are free now.

        A request that ``ends`` will not ask for what is its own.
        """
        self.name(request, tokens // self._block_size, own=not ends)
        hold = self.holds.pop(request)
        blank = -(-tokens // self._block_size) - hold.named
        freed = blank
        for key, first, stop in reversed(hold.pieces):
            if first >= hold.named:
                continue
            span, end = self._spans[key], int(min(stop, hold.named))
            if ends and key is request:
                blank += end - first
                freed += end - first
                continue
            span.leave(end)
            if end > span.held:
                self._put(span, span.held, end, blank)
                freed += end - span.held
                blank = 0
        self.given += blank
        return freed

    def forget(self, request: Request, free_blocks: int) -> None:
        """Keep nothing that only this request would have asked for: it will not come back."""
        self.evict(free_blocks)
        self._forget_own(request)

    def _forget_own(self, request: Request) -> None:
        """Let nobody find what only a request would have asked for."""
        if self.on_rewrite is not None:
            self.on_rewrite(request, 0)
        if request in self._spans:
            self._forget(self._spans.pop(request), 0)

    def lost(self, free_blocks: int) -> int:
        """Return how many blocks were lost so far that a request could have found."""
        self.evict(free_blocks)
        return self._evicted

    # ---- the queue --------------------------------------------------------------------------------

    def _put(self, span: Span, low: int, high: int, blank: int) -> None:
        """Put blocks of a span at the tail, behind those that were only counted and ``blank`` more."""
        stretch = Stretch(span, low, high, self.given + blank - self._noted)
        self.given += blank + high - low
        self._noted = self.given
        self._queue[stretch] = None
        span.idle.append(stretch)

    def _take(self, span: Span, end: int) -> None:
        """Take a span's blocks before ``end`` out of the queue, wherever they stand."""
        idle = span.idle
        while idle and (stretch := idle[-1]).low < end:
            low = min(stretch.high, end)
            self._taken += low - stretch.low
            stretch.low = low
            if low == stretch.high:
                idle.pop()
                self._drop_if_empty(stretch)

    def _forget(self, span: Span, begin: int) -> None:
        """Let nobody find the idle blocks of a span from ``begin`` on any more; they stay in the queue."""
        idle = span.idle
        while idle and (stretch := idle[0]).high > begin:
            low = max(stretch.low, begin)
            stretch.blank += stretch.high - low
            stretch.high = low
            if low > stretch.low:
                break
            idle.popleft()

    def _drop_if_empty(self, stretch: Stretch) -> None:
        """Take a stretch that stands for no blocks any more out of the queue."""
        if not stretch.blank and stretch.low == stretch.high:
            del self._queue[stretch]

    def evict(self, free_blocks: int) -> None:
        """Take from the head what has been taken since the last look: all but so many free blocks."""
        surplus = self.queued - free_blocks
        if surplus <= 0:
            return
        self._taken += surplus
        while surplus and self._queue:
            stretch = next(iter(self._queue))
            span, high = stretch.span, stretch.high
            surplus -= stretch.shrink(surplus)
            if stretch.high < high:
                self._evicted += high - stretch.high
                if self.on_loss is not None:
                    self.on_loss(span.key, stretch.high, high)
            if stretch.low == stretch.high and span.idle and span.idle[0] is stretch:
                span.idle.popleft()
            if span.is_empty and self._spans.get(span.key) is span:
                del self._spans[span.key]
            self._drop_if_empty(stretch)
        self._noted += surplus
