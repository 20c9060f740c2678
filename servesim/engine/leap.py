"""A run of steps of one unchanged batch, in closed form."""

from __future__ import annotations

from math import sqrt


class Leap:
    """The steps under way: ``steps`` of them from ``start_s`` on, step j lasting first_s + j * increment_s.

    While a batch does not change, each decode step adds one token to each sequence, and the step's
    duration is affine in the total context; so the durations of successive steps are an arithmetic
    progression, K steps take K * first + increment * K * (K - 1) / 2, and asking how many steps end before
    a given time is solving a quadratic. No steps: nothing is under way.
    """

    __slots__ = ("end_s", "first_s", "increment_s", "start_s", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.start_s = self.end_s = self.first_s = self.increment_s = 0.0

    def begin(self, start_s: float, steps: int, first_s: float, increment_s: float) -> float:
        """Start ``steps`` steps; return when they end."""
        self.start_s = start_s
        self.steps = steps
        self.first_s = first_s
        self.increment_s = increment_s
        self.end_s = start_s + (steps * first_s + increment_s * (steps * (steps - 1) * 0.5))
        return self.end_s

    def begin_one(self, start_s: float, duration_s: float) -> float:
        """Start a single step; return when it ends."""
        self.start_s = start_s
        self.steps = 1
        self.first_s = duration_s
        self.increment_s = 0.0
        self.end_s = end_s = start_s + duration_s
        return end_s

    def cut(self, time_s: float) -> float | None:
        """Drop the steps after the first boundary at or after ``time_s``; return the end, if it changed."""
        if self.steps == 1:
            return None
        steps = self._steps_until(time_s)
        if steps == self.steps:
            return None
        return self.begin(self.start_s, steps, self.first_s, self.increment_s)

    def ended(self, time_s: float) -> int:
        """Return how many of the steps have ended by ``time_s``."""
        if not self.steps:
            return 0
        steps = self._steps_until(time_s)
        return steps if self.end_of(steps) <= time_s else steps - 1

    def halt(self, time_s: float) -> bool:
        """Drop the steps that end after ``time_s``; say whether any step is left."""
        if self.steps and self.end_s > time_s:
            steps = self.ended(time_s)
            self.begin(self.start_s, steps, self.first_s, self.increment_s)
        return self.steps > 0

    def begun(self, time_s: float) -> int:
        """Return how many steps have begun by ``time_s``."""
        if not self.steps:
            return 0
        steps = self._steps_until(time_s)
        return min(steps + (self.end_of(steps) <= time_s), self.steps)

    def end_of(self, steps: int) -> float:
        """Return when so many of the steps have ended."""
        return self.start_s + (steps * self.first_s + self.increment_s * (steps * (steps - 1) * 0.5))

    def _steps_until(self, time_s: float) -> int:
        """Return the least number of steps (at least 1, at most all) whose end is at or after ``time_s``.

        The quadratic's root is only a first guess: rounding may put it one off, so it is corrected both
        ways with the very formula that plans the end.
        """
        elapsed, slope = time_s - self.start_s, self.increment_s
        if elapsed <= 0:
            return 1
        if slope > 0:
            half = self.first_s - slope * 0.5
            guess = (sqrt(half * half + 2 * slope * elapsed) - half) / slope
        else:
            guess = elapsed / self.first_s
        steps = min(max(int(guess), 1), self.steps)
        while steps < self.steps and self.end_of(steps) < time_s:
            steps += 1
        while steps > 1 and self.end_of(steps - 1) >= time_s:
            steps -= 1
        return steps
