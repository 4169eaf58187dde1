"""The command itself: Ctrl-C while it starts, terminals and pipes that take not everything, quoted hints."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diptych.cli import _print_what_the_terminal_can
from diptych.cli.console import next_step, say
from diptych.core.files import cache_root


def start(code: str = "", *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    code = f"import sys\nsys.argv = ['diptych', *{arguments!r}]\n{code}\nfrom diptych.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code],
        text=True,
        stderr=subprocess.PIPE,
        timeout=60,
        **options,  # type: ignore
    )


def test_ctrl_c_while_libraries_are_imported_ends_with_130() -> None:
    when_imported = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == 'typer':
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
    done = start(when_imported, "data", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_what_cannot_be_printed_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = start("", "data", stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: cannot write the output: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_terminal_without_utf_8_shows_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, shown in (
        ("ascii", "5 x 3 -> caf? ..."),
        ("latin-1", "5 × 3 -> café ..."),
        ("utf-8", "5 × 3 → café …"),
    ):
        held = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(held, encoding))
        _print_what_the_terminal_can()
        say("5 × 3 → café …")
        sys.stdout.flush()
        assert held.getvalue().decode(encoding) == shown + "\n"


def test_help_on_a_terminal_without_utf_8() -> None:
    done = start("", "--help", stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Image-text retrieval" in done.stdout


def test_what_to_do_next_can_be_pasted_into_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    next_step(["diptych", "evaluate", Path("my run; rm -rf")], ["open", "a.html"])
    assert capsys.readouterr().out == "next: diptych evaluate 'my run; rm -rf', or: open a.html\n"


def test_an_empty_cache_variable_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIPTYCH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_root() == tmp_path / ".cache" / "diptych"
