"""From a format's name and a path to judgements."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.data.judgements.declaration import JUDGEMENTS, Judged


def read_judgements(source: str) -> Judged:
    """Read how relevant people found captions to pictures."""
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
