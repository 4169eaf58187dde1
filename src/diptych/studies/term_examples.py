"""Table 3.4: what captions and their pictures become, as terms, kept when a head is measured and drawn later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.errors import ImageError
from diptych.studies.evidence import Evidence
from diptych.studies.results import examples

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from diptych.studies.sparsified import Head

_COUNT, _TERMS, _SIDE = 6, 10, 112


def examples_of(head: Head, split: str) -> list[dict[str, Any]]:
    """The heaviest terms of some pictures and the first caption of each, evenly spaced over a split.

    Nobody chooses them: the same split gives the same ones, whatever the head.
    """
    import numpy as np

    part, rows = head.dense.collection.split(split), head.sparsified(split)
    pictures = np.linspace(0, part.n_images - 1, min(_COUNT, part.n_images)).round().astype(int)
    pictures = np.unique(pictures)
    captions = [int(part.caption_start[image]) for image in pictures]
    of_captions = _leading(head, rows.texts.rows[captions])
    of_images = _leading(head, rows.images.rows[pictures])
    own = rows.caption_terms
    shown = []
    for place, (image, caption) in enumerate(zip(pictures.tolist(), captions, strict=True)):
        said = set(own.indices[own.indptr[caption] : own.indptr[caption + 1]].tolist())
        shown.append(
            {
                "image": part.image_ids[image],
                "picture": _picture(head, split, image),
                "caption": part.captions[caption],
                "caption terms": _said(head, of_captions[place], said),
                "image terms": _said(head, of_images[place], said),
            }
        )
    return shown


def _leading(head: Head, rows: csr_array) -> list[list[int]]:
    from diptych.sparse.measures import leading_terms

    found = leading_terms(rows, _TERMS, left_out=head.sparsifier.vocabulary.special)
    return [[column for column in row if column >= 0] for row in found.tolist()]


def _said(head: Head, columns: list[int], said: set[int]) -> list[list[Any]]:
    """(term, whether the caption contains it) pairs."""
    return [[head.sparsifier.vocabulary.text(column), column in said] for column in columns]


def _picture(head: Head, split: str, row: int) -> str:
    """A small picture as an address for pages; empty where there is none to read."""
    from diptych.report.pictures import Thumbnail, read_picture

    part = head.dense.collection.split(split)
    try:
        return str(Thumbnail.of(read_picture(part.image(row), part.image_ids[row]), _SIDE))
    except ImageError:  # region features alone, or embeddings of pictures that are not here
        return ""


@dataclass(frozen=True)
class TermExamples:
    """A table of examples: a line per caption and one per picture, a column per row of the study.

    Attributes:
        rows: the rows, in the order of the columns.
        name, title, note, wide: of its place on the page.
    """

    rows: Sequence[str]
    name: str = "examples"
    title: str = "Examples"
    note: str = (
        "The ten heaviest terms, heaviest first, of pictures evenly spaced over the test split and of the first "
        "caption of each; marked: terms that the caption contains. -ing continues a word."
    )
    wide: bool = True

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """The table; nothing where no row has examples."""
        from diptych.report.templating import templates

        shown = {row: found for row in self.rows if (found := examples(evidence, row))}
        if not shown:
            return []
        first = next(iter(shown.values()))
        lines = [(one, [found[place] for found in shown.values()]) for place, one in enumerate(first)]
        template = templates("diptych.studies").get_template("terms.html.j2")
        return [template.render(labels=[labels[row] for row in shown], lines=lines)]
