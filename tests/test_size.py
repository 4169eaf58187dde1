"""The house only shrinks: no room is above its ceiling, and a ceiling rises only by lines that others gave up.

The whole, and the tests, may grow only in a commit that says, after "Gained:", what is had of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import size  # noqa: E402


def test_no_room_is_above_its_ceiling() -> None:
    allowed = size.ceilings()
    above = {
        name: f"{found.lines:,} of {allowed.get(name, 0):,} lines"
        for name, found in size.sizes().items()
        if found.lines > allowed.get(name, 0)
    }
    assert not above, "remove a mechanism before adding one (python tools/size.py)"


def test_ceilings_rise_only_by_what_moved() -> None:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            pytest.skip("no history here")
        return done.stdout

    file = "tools/sizes.json"
    commits = git("log", "--first-parent", "--format=%H", "--", file).split()
    versions = [json.loads(git("show", f"{commit}:{file}")) for commit in commits]
    messages = [git("log", "-1", "--format=%B", commit) for commit in commits]
    for later, earlier, message in zip([size.ceilings(), *versions], versions, ["", *messages], strict=False):
        grown = {room: lines - earlier.get(room, 0) for room, lines in later.items()}
        whole, tests = grown.pop("src"), grown.pop("tests")
        assert max(whole, tests) <= 0 or "Gained:" in message, "the ceiling of the whole was raised"
        assert sum(grown.values()) <= max(0, whole), f"ceilings were raised, none was lowered: {grown}"


@pytest.mark.parametrize(("lines", "expected"), [(1, False), (10**9, True)])
def test_growth_is_refused(
    lines: int, expected: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(size, "sizes", lambda: {"core": size.Size(1, lines, 1, 0, 0)})
    monkeypatch.setattr(sys, "argv", ["size.py"])
    assert bool(size.main()) is expected
    assert ("above the ceiling: core" in capsys.readouterr().out) is expected
