"""``python -m pins.worker TARGET STUDIES NAME …``: measure pins in this process and write what they gave.

Studies are read from the folder STUDIES, or run where it is empty. Results are written after every pin, so that a
process that dies loses only the pin it died in.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pins.numbers import plain
from pins.registry import pins
from pins.world import World


def main() -> None:
    target, studies, *names = sys.argv[1:]
    folder = Path(target).parent
    os.chdir(folder)
    known, world = pins(), World(folder / "world", Path(studies) if studies else None)
    measured: dict[str, dict[str, Any]] = {}
    for name in names:
        begun = time.process_time()
        try:
            measured[name] = {"values": plain(known[name].measure(world))}
        except Exception:  # noqa: BLE001 - a pin that fails is reported, the others are measured
            measured[name] = {"error": traceback.format_exc(limit=-4)}
        measured[name]["cpu_seconds"] = round(time.process_time() - begun, 2)
        temporary = Path(target + ".part")
        temporary.write_text(json.dumps(measured))
        temporary.replace(target)


if __name__ == "__main__":
    main()
