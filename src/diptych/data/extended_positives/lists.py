"""JSON lists of positives: ``{id: [ids]}``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, StorageError
from diptych.core.reading import read_json
from diptych.data.extended_positives.declaration import Listed

_SHAPE = "expected {query id: [ids of what is relevant to it]}"

Lists = Mapping[str, frozenset[str]]


def read_document(path: Path | str) -> Any:
    """A JSON file's content."""
    try:
        return read_json(path)
    except StorageError as error:
        raise DataError(error.message, "check the path given with --positives") from None


def as_lists(document: Any, where: str) -> Lists:
    """Check ``{id: [ids]}``; whole numbers are ids too."""
    if not isinstance(document, dict):
        raise DataError(f"{where} is no JSON object", _SHAPE)
    for query, relevant in document.items():
        if not isinstance(relevant, list) or not all(
            isinstance(one, str | int) and not isinstance(one, bool) for one in relevant
        ):
            raise DataError(f"{where}: what belongs to {query!r} is no list of ids", _SHAPE)
    return {query: frozenset(str(one) for one in relevant) for query, relevant in document.items()}


def read_lists(path: Path | str) -> Lists:
    """Read ``{id: [ids]}``."""
    return as_lists(read_document(path), str(path))


def listed_of(what: str, i2t: Lists | None, t2i: Lists | None) -> Listed:
    """Both directions of the lists; a direction that is not given has the other's pairs."""
    from_images = {(image, text) for image, texts in (i2t or {}).items() for text in texts}
    from_texts = {(image, text) for text, images in (t2i or {}).items() for image in images}
    pairs_i2t = from_images if i2t is not None else from_texts
    pairs_t2i = from_texts if t2i is not None else from_images
    return Listed(
        what=what,
        i2t=frozenset(pairs_i2t),
        t2i=frozenset(pairs_t2i),
        images=frozenset(i2t if i2t is not None else (image for image, _ in pairs_i2t)),
        captions=frozenset(t2i if t2i is not None else (text for _, text in pairs_t2i)),
    )
