"""Four damaged inputs of each kind: read, or refused in one line; ``make fuzz`` tries thousands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def printed() -> str:
    command = [sys.executable, "-m", "fuzz", "--inputs", str(4 * len(TARGETS)), "--seed", "18"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280).stdout


@pytest.mark.parametrize("name", [one.name for one in TARGETS])
def test_damaged_inputs_are_refused_in_one_line(printed: str, name: str) -> None:
    assert f"\n{name}: 4 OK\n" in f"\n{printed}", printed
