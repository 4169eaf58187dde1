"""Optional libraries: imported where they are used, and named with their pip line where they are not installed."""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from diptych.core.errors import MissingExtraError

_LIBRARIES = {
    "train": "torch torchvision timm lightning_fabric tokenizers",
    "pretrained": "transformers",
    "hub": "huggingface_hub",
    "open-clip": "open_clip",
    "targets": "sentence_transformers",
    "figures": "matplotlib",
    "kernels": "numba",
    "engines": "seismic pyterrier_pisa",
    "qdrant": "qdrant_client",
    "commerce": "duckdb ibis pyarrow sklearn skops threadpoolctl Stemmer",
    "spark": "pyspark",
    "ray": "ray",
    "datasets": "datasets",
    "downloads": "httpx",
    "language": "nltk wn",
    "notebook": "pandas",
    "mteb": "mteb",
    "serve": "fastapi uvicorn python_multipart prometheus_client",
}
EXTRA_OF = {library: extra for extra, libraries in _LIBRARIES.items() for library in libraries.split()}
"""The extra that installs each optional library, by the name it is imported by."""


def require(library: str, extra: str = "", purpose: str = "this") -> Any:
    """Import ``library``, or raise an error with the pip line of what is missing: ``extra``, or its own one."""
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        name = library.split(".")[0]
        if error.name is not None and error.name.split(".")[0] != name:
            raise
        raise MissingExtraError(name, extra or EXTRA_OF[name], purpose) from None


def missing_library(error: ModuleNotFoundError, purpose: str) -> Exception:
    """Return the error with the pip line of an optional library that is missing; ``error`` for any other module."""
    library = (error.name or "").split(".")[0]
    return MissingExtraError(library, EXTRA_OF[library], purpose) if library in EXTRA_OF else error


def lazy_names(
    package: str, moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose names are imported when they are used.

    They are those that it imports for type checkers, ``from MODULE import NAME as NAME``: it names them once.
    ``moved`` says where names are now that the package had: they still work, with a warning.
    """
    content = vars(sys.modules[package])
    source = Path(content["__file__"]).read_text(encoding="utf-8")
    imports = re.findall(r"^\s*from (\S+) import (\w+) as \2\b", source, re.MULTILINE)
    home_of = {name: module for module, name in imports}
    content["__all__"] = [*home_of]

    def get(name: str) -> Any:
        if moved is not None and name in moved:
            words = f"{package}.{name} is {moved[name]}.{name}; the old name will be removed"
            warnings.warn(words, DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(moved[name]), name)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if home_of[name] == package:
                content[name] = importlib.import_module(f"{package}.{name}")
            else:
                content[name] = getattr(importlib.import_module(home_of[name]), name)
        except ModuleNotFoundError as error:
            raise missing_library(error, f"{package}.{name}") from None
        return content[name]

    return get, lambda: sorted(home_of)
