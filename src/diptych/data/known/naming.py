"""From the name that a collection gives itself to the dataset it is."""

from __future__ import annotations

from typing import Any

from diptych.core.errors import UsageError
from diptych.data.collection import Centric
from diptych.data.known.declaration import KNOWN, KnownDataset


def known_by_name(name: str) -> KnownDataset | None:
    """The dataset that a collection of that name is, or is a part of; None where nobody knows.

    ``coco`` and ``coco_val2017`` are MS COCO, ``coco-fg`` is not: the longest name wins.
    """
    given = _plain(name)
    found: tuple[int, KnownDataset] | None = None
    for dataset in KNOWN:
        for known in map(_plain, (dataset.name, *dataset.names)):
            fits = given == known or given.startswith(f"{known}-")
            if fits and (found is None or len(known) > found[0]):
                found = len(known), dataset
    return None if found is None else found[1]


def centric_of(given: Any, name: str) -> Centric | None:
    """What the pictures of a collection show: as given, else as its dataset's known name says.

    Args:
        given: a reader's option ``centric``; None where it was not given.
    """
    if given is None:
        known = known_by_name(name)
        return None if known is None else known.centric
    if given not in ("scene", "object"):
        raise UsageError(
            f"centric is {given!r}, it is scene or object", "e.g. --reader-option centric=object"
        )
    return given  # type: ignore[no-any-return]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
