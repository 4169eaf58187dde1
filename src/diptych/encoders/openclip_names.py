"""open_clip as a library: the names of its models, and keeping it quiet."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.extras import require

__all__ = ["open_clip_library", "quiet_logging", "split_source"]


def open_clip_library() -> Any:
    """The module ``open_clip``.

    Raises:
        MissingExtraError: it is not installed.
    """
    return require("open_clip", "open-clip", "loading an open_clip model")


@contextmanager
def quiet_logging() -> Iterator[None]:
    """Keep open_clip's calls of the root logger from installing a handler that prints for everybody."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


def split_source(library: Any, source: str) -> tuple[str, str]:
    """``ARCHITECTURE/PRETRAINED`` in two, both known and made for each other.

    Raises:
        UsageError: no such architecture or weights, or weights that want another activation.
    """
    architecture, _, pretrained = source.partition("/")
    config = library.get_model_config(architecture)
    if config is None:
        near = difflib.get_close_matches(architecture, library.list_models(), n=3, cutoff=0.5)
        raise UsageError(
            f"open_clip has no architecture {architecture!r}",
            f"near it: {', '.join(near) or 'none'}; open_clip.list_models() lists all",
        )
    if Path(pretrained).is_file():
        return architecture, pretrained
    if not library.is_pretrained_cfg(architecture, pretrained):
        tags = library.list_pretrained_tags_by_model(architecture)
        raise UnknownNameError(f"pretrained tag of open_clip:{architecture}", pretrained, tags)
    trained_with = library.get_pretrained_cfg(architecture, pretrained).get("quick_gelu", False)
    # The other way round says nothing: the library's table leaves the flag out for some weights.
    if trained_with and not config.get("quick_gelu", False):
        raise UsageError(
            f"the weights {pretrained!r} were trained with QuickGELU, the architecture {architecture!r}"
            " has GELU: every row would be slightly wrong",
            f"use open_clip:{architecture}-quickgelu/{pretrained}",
        )
    return architecture, pretrained
