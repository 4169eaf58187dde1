"""Two corrupt inputs of each kind: read, or refused in one line; ``make fuzz`` tries thousands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fuzz.targets import TARGETS

ROOT = Path(__file__).parents[1]


def test_corrupt_inputs_are_refused_in_one_line() -> None:
    command = [sys.executable, "-m", "fuzz", "--inputs", str(2 * len(TARGETS)), "--seed", "18"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280).stdout
    for one in TARGETS:
        assert f"\n{one.name}: 2 OK\n" in f"\n{printed}", printed
