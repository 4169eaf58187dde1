"""The stored numbers: ``pins/stored/NAME.json``, one file per pin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pins.environment import platform_facts
from pins.numbers import differences

FOLDER = Path(__file__).resolve().parent / "stored"


def path_of(name: str) -> Path:
    """Where a pin's numbers are."""
    return FOLDER / f"{name}.json"


def store(name: str, values: Any) -> None:
    """Keep a pin's numbers with the platform they are of."""
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"platform": platform_facts(), "values": values}, indent=1, ensure_ascii=False)
    path_of(name).write_text(_short_lists(text) + "\n", encoding="utf-8")


def compare(name: str, values: Any) -> tuple[list[str], str]:
    """Differences from the stored numbers, and a note where the comparison was not bit for bit."""
    if not path_of(name).is_file():
        return [f"nothing is stored; python -m pins --update {name} stores it"], ""
    stored = json.loads(path_of(name).read_text(encoding="utf-8"))
    stored["platform"].setdefault("maker", "GenuineIntel")  # of all that was stored before it was a fact
    stored["platform"].setdefault("cache", "less")
    other = [
        f"{key} {here} (stored with {stored['platform'].get(key)})"
        for key, here in platform_facts().items()
        if stored["platform"].get(key) != here
    ]
    found = list(differences(stored["values"], values, exact=not other))
    return found, f"compared with tolerance, because of {', '.join(other)}" if other else ""


def _short_lists(text: str) -> str:
    """Lists of plain values on one line each, so that a file can be read."""
    lines: list[str] = []
    open_at: int | None = None
    for line in text.splitlines():
        if line.endswith("["):
            open_at = len(lines)
        elif line.endswith("{") or (line.strip().startswith("{") and open_at is not None):
            open_at = None
        lines.append(line)
        if line.strip() in ("]", "],") and open_at is not None:
            inner = " ".join(part.strip() for part in lines[open_at + 1 :])
            lines[open_at:] = [lines[open_at] + inner.replace(" ]", "]")]
            open_at = None
    return "\n".join(lines)
