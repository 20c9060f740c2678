"""What the screen says of KV that left the GPUs."""

from servesim.screen.tiers import kv_tiers, swapped


def test_tiers_are_told_with_their_room_and_how_busy_their_links_were() -> None:
    host = {"blocks": 200, "used_blocks": 50, "written_blocks": 1234, "loaded_blocks": 1}
    busy = {"write_busy": 0.25, "load_busy": 0.001}
    media = {"host": {"capacity": 1.5}, "store": None}
    assert kv_tiers({"loaded_tokens": 16000, "host": host | busy, "store": None}, media).splitlines() == [
        "16,000 tokens loaded in place of being computed",
        "host: 1.5 GiB per replica, 25.0% in use at the end; "
        "1,234 blocks written (25.0% busy), 1 loaded (0.1% busy)",
    ]


def test_swapping_tells_who_was_refused() -> None:
    nothing = dict.fromkeys(("out", "refused", "out_blocks", "in_blocks", "seconds"), 0)
    assert swapped(nothing) == "nothing was swapped"
    swap = {"out": 1, "refused": 0, "out_blocks": 1, "in_blocks": 0, "seconds": 0.5}
    assert swapped(swap) == "1 preemption: 1 block to the host and 0 back, 0.5 s of steps"
    assert swapped(swap | {"refused": 2}).endswith("; 2 found the host full and recomputed")
