"""The verb ``servesim dashboard``: what it needs, what it refuses, and how it ends."""

import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest

from servesim import ConfigError, dashboard
from servesim.cli import main
from tests.dashboards import needs_dash, served


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_the_help_says_where_it_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--help"]) == 0
    assert "127.0.0.1" in capsys.readouterr().out


def test_without_dash_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dashboard, "find_spec", lambda name: None)
    assert main(["dashboard"]) == 1
    said = capsys.readouterr().err
    assert "pip install -e '.[dashboard]'" in said
    assert len(said.splitlines()) == 2


@needs_dash
def test_a_port_in_use_is_refused_in_a_sentence(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--port", str(taken)]) == 1
    said = capsys.readouterr().err
    assert f"127.0.0.1:{taken}: cannot be listened at (Address already in use)" in said
    assert len(said.splitlines()) == 2


@needs_dash
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["."], "holds no sweep (sweep.parquet) and no run (summary.json)"),
        (["--port", "70000"], "cannot be listened at"),
        (["--port", "http"], "invalid int value"),
        (["--colour"], "unrecognized arguments: --colour"),
    ],
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dashboard", *arguments]) == 1
    assert message in capsys.readouterr().err


@needs_dash
def test_it_listens_on_this_machine_alone_and_ends_with_ctrl_c() -> None:
    with served() as address, urllib.request.urlopen(address, timeout=30) as page:
        assert b"servesim dashboard" in page.read()


@needs_dash
def test_it_ends_with_ctrl_c_while_nobody_has_asked_for_anything() -> None:
    with served():
        pass


class _Finalized:
    """What presses Ctrl-C as it is deleted, where Python drops exceptions."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@needs_dash
def test_it_ends_with_ctrl_c_though_python_is_just_deleting_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pressed_again = Event()

    def press_again() -> None:
        pressed_again.set()
        signal.raise_signal(signal.SIGINT)

    def print_and_delete(*said: str, flush: bool) -> None:
        _Finalized()
        later.start()

    later = Timer(10.0, press_again)
    monkeypatch.setattr(dashboard, "print", print_and_delete, raising=False)
    before = signal.getsignal(signal.SIGINT)
    assert main(["dashboard", "--port", "0"]) == 0
    later.cancel()
    assert not pressed_again.is_set()
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is before


def test_no_host_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--host", ""]) == 1
    assert "--host = '': is no address" in capfd.readouterr().err


@pytest.mark.parametrize(("host", "said"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")])
def test_an_address_of_either_kind_is_listened_at(host: str, said: str) -> None:
    try:
        listening = dashboard._listening(host, 0)
    except ConfigError:
        pytest.skip("this machine has no such addresses")
    with listening:
        assert dashboard._address(listening.getsockname()[0]) == said
