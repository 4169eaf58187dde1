"""What is imported where it is used: optional libraries, and the names of a package."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diptych.core.errors import MissingExtraError


def require(library: str, extra: str, purpose: str) -> Any:
    """Import ``library``, or raise an error with the pip line of what is missing."""
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != library.split(".")[0]:
            raise
        raise MissingExtraError(library.split(".")[0], extra, purpose) from None


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose names are imported when they are used.

    They are those that it imports for type checkers, ``from MODULE import NAME as NAME``: it names them once.
    """
    content = vars(sys.modules[package])
    source = Path(content["__file__"]).read_text(encoding="utf-8")
    imports = re.findall(r"^\s*from (\S+) import (\w+) as \2\b", source, re.MULTILINE)
    home_of = {name: module for module, name in imports}
    content["__all__"] = [*home_of]

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home_of[name] == package:
            content[name] = importlib.import_module(f"{package}.{name}")
        else:
            content[name] = getattr(importlib.import_module(home_of[name]), name)
        return content[name]

    return get, lambda: sorted(home_of)
