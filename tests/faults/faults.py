"""The faults: small edits of servesim, each of which makes it wrong in one way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """One edit: ``text`` stands once in ``file`` (below the project's root) and becomes ``replacement``."""

    name: str
    file: str
    text: str
    replacement: str

    def plant(self, root: Path) -> None:
        """Edit the copy of the project that stands at ``root``."""
        path = root / self.file
        source = path.read_text(encoding="utf-8")
        found = source.count(self.text)
        if found != 1:
            raise ValueError(f"{self.name}: {self.file} has the text to replace {found} times, not once")
        path.write_text(source.replace(self.text, self.replacement), encoding="utf-8")


ENGINE = "servesim/engine/continuous_engine.py"
SCHEDULING = "servesim/engine/scheduling.py"
KV = "servesim/engine/kv_cache.py"
CACHE = "servesim/engine/prefix_cache.py"
LEFTOVERS = "servesim/engine/leftovers.py"
DECODES = "servesim/engine/decodes.py"
LEAP = "servesim/engine/leap.py"
FAIR = "servesim/engine/queue_order/fair_queue.py"
SORTED = "servesim/engine/queue_order/sorted_queue.py"
STEP_TARGET = "servesim/engine/step_target.py"
STALLING = "servesim/engine/stalling.py"
SWAP = "servesim/engine/swap_space.py"
TIER = "servesim/engine/tier.py"
TIERED = "servesim/engine/tiered_engine.py"
STATIC = "servesim/engine/static.py"
SPLIT = "servesim/engine/disaggregated.py"
CLUSTER = "servesim/cluster/cluster.py"
HAND_OVER = "servesim/cluster/disaggregated_cluster.py"
CLIENT = "servesim/cluster/client.py"
PATIENCE = "servesim/cluster/patience.py"
CONVERSATIONS = "servesim/cluster/conversations.py"
SESSION = "servesim/workload/session.py"

FAULTS = (
    # ---- the growth of KV blocks
    Fault(
        "decoding takes its blocks one step late",
        DECODES,
        "return self._growth[self.step % self._block_size]",
        "return self._growth[(self.step - 1) % self._block_size]",
    ),
    Fault(
        "a leap forgets the blocks of its last step",
        ENGINE,
        "decodes.blocks_after(steps - 1)",
        "decodes.blocks_after(steps - 2)",
    ),
    Fault(
        "a finished request gives back a block for its last token too",
        ENGINE,
        "kv.leave(request, request.input_tokens + request.output_tokens - 1)",
        "kv.leave(request, request.input_tokens + request.output_tokens)",
    ),
    # ---- the boundary of a step
    Fault(
        "an interrupted leap ends one step late",
        LEAP,
        "steps = self._steps_until(time_s)\n        if steps == self.steps:",
        "steps = min(self._steps_until(time_s) + 1, self.steps)\n        if steps == self.steps:",
    ),
    Fault(
        "a leap goes one step beyond a break of the step time",
        ENGINE,
        "int((limit - context) // growth) + 1",
        "int((limit - context) // growth) + 2",
    ),
    Fault(
        "an arrival on a boundary is left to rounding",
        "servesim/engine/clock.py",
        "EARLY_S = 1e-7",
        "EARLY_S = 0.0",
    ),
    Fault(
        "the step that the horizon cuts is counted",
        LEAP,
        "return steps if self.end_of(steps) <= time_s else steps - 1",
        "return steps",
    ),
    # ---- the order of preemption
    Fault(
        "the first running request is preempted, not the last",
        SCHEDULING,
        "request, _ = self.running.popitem()",
        "del self.running[request := next(iter(self.running))]",
    ),
    Fault(
        "a preempted request goes to the tail of the queue",
        SCHEDULING,
        "self.waiting.appendleft(request)",
        "self.waiting.append(request)",
    ),
    Fault(
        "a step that preempts admits as well",
        ENGINE,
        "if not preempted and (self.waiting or self._lands):",
        "if self.waiting or self._lands:",
    ),
    # ---- prefix caching
    Fault(
        "blocks that others took are found again",
        CACHE,
        "surplus = self.queued - free_blocks",
        "surplus = 0",
    ),
    Fault(
        "a block that is not full is found again",
        CACHE,
        "self.name(request, tokens // self._block_size, own=not ends)",
        "self.name(request, -(-tokens // self._block_size), own=not ends)",
    ),
    Fault(
        "blocks given back later are taken sooner",
        KV,
        "            blocks = -(-tokens // self.block_size)\n"
        "            self.free += blocks\n            self._reuse.given += blocks\n",
        "            self.free += -(-tokens // self.block_size)\n",
    ),
    Fault(
        "what a preempted request finds again stays in the queue of free blocks",
        LEFTOVERS,
        "            self.given -= blocks\n",
        "",
    ),
    Fault(
        "a preempted request finds a block that has been taken",
        LEFTOVERS,
        "left = end - self.given + free_blocks\n",
        "left = end - self.given + free_blocks + 1\n",
    ),
    Fault(
        "a preempted request finds a block that was not full",
        LEFTOVERS,
        "self.given, tokens // self._block_size",
        "self.given, blocks",
    ),
    Fault(
        "the last token of a prompt is found",
        CACHE,
        "limit = (request.input_tokens + request.generated - 1) //",
        "limit = (request.input_tokens + request.generated) //",
    ),
    Fault(
        "blocks that others hold are taken once more",
        KV,
        "request.blocks = self._found - idle",
        "request.blocks = 0",
    ),
    Fault(
        "an answer cannot be found",
        CACHE,
        "self.name(request, tokens // self._block_size, own=not ends)\n",
        "pass\n",
    ),
    Fault(
        "what is found stays where it is in the queue",
        CACHE,
        "            self._take(span, end)\n",
        "",
    ),
    # ---- swapping
    Fault(
        "copies take no time",
        SWAP,
        "seconds = self.ordered * self._block_s",
        "seconds = 0.0",
    ),
    Fault(
        "the host takes more than it has room for",
        SWAP,
        "if blocks > self.free:",
        "if blocks > self.blocks:",
    ),
    Fault(
        "what is found on the GPU is copied back as well",
        SWAP,
        "missing = max(self.drop(request) - found, 0)",
        "missing = self.drop(request)",
    ),
    # ---- KV tiers
    Fault(
        "what is being written is read",
        TIER,
        " and run.ready_s <= now",
        "",
    ),
    Fault(
        "what a tier has just given is lost first",
        TIER,
        "                self._order.move_to_end(run)\n",
        "                self._order.move_to_end(run, last=False)\n",
    ),
    Fault(
        "an old answer is found behind the beginning of a new one",
        CACHE,
        "if self.on_rewrite is not None and not loaded:",
        "if False:",
    ),
    Fault(
        "what is loaded takes no room",
        TIERED,
        "        self.kv.free -= room\n",
        "",
    ),
    Fault(
        "what has been loaded is computed as well",
        TIERED,
        "        request.computed += tokens\n",
        "",
    ),
    # ---- the limits of a step
    Fault(
        "one sequence too many",
        SCHEDULING,
        "budget > 0 and len(running) < self.max_num_seqs",
        "budget > 0 and len(running) <= self.max_num_seqs",
    ),
    Fault(
        "chunks beyond the first do not use up the token budget",
        SCHEDULING,
        "for _, tokens in self._chunks:",
        "for _, tokens in self._chunks[:1]:",
    ),
    # ---- a request that is lost
    Fault(
        "a request whose output is capped is dropped",
        CLUSTER,
        "self.length_capped += 1\n",
        "self.length_capped += 1\n            return\n",
    ),
    Fault(
        "a preempted request is forgotten",
        SCHEDULING,
        "        self.waiting.appendleft(request)\n",
        "",
    ),
    # ---- disaggregation
    Fault(
        "the transfer is forgotten",
        HAND_OVER,
        "self._links.send(source, target, size_bytes, partial(self._landed, request))",
        "self._landed(request)",
    ),
    Fault(
        "the prefill replica keeps the blocks of a prompt that has arrived",
        SPLIT,
        "self.kv.leave(request, request.input_tokens)",
        "",
    ),
    Fault(
        "room for a prompt is promised twice",
        SPLIT,
        "            self.kv.free -= room\n",
        "",
    ),
    Fault(
        "the preempted go before the landed",
        SPLIT,
        "for queue in (self.landed, self.waiting):",
        "for queue in (self.waiting, self.landed):",
    ),
    # ---- queue orders and prefill policies
    Fault(
        "a preempted request comes back behind its equals",
        SORTED,
        "self._returns -= 1",
        "self._returns += 1",
    ),
    Fault(
        "the best class makes room",
        "servesim/engine/queue_order/priority.py",
        "self._classes[max(self._classes)]",
        "self._classes[min(self._classes)]",
    ),
    Fault(
        "who was away has saved up service",
        FAIR,
        "account.lift += max(least - account.counter(step), 0)",
        "account.lift += 0",
    ),
    Fault(
        "a prompt is charged again after a preemption",
        FAIR,
        "if not request.preemptions:",
        "if request is not None:",
    ),
    Fault(
        "a tenant that comes next in the middle of a leap waits for its end",
        FAIR,
        "return int(min(super().steps_to_finish(), self._queue.steps_to_change()))",
        "return super().steps_to_finish()",
    ),
    Fault(
        "a tenant comes next one step late",
        FAIR,
        "lead // -gain + 1",
        "lead // -gain + 2",
    ),
    Fault(
        "who was thrown out may come back in the same step",
        "servesim/engine/preemptive.py",
        "self._barred = min(self._barred, victim.origin.priority)",
        "pass",
    ),
    Fault(
        "prompts leave the decodes their tokens of a step that they do not share",
        STALLING,
        "self._each_takes = 0",
        "self._each_takes = 1",
    ),
    Fault(
        "who joins in a stall has waited for all of it",
        STALLING,
        "self._joined[request] = now",
        "self._joined[request] = self._stalled_s",
    ),
    Fault(
        "a preemption behind a stall costs no more than one without",
        STALLING,
        "request.paused_s = joined_s",
        "pass",
    ),
    Fault(
        "a batch stays open while it decodes",
        STALLING,
        "self._closed = self._one_batch",
        "self._closed = False",
    ),
    # ---- static batching
    Fault(
        "rows that have finished are not computed",
        STATIC,
        "rows, room = self._rows,",
        "rows, room = len(self.running),",
    ),
    Fault(
        "the newest request's waiting counts, not the oldest's",
        STATIC,
        "self.waiting[0].arrived_s + self.timeout_s",
        "self.waiting[-1].arrived_s + self.timeout_s",
    ),
    # ---- the client
    Fault(
        "of those that wait in the client the last is sent first",
        CLIENT,
        "self._waiting.popleft()",
        "self._waiting.pop()",
    ),
    Fault(
        "the semaphore lets one request too many out",
        CLIENT,
        "self._free = max_concurrency",
        "self._free = max_concurrency + 1",
    ),
    Fault(
        "an answer makes no room where nobody waits",
        CLIENT,
        "            self._free += 1\n",
        "",
    ),
    Fault(
        "a client that waits for answers forgets the API time",
        "servesim/cluster/listener.py",
        "request.arrived_s = sent_s + self._api_time_s",
        "request.arrived_s = sent_s",
    ),
    # ---- clients that hang up
    Fault(
        "a request that was given up keeps its blocks",
        SCHEDULING,
        "        self.kv.leave(request, request.computed + tokens)\n",
        "",
    ),
    Fault(
        "who hangs up makes room only when the leap has ended",
        ENGINE,
        "return self._leap.cut(now) if self._leap.steps else now",
        "return None if self._leap.steps else now",
    ),
    Fault(
        "who hangs up stays in the queue",
        ENGINE,
        "            self.waiting.remove(request)\n",
        "            pass\n",
    ),
    Fault(
        "what lands is decoded, whether anybody waits for it or not",
        HAND_OVER,
        "came = target.engine.land if request in self._open else target.engine.decline",
        "came = target.engine.land",
    ),
    Fault(
        "time-outs come a millisecond late",
        PATIENCE,
        "self._limit_s = limit_s",
        "self._limit_s = limit_s + 1e-3",
    ),
    Fault(
        "nobody hears that the last attempt has failed",
        PATIENCE,
        "elif self.on_leave is not None:",
        "elif self.on_leave is not None and not failed:",
    ),
    Fault(
        "a turn is sent the wait of the turn before it after the answer",
        SESSION,
        "answered_s + self.waits_s[turn]",
        "answered_s + self.waits_s[turn - 1]",
    ),
    Fault(
        "a prompt leaves out the answers before it",
        CONVERSATIONS,
        "session.prompt(turn, request.input_tokens + request.output_tokens)",
        "session.prompt(turn, request.input_tokens)",
    ),
    # ---- steps of a given length
    Fault(
        "what a prompt has computed before takes no time",
        STEP_TARGET,
        "[*chunks, (tokens, cached)]",
        "[*chunks, (tokens, 0)]",
    ),
    Fault(
        "nobody looks again for who may come in before a decode ends",
        STEP_TARGET,
        "return end_s if waits else self._leap.cut(now) or end_s",
        "return end_s",
    ),
    # ---- what prompts share
    Fault(
        "prompts share on where others have parted",
        "servesim/workload/formats/prefixes.py",
        "(ways[before] == 1)",
        "(ways[before] >= 1)",
    ),
)
