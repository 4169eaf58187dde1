from __future__ import annotations

import pytest

from diptych.cli import progress as module
from diptych.cli.progress import progress
from diptych.core.context import task


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until it is moved."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_now_and_then(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress(), task("reading", 100, "pictures", done=20) as bar:
        for _ in range(4):
            clock[0] += 4
            bar.advance(10, "all well")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "reading 50/100 pictures  2.5/s  0:20 left  all well",
        "reading 60/100 pictures  2.5/s  in 16 s  all well",
    ]


def test_what_is_short_says_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress(), task("reading", 2, "pictures") as bar:
        clock[0] += 1
        bar.advance(2)
    assert capsys.readouterr().err == ""


def test_other_processes_are_silent(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    with progress(), task("reading", 2, "pictures") as bar:
        clock[0] += 60
        bar.advance(2)
    assert capsys.readouterr().err == ""


def test_bars_on_a_terminal(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from rich.console import Console

    screen = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(module, "console", lambda stderr: screen)
    with progress(), task("training", None, "steps"), task("reading", 10, "pictures") as bar:
        clock[0] += 5
        bar.advance(10, "all well")
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "reading" in shown
    assert "10/10" in shown
    assert "2.0/s" in shown
    assert "all well" in shown
