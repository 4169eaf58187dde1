"""From a format's name and a path to judgements."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.data.judgements.declaration import JUDGEMENTS, Judged

__all__ = ["read_judgements"]


def read_judgements(source: str) -> Judged:
    """Read how relevant people found captions to pictures.

    Args:
        source: ``FORMAT:PATH``, for example ``flickr8k-expert:ExpertAnnotations.txt``.

    Raises:
        UsageError: not FORMAT:PATH.
        UnknownNameError: no such format.
        DataError: the path does not exist, or is not as its format says.
    """
    name, colon, path = source.partition(":")
    if not colon or not path:
        known = ", ".join(JUDGEMENTS.names())
        raise UsageError(
            f"judgements {source!r} are not FORMAT:PATH",
            f"for example flickr8k-expert:ExpertAnnotations.txt; formats: {known}",
        )
    reader = JUDGEMENTS.get(name)
    if not Path(path).exists():
        raise DataError(f"{path} does not exist", f"check the path given with --judgements {name}:…")
    return reader.read(Path(path))
