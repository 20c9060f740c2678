"""Timing by events, with stand-ins for CUDA's events and graphs that keep the order of what happens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from calibration.measure.protocol import REPLAYS
from tests.calibration.measure.kernels import torch

from calibration.measure import machine  # isort: skip
from calibration.measure.bench import Bench, Prepared  # isort: skip
from calibration.measure.timer import Timer  # isort: skip

CALL_S = 0.002


class Gpu:
    """A GPU whose clock goes on by CALL_S with every call that is run, and only then."""

    def __init__(self, refuses_capture: bool = False) -> None:
        self.now, self.ran, self.capturing = 0.0, [], False
        self.refuses_capture = refuses_capture

    def call(self, number: int) -> None:
        if self.capturing:
            if self.refuses_capture:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.graph.append(number)
        else:
            self.now += CALL_S
            self.ran.append(number)

    def event(self, enable_timing: bool) -> Any:
        made = SimpleNamespace()
        made.record = lambda: setattr(made, "at", self.now)
        made.elapsed_time = lambda end: (end.at - made.at) * 1e3
        return made

    @contextmanager
    def capture(self, graph: Any) -> Iterator[None]:
        self.graph: list[int] = []
        self.capturing = True
        try:
            yield
        finally:
            self.capturing = False

    def replayed(self) -> Any:
        return SimpleNamespace(replay=lambda: [self.call(number) for number in self.graph])


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def run(gpu: Gpu, **how: Any) -> Any:
        monkeypatch.setattr(torch.cuda, "Event", gpu.event)
        monkeypatch.setattr(torch.cuda, "graph", gpu.capture)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", gpu.replayed)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        bench = Bench("cpu")
        monkeypatch.setattr(Bench, "is_cpu", property(lambda self: False))
        bench.__dict__["cache_bytes"] = 1 << 10
        calls = tuple(partial(gpu.call, number) for number in range(4))
        return Timer(bench).timed(Prepared(calls, "made", **how))

    return run


def test_calls_are_replayed_as_a_graph_and_a_round_goes_through_all_of_them(
    timed: Callable[..., Any],
) -> None:
    gpu = Gpu()
    timing = timed(gpu)
    assert timing.how == "graph"
    assert timing.seconds == pytest.approx(CALL_S)
    assert timing.fastest == pytest.approx(timing.slowest)
    assert gpu.ran == [0, 1, 2, 3] * (1 + 2 + timing.rounds)


def test_long_calls_are_repeated_a_few_times_and_short_ones_often(
    timed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    least, most = REPLAYS
    for seconds, rounds in ((1.0, least), (1e-6, most)):
        monkeypatch.setattr(f"{__name__}.CALL_S", seconds)
        assert timed(Gpu()).rounds == rounds


def test_what_cannot_be_captured_is_launched_and_says_so(timed: Callable[..., Any]) -> None:
    timing = timed(Gpu(refuses_capture=True))
    assert timing.how == "eager"
    assert timing.seconds == pytest.approx(CALL_S)
    assert timed(Gpu(), capture=False).how == "eager"


def test_what_must_be_captured_is_an_error_otherwise(timed: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="not permitted"):
        timed(Gpu(refuses_capture=True), capture=True)


def test_data_is_brought_back_before_every_round_outside_the_time(timed: Callable[..., Any]) -> None:
    gpu = Gpu()

    def reset() -> None:
        gpu.now += 1000
        gpu.ran.append(-1)

    timing = timed(gpu, reset=reset)
    assert timing.seconds == pytest.approx(CALL_S)
    assert gpu.ran == [0, 1, 2, 3] + [-1, 0, 1, 2, 3] * (2 + timing.rounds)


def test_what_nvidia_smi_tells_is_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def smi(command: list[str], **_: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(stdout="1980, 2619, [N/A]\n")

    monkeypatch.setattr(machine.subprocess, "run", smi)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="ab-cd"))
    bench = Bench("cpu")
    monkeypatch.setattr(Bench, "is_cpu", property(lambda self: False))
    clocks = machine.Clocks(bench)
    told = {"sm_clock_mhz": 1980.0, "memory_clock_mhz": 2619.0, "power_limit_w": None}
    assert clocks.now() == clocks.now() == told
    assert len(asked) == 1
    assert asked[0][-2:] == ["-i", "GPU-ab-cd"]


def test_without_nvidia_smi_there_are_no_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(command: list[str], **_: Any) -> Any:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(machine.subprocess, "run", absent)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace())
    bench = Bench("cpu")
    monkeypatch.setattr(Bench, "is_cpu", property(lambda self: False))
    assert set(machine.Clocks(bench).now().values()) == {None}
