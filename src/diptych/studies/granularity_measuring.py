"""Measuring the granularity of a collection's captions: rightly, and as the printed numbers are counted.

What a person may choose (``--set measure.KEY=VALUE``), and what is taken when nobody does:

============= ======== ===============================================================================
``split``     ``test`` which part is measured
``language``  ``auto`` tagger and WordNet, as :func:`diptych.data.language.open.open_language` opens them
``wordnet``   none     folder or file of a WordNet
``nltk_data`` none     folder of NLTK data
============= ======== ===============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError
from diptych.core.files import safe_name
from diptych.studies.kept import keep
from diptych.studies.measurement import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.data.language import Language

MEASURED_BY = ("split", "language", "wordnet", "nltk_data")
"""What a person may choose."""

_SPLIT = "test"


def check_granularity(values: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
    """See that every collection has the part that is measured, and that there is a language to measure it with."""
    from diptych.analysis.granularity import check_language, choose_features

    split = values.get("split", _SPLIT)
    for name, collection in collections.items():
        if not collection.split_sizes.get(split):
            raise UnknownNameError(f"split of {name}", split, collection.split_sizes)
        check_language(choose_features(), _language(values, collection))


@dataclass(frozen=True)
class GranularityMeasuring:
    """A feature per column: its mean over captions, and the same as published where that is another definition."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides captions and the person's choices: definitions."""
        from diptych.analysis.granularity import choose_features

        definitions = {
            one.name: [one.definition(compat) for compat in ("none", "published")]
            for one in choose_features()
        }
        return {"kind": "granularity", "definitions": definitions}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure; values of every caption are kept in the row's folder."""
        from diptych.analysis.granularity import granularity

        split = subject.measuring.get("split", _SPLIT)
        part = subject.collection.split(split)
        language = _language(subject.measuring, part)
        kept = "granularity/" + safe_name(f"{part.name}-{split}")
        folder = subject.run.folder / kept
        right = granularity(part, language=language, split=split, folder=folder)
        published = granularity(part, language=language, split=split, compat="published")
        columns = {one.name: right.column(one.name) for one in right.features}
        keep(folder, columns, right.caption_image)
        values = {one.name: one.mean for one in right.features if one.mean is not None}
        values |= {
            f"{one.name}{PUBLISHED}": one.mean
            for one in published.features
            if one.compat == "published" and one.mean is not None
        }
        on = Measured(
            part.name, split, int(right.about["images"]), right.n_captions, centric=part.centric or ""
        )
        return (Measurement(values, on, right.line(), kept=kept),)


def _language(values: Mapping[str, Any], collection: Collection) -> Language:
    from diptych.data.language.open import open_language

    return open_language(
        str(values.get("language", "auto")),
        wordnet=values.get("wordnet"),
        nltk_data=values.get("nltk_data"),
        collection=collection,
    )
