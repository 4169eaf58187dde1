"""Optional libraries: imported where used, named with their pip line when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from diptych.core.errors import MissingExtraError


def require(library: str, extra: str, purpose: str) -> Any:
    """Import ``library`` or say what to install."""
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != library.split(".")[0]:
            raise
        raise MissingExtraError(library.split(".")[0], extra, purpose) from None
