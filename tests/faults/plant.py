"""Plants each fault in a copy of the project and shows that the tests catch it.

Run it with ``python -m tests.faults.plant``. It prints which test caught each fault and how long that took,
and exits with 1 where a fault was not caught, or where the tests fail without any fault.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from tests.faults.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]

LIMIT_S = 60.0
"""A fault has to be caught within this time."""

INTERRUPTED = 2
"""The exit status of pytest where the first failure ends several processes; 1 where it ends one."""

SUITE = (
    "tests/engine/test_leftovers.py",
    "tests/engine/test_swap_space.py",
    "tests/engine/test_tier.py",
    "tests/engine/test_tiered_engine.py",
    "tests/laws/test_swapping.py",
    "tests/laws/test_kv_tiers.py::test_every_block_is_free_or_held_and_no_tier_is_fuller_than_full",
    "tests/laws/test_client.py",
    "tests/laws/test_conversations.py",
    "tests/workload/formats/test_prefixes.py",
    "tests/laws/test_queue_orders.py",
    "tests/oracle/test_equality.py::test_fixed_cases_are_equal_and_reach_every_regime",
    "tests/oracle/test_equality.py::test_a_horizon_cuts_both_alike",
    "tests/oracle/test_policies.py::test_queue_orders",
    "tests/oracle/test_policies.py::test_prefill_policies",
    "tests/laws/test_conservation.py",
    "tests/laws/test_patience.py",
    "tests/oracle/test_equality.py::test_those_who_hang_up_are_the_same_to_both",
    "tests/laws/test_causality.py",
    "tests/laws/test_parts.py",
)


@dataclass(frozen=True)
class Verdict:
    """What the tests said: ``caught_by`` is the first test that failed, or empty where none did."""

    caught_by: str
    seconds: float


def judge(fault: Fault | None, limit_s: float = LIMIT_S) -> Verdict:
    """Run the tests on a copy of the project, with a fault or without."""
    with project_copy() as root:
        if fault is not None:
            fault.plant(root)
        started_s = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *SUITE]
        environment = {**os.environ, "CI": "1", "PYTHONPATH": str(root)}
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
        seconds = time.monotonic() - started_s
    failed = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    if done.returncode > INTERRUPTED or bool(done.returncode) != bool(failed):
        raise RuntimeError(f"the tests could not run:\n{done.stdout}{done.stderr}")
    return Verdict(failed[1] if failed else "", seconds)


@contextmanager
def project_copy() -> Iterator[Path]:
    """Give a copy of what the tests need, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy(ROOT / "pyproject.toml", root)
        for part in ("servesim", "tests"):
            copytree(ROOT / part, root / part, ignore=ignore_patterns("__pycache__"))
        yield root


def main() -> int:
    """Print a table of the faults and what caught them; return the exit status."""
    clean = judge(None, limit_s=10 * LIMIT_S)
    print(f"{clean.seconds:5.1f} s  without a fault: {clean.caught_by or 'all tests pass'}")
    missed = 0
    for fault in FAULTS:
        try:
            verdict = judge(fault)
        except subprocess.TimeoutExpired:
            verdict = Verdict("", LIMIT_S)
        missed += not verdict.caught_by
        caught_by = verdict.caught_by.removeprefix("tests/") or "NOT CAUGHT"
        print(f"{verdict.seconds:5.1f} s  {fault.name:<64}  {caught_by}", flush=True)
    print(f"{len(FAULTS) - missed} of {len(FAULTS)} faults caught")
    return int(bool(missed or clean.caught_by))


if __name__ == "__main__":
    sys.exit(main())
