"""What the command prints, where, and how it starts and ends."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.core import TyperGroup

from diptych.cli import _print_what_the_terminal_can, tree
from diptych.cli import console as module
from diptych.cli.console import fail, next_step, output, progress, say, show, warn
from diptych.cli.verbs import run
from diptych.core.context import task
from diptych.core.errors import DataError
from diptych.core.files import cache_root
from diptych.core.table import Table

EVIL = "a\x1b[2Jb\x07\rc\x9bd\ud800e\u202ef\x00"
SHOWN = r"a\x1b[2Jb\x07\rc\x9bd\ud800e\u202ef\x00"


def test_control_characters_are_shown_and_not_sent(capsys):
    plain = "café [bold]\n\U0001f6d2 日本"
    say(plain)
    assert capsys.readouterr().out == f"{plain}\n"
    say(EVIL)
    next_step(EVIL)
    show(Table.of(EVIL, EVIL, ("name",), [(EVIL,)]))
    fail(DataError(EVIL, EVIL))
    printed = capsys.readouterr()
    assert printed.out.count(SHOWN) == 5
    assert printed.err.count(SHOWN) == 2
    assert not set(printed.out + printed.err) & set(EVIL) - set("abcdef[2J")
    next_step(["diptych", "evaluate", Path("my run; rm -rf")], ["open", "a.html"])
    line = capsys.readouterr().out
    assert line.startswith("next: diptych evaluate 'my run; rm -rf', or: ")
    assert line.endswith("open a.html\n")  # or what opens files here


def test_json_holds_all_that_is_printed_and_quiet_leaves_what_matters(capsys):
    def printed(**how):
        with output(**{"as_json": False, "quiet": False} | how):
            warn("other data")
            say("a line")
            show(Table.of("a table", "", ("name",), [("x",)]))
            next_step(["ls", "a b"])
        return capsys.readouterr().out

    found = json.loads(printed(as_json=True))
    assert (found["lines"], found["next"]) == (["warning: other data", "a line"], ["ls 'a b'"])
    assert found["tables"] == [Table.of("a table", "", ("name",), [("x",)]).content()]
    rows = [line.split()[0] for line in printed(quiet=True).splitlines() if line.split()]
    assert rows == ["warning:", "a", "name", "─" * 4, "x"]


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [100.0]
    monkeypatch.setattr("diptych.report.progress.time.monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_now_and_then(clock, capsys, monkeypatch):
    with progress(), task("reading", 100, "pictures", done=20) as bar:
        for _ in range(4):
            clock[0] += 4
            bar.advance(10, "all well")
    assert capsys.readouterr().err.splitlines() == [
        "reading 50/100 pictures  2.5/s  0:20 left  all well",
        "reading 60/100 pictures  2.5/s  in 16 s  all well",
    ]
    for rank, seconds in (("0", 1), ("1", 60)):  # short tasks and other processes are silent
        monkeypatch.setenv("LOCAL_RANK", rank)
        with progress(), task("reading", 2, "pictures") as bar:
            clock[0] += seconds
            bar.advance(2)
        assert capsys.readouterr().err == ""


def test_bars_on_a_terminal(clock, monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(module, "console", lambda stderr: screen)
    with progress(), task("training", None, "steps"), task("reading", 10, "pictures") as bar:
        clock[0] += 5
        bar.advance(10, "all well")
    for words in ("reading", "10/10", "2.0/s", "all well"):
        assert words in screen.file.getvalue()


def start(code="", *arguments, **options):
    code = f"import sys\nsys.argv = ['diptych', *{arguments!r}]\n{code}\nfrom diptych.cli import main\nmain()"
    line = [sys.executable, "-c", code]
    return subprocess.run(line, text=True, stderr=subprocess.PIPE, timeout=60, **options)


def test_ctrl_c_while_libraries_are_imported_ends_with_130():
    when_imported = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == 'typer':
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
    done = start(when_imported, "data", "list", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_what_cannot_be_printed_is_one_line():
    with open("/dev/full", "w") as full:
        done = start("", "data", "list", stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: cannot write the output: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_terminal_without_utf_8_shows_what_it_can(monkeypatch):
    done = start("", "--help", stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Image-text retrieval" in done.stdout
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


def test_an_empty_cache_variable_is_none(monkeypatch, tmp_path):
    monkeypatch.delenv("DIPTYCH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_root() == tmp_path / ".cache" / "diptych"


def test_every_help_fits(monkeypatch, capsys):
    """60 lines of 80 columns at most, an example each, and no function takes more than eight parameters."""
    monkeypatch.setenv("COLUMNS", "80")

    def check(group, path):
        for name, place in group.tree.items():
            if isinstance(place, TyperGroup):
                check(place, [*path, name])
                continue
            module, _, function = place.partition(":")
            assert len(inspect.signature(getattr(importlib.import_module(module), function)).parameters) <= 8
            monkeypatch.setattr("sys.argv", ["diptych", *path, name, "--help"])
            run(tree.app)
            lines = capsys.readouterr().out.splitlines()
            assert len(lines) <= 60, (path, name, len(lines))
            assert max(map(len, lines)) <= 80, (path, name, max(lines, key=len))
            assert any(line.strip().startswith(" ".join(["diptych", *path, name])) for line in lines), name

    check(tree.app, [])


def test_a_shell_completes_verbs_and_names(monkeypatch, capsys):
    monkeypatch.setenv("_DIPTYCH_COMPLETE", "complete_bash")
    for words in ("ind|ex", "study run ltd.t|able-1", "info enc|oders", "index encoder --engine hn|sw"):
        typed = f"diptych {words.partition('|')[0]}".split()
        monkeypatch.setenv("COMP_WORDS", " ".join(typed))
        monkeypatch.setenv("COMP_CWORD", str(len(typed) - 1))
        with pytest.raises(SystemExit):
            tree.app(prog_name="diptych")
        assert words.replace("|", "").split()[-1] in capsys.readouterr().out.split()
