"""What was done to the rows of a trace before they became requests."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

#: Longer than any recording: a time beyond it (seconds) is a date.
YEAR_S = 365 * 86400


@dataclass(frozen=True)
class Notes:
    """Counts of what was read, left out and changed."""

    rows: int
    """Rows of the file."""
    requests: int
    """Requests made of them; the rest lies outside the window or past ``requests`` or ``duration_s``."""
    out_of_order: int
    """Rows of the file that are earlier than the row before them; all were sorted by time."""
    same_time: int
    """Requests sent at the very time of the one before them."""
    zero_outputs: int
    """Requests of 0 output tokens, which run as 1."""
    shifted_s: float
    """Recorded time of the first request (seconds), which became 0."""
    no_requests: tuple[tuple[str, int], ...] = ()
    """Rows of the file that are no requests, such as failed ones: why, and how many."""
    remarks: tuple[str, ...] = ()
    """Sentences on how the file was read."""

    def as_dict(self) -> dict[str, int | float]:
        """Return the counts by name."""
        counts = dataclasses.asdict(self)
        return {name: count for name, count in counts.items() if name not in ("no_requests", "remarks")}

    def lines(self) -> list[str]:
        """Return one line for each thing that was done; nothing done, no line."""
        counted = {
            f"rows left out: {self.rows - self.requests:,} of {self.rows:,}": self.rows - self.requests,
            **{f"of these {why}: {count:,}": count for why, count in self.no_requests},
            f"rows out of order, sorted by time: {self.out_of_order:,}": self.out_of_order,
            f"requests at the same time as the one before: {self.same_time:,}": self.same_time,
            f"requests with 0 output tokens, run as 1: {self.zero_outputs:,}": self.zero_outputs,
            f"times counted from the first request{self._recorded()}": self.shifted_s,
        }
        return [*self.remarks, *(line for line, count in counted.items() if count)]

    def _recorded(self) -> str:
        """Return when the first request was recorded, where that is no date."""
        return f", recorded at {self.shifted_s:,.3f} s" if abs(self.shifted_s) < YEAR_S else ""
