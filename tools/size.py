#!/usr/bin/env python3
"""Count the house: files, lines, statements, public names and header lines per room, beside its budget.

    python tools/size.py            the table; exit 1 where a room is above its ceiling
    python tools/size.py --lower    lower the ceilings to today's sizes

A ceiling (``tools/sizes.json``) only falls: each step lowers it to today's size, until it is the budget.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
CEILINGS = Path(__file__).with_name("sizes.json")
BUDGETS = {
    "cli": (3_800, 3_000),
    "api": (1_200, 1_000),
    "studies": (6_000, 5_000),
    "service": (2_500, 2_000),
    "report": (3_200, 2_300),
    "sparse": (3_000, 2_200),
    "commerce": (10_000, 7_500),
    "training": (4_200, 3_800),
    "index": (4_800, 4_000),
    "evaluation": (6_700, 6_000),
    "encoders": (7_600, 6_000),
    "analysis": (6_000, 5_000),
    "data": (9_000, 6_500),
    "objectives": (2_400, 1_800),
    "metrics": (3_000, 2_500),
    "core": (2_800, 2_400),
    "src": (75_000, 60_000),
    "tests": (32_000, 32_000),
}
"""Most and aimed-at lines of Python per room, from the top floor down."""


class Size(NamedTuple):
    """What is counted of a folder."""

    files: int
    lines: int
    statements: int
    public: int
    header: int


def size_of(folder: Path) -> Size:
    """Count the Python files of a folder: ``header`` is docstring, imports and ``__all__`` on top of files."""
    return Size(*map(sum, zip(*(_of_file(path) for path in folder.rglob("*.py")), strict=True)))


@cache
def _of_file(path: Path) -> Size:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    statements = sum(1 for _ in statements_of(tree))
    public = sum(filter(None, map(_public, tree.body)))
    return Size(1, text.count("\n"), statements, public, _header(tree))


def statements_of(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement below a node."""
    for place in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, place, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements_of(inner)


def _public(node: ast.stmt) -> int:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
        return len(getattr(node.value, "elts", ()))  # type: ignore[attr-defined]
    return 0


def _header(tree: ast.Module) -> int:
    end = 0
    for node in tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (text or isinstance(node, ast.Import | ast.ImportFrom) or _public(node)):
            break
        end = node.end_lineno or end
    return end


def sizes() -> dict[str, Size]:
    """Count every room, all of ``src`` and the tests."""
    package = ROOT / "src" / "diptych"
    found = {
        path.name: size_of(path)
        for path in sorted(package.iterdir())
        if path.is_dir() and path.name != "__pycache__"
    }
    return found | {"src": size_of(package), "tests": size_of(ROOT / "tests")}


def ceilings() -> dict[str, int]:
    """Read the most lines that each room may have today."""
    found: dict[str, int] = json.loads(CEILINGS.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Print the table, or lower the ceilings."""
    found = sizes()
    if "--lower" in sys.argv:
        before = ceilings() if CEILINGS.exists() else {}
        now = {name: max(size.lines, BUDGETS.get(name, (0, 0))[0]) for name, size in found.items()}
        lowered = {name: min(lines, before.get(name, lines)) for name, lines in now.items()}
        CEILINGS.write_text(json.dumps(lowered, indent=1) + "\n", encoding="utf-8")
    allowed = ceilings()
    print("room          files    lines  ceiling   budget      aim  statements  public  header")
    order = [*(name for name in BUDGETS if name in found), *(name for name in found if name not in BUDGETS)]
    for name in order:
        size, (most, aim) = found[name], BUDGETS.get(name, (0, 0))
        share = f"{size.header / max(1, size.lines):6.1%}"
        print(
            f"{name:12} {size.files:6,} {size.lines:8,} {allowed.get(name, 0):8,} {most:8,} {aim:8,} "
            f"{size.statements:11,} {size.public:7,} {share}"
        )
    above = [name for name, size in found.items() if size.lines > allowed.get(name, 0)]
    if above:
        print(f"above the ceiling: {', '.join(above)}")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
