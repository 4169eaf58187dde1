"""What is imported where it is used: optional libraries, and the names of a package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
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


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose names are imported when they are used.

    ``homes``: modules, and of each the names, separated by spaces. Type checkers must not see this ``__all__``.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    content = vars(sys.modules[package])
    content["__all__"] = [*home_of]

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        content[name] = getattr(importlib.import_module(home_of[name], package), name)
        return content[name]

    return get, lambda: sorted({*content, *home_of})
