"""How a time is taken: how many calls, of how many buffers, how often."""

from __future__ import annotations

#: Calls that are captured and replayed together, at most. Each has weights or KV of its own until these fill
#: twice the L2 cache; calls without any share their activations, which are in the cache in a server, too.
MOST_CALLS = 32

#: Replays go on for this long, but are at least and at most so many; two more come first.
TARGET_S = 0.03
REPLAYS = (5, 50)

#: Replays of a collective: as many on every GPU, or one would wait for ever.
COLLECTIVE_REPLAYS = 20

#: On a CPU: calls, and rounds of them.
CPU_CALLS, CPU_ROUNDS = 2, 3
