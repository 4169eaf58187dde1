"""What an installation takes: python -m benchmarks.installation [EXTRA …]; needs the package registry.

Each extra (none: the base) is installed from the working tree into an environment of its own; printed are megabytes of
its libraries, as ``du`` counts them, and seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def measure(extra: str) -> tuple[float, float]:
    """Return the megabytes of site-packages and the seconds of ``pip install`` for one extra."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        begun = time.monotonic()
        line = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
        subprocess.run([*line, f"{ROOT}[{extra}]" if extra else ROOT], check=True)
        seconds = time.monotonic() - begun
        (packages,) = Path(folder, "lib").glob("python*/site-packages")
        counted = subprocess.run(["du", "-sm", packages], check=True, capture_output=True, text=True)
        return float(counted.stdout.split()[0]), seconds


if __name__ == "__main__":
    for name in sys.argv[1:] or [""]:
        size, seconds = measure(name)
        print(f"diptych{f'[{name}]' if name else '':12} {size:7,.0f} MB {seconds:6.0f} s")
