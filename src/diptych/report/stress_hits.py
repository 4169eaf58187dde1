"""The worst hit of a stress run as a page draws them: texts with their differences, pictures, ranks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from diptych.analysis.perturbations import PERTURBATIONS, PicturePerturbation
from diptych.analysis.perturbations.pictures import perturbed_pictures
from diptych.data.collection import Collection
from diptych.report.differing import differing
from diptych.report.html import CAPTION_LIMIT
from diptych.report.pictures import PictureSource, Thumbnails
from diptych.report.words import shorten
from diptych.training.stress import Example, StressResult, StressRow

__all__ = ["Lookup", "drawn_hit", "wanted_ids"]


def wanted_ids(result: StressResult, most: int) -> set[str]:
    """Ids of what is shown of the worst hit, at most ``most`` of a perturbation."""
    return {
        name
        for row in result.rows
        for one in row.examples[:most]
        for name in (one.query, one.first_before, one.first_after, one.expected)
    }


class Lookup:
    """From ids to what they name.

    Args:
        collection: the gallery's pictures and captions; without it nothing is found.
        wanted: ids that will be asked for.
    """

    def __init__(self, collection: Collection | None, wanted: set[str]) -> None:
        self.collection = collection
        self._images = {} if collection is None else _places(collection.image_ids, wanted)
        self._captions = {} if collection is None else _places(collection.caption_ids, wanted)

    def picture(self, name: str) -> PictureSource | None:
        """A picture, where there is one of that id."""
        if self.collection is None or name not in self._images or self.collection.holds != "pictures":
            return None
        return partial(self.collection.image, self._images[name])

    def perturbed(self, row: StressRow, one: Example) -> PictureSource | None:
        """A picture as the perturbation changed it."""
        kind = PERTURBATIONS.get(row.name)
        if self.collection is None or one.query not in self._images:
            return None
        assert isinstance(kind, PicturePerturbation)
        place = self._images[one.query]
        view = perturbed_pictures(self.collection.subset([place]), kind, seed=one.seed, options=row.options)
        return partial(view.image, 0)

    def caption(self, name: str) -> str:
        """A caption; empty without one of that id."""
        if self.collection is None or name not in self._captions:
            return ""
        return str(self.collection.captions[self._captions[name]])


def _places(ids: Iterable[str], wanted: set[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(ids) if name in wanted}


def drawn_hit(row: StressRow, one: Example, lookup: Lookup, thumbnails: Thumbnails) -> dict[str, Any]:
    """One of the worst hit, as the template draws it."""

    def drawn(source: PictureSource | None, name: str) -> dict[str, Any] | None:
        return None if source is None else {"thumbnail": thumbnails.make(source, name)}

    def shown_picture(label: str, name: str, mark: str, rank: float | None = None) -> dict[str, Any]:
        return {
            "label": label,
            "name": name,
            "mark": mark,
            "rank": None if rank is None else _rank(rank),
            "picture": drawn(lookup.picture(name), name),
        }

    found: dict[str, Any] = {
        "name": shorten(one.query, CAPTION_LIMIT),
        "seed": one.seed,
        "before": _rank(one.before),
        "after": _rank(one.after),
        "clean": [],
        "changed": [],
        "captions": [],
    }
    if row.direction == "t2i":
        clean, changed = differing(shorten(one.clean, CAPTION_LIMIT), shorten(one.changed, CAPTION_LIMIT))
        pictures = [shown_picture("its picture", one.expected, "right")]
        for label, name in (("first, clean", one.first_before), ("first, perturbed", one.first_after)):
            pictures.append(shown_picture(label, name, "right" if name == one.expected else "wrong"))
        return {**found, "clean": clean, "changed": changed, "pictures": pictures}

    def said(name: str) -> str:
        return shorten(lookup.caption(name) or name, CAPTION_LIMIT)

    found["pictures"] = [
        {"label": label, "name": one.query, "mark": "unknown", "picture": drawn(source, one.query)}
        for label, source in (
            ("clean", lookup.picture(one.query)),
            ("perturbed", lookup.perturbed(row, one)),
        )
    ]
    found["captions"] = [
        ("one of its captions", said(one.expected)),
        ("first, clean", said(one.first_before)),
        ("first, perturbed", said(one.first_after)),
    ]
    return found


def _rank(rank: float) -> str:
    return f"{rank:,.0f}" if rank == int(rank) else f"{rank:,.1f}"
