"""The house stands: rooms import downwards only, public names are exported, imports are light."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import diptych
from tools.size import statements_of

ROOT = Path(diptych.__file__).parent
FLOORS = {
    "core": 0,
    "data": 1,
    "objectives": 1,
    "metrics": 1,
    "encoders": 2,
    "analysis": 2,
    "evaluation": 3,
    "training": 4,
    "index": 4,
    "commerce": 5,
    "sparse": 5,
    "report": 6,
    "service": 7,
    "studies": 7,
    "cli": 9,
    "api": 8,
}
MODULES = sorted(path for path in ROOT.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Every diptych module a file imports, wherever in it; lines for type checkers only count too."""
    found = set()
    for node in statements_of(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name == "diptych" or name.startswith("diptych.")}


def test_rooms_import_downwards_only() -> None:
    wrong = []
    for path in MODULES:
        parts = path.relative_to(ROOT).parts
        if len(parts) == 1:
            continue  # the front door hands names on
        room = parts[0]
        for name in imports_of(path):
            target = name.split(".")[1] if "." in name else ""
            if target not in ("", room) and FLOORS[target] >= FLOORS[room]:
                wrong.append(f"{path.relative_to(ROOT)} (floor {FLOORS[room]}) imports {name}")
    assert not wrong


def test_every_room_has_a_floor() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(FLOORS)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_all_stands_in_packages_alone_and_names_what_is_there() -> None:
    for path in MODULES:
        if path.name == "__main__.py":
            continue
        module = importlib.import_module(module_name(path))
        names = getattr(module, "__all__", None)
        if path.name != "__init__.py" and path.parent != ROOT:
            assert names is None, f"{path.relative_to(ROOT)} has an __all__"
        for name in names or ():
            assert hasattr(module, name), f"{module.__name__}.__all__ names {name}, which is not there"


def test_the_front_door_gives_every_name() -> None:
    for name in diptych.__all__:
        assert getattr(diptych, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        diptych.nonsense  # noqa: B018


def test_import_loads_nothing_heavy() -> None:
    heavy = "torch, transformers, matplotlib, timm, faiss, pyarrow, PIL, numpy, scipy, duckdb, ibis, sklearn, pandas"
    lazy = "diptych.commerce.purchase_intent, diptych.commerce.category_to_image"
    for modules, more in (("diptych, diptych.cli.tree", ""), (lazy, ", pydantic")):
        code = f"import sys, {modules}\nprint([name for name in '{heavy}{more}'.split(', ') if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"
