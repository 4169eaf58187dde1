"""Nguyen et al. (ECIR 2024), Multimodal Learned Sparse Retrieval: what formulas cannot say, a figure and examples."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.chart import Chart, Series
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence, Finding, Formula, kept_in
from diptych.studies.published import printed_evidence
from diptych.studies.study import Study

if TYPE_CHECKING:
    from PIL.Image import Image

_HEADS = tuple(f"d2s-{eta}-c+w" for eta in ("1e-2", "1e-3", "1e-4", "1e-5"))
_LISTED = 10  # images of the lists that overlap
_PRINTED = "coco-blip"
_KINDS = ("caption", "image")


def overlap(evidence: Evidence) -> list[Finding]:
    """Judge the mean overlap of the top 10: over heads, or as it is printed, in a row of its own."""
    rows = _HEADS if evidence.figure("overlap", "overlap@10") is None else ("overlap",)
    numbers = ", ".join(f"[{row}]" for row in rows)
    return [Formula.parse(f"60 <= mean({numbers}) <= 80", "overlap@10").judge(evidence)]


def trade_off(study: Study, evidence: Evidence) -> Further:
    """Return Figure 3.2: retrieval against FLOPs here and as printed, and the overlap of the top 10."""
    printed = _against_flops(printed_evidence(study.published, _PRINTED), f"As printed, {_PRINTED}")
    charts = [_against_flops(evidence, "Measured here"), printed, _overlaps(study, evidence)]
    return Further(
        charts=[chart for chart in charts if chart.series],
        title="Figure 3.2",
        note="Captions asking for images, against the terms that a caption and an image have in common on average; a "
        "point per η, the dense rows dotted. And in how many of the ten best images a head and its dense rows agree, "
        "share of captions.",
    )


def _against_flops(evidence: Evidence, title: str) -> Chart:
    lines, levels = [], []
    costs = {row: cost.mean for row, cost in evidence.only(_HEADS, "FLOPs").items() if cost.mean > 0}
    for column, colour in (("t2i R@1", "blue"), ("t2i MRR@10", "orange")):
        found = evidence.only(list(costs), column)
        points = sorted((costs[row], figure.mean) for row, figure in found.items())
        if points:
            lines.append(Series(column, [y for _, y in points], [x for x, _ in points], colour=colour))
        if (dense := evidence.figure("dense", column)) is not None:
            levels.append(Series(f"{column}, dense", [dense.mean], mark="level"))
    return Chart(title, [*lines, *levels] if lines else [], "FLOPs", "per cent", log="x")


def _overlaps(study: Study, evidence: Evidence) -> Chart:
    lines = []
    for row in _HEADS:
        for shares, _ in evidence.queries((row, "overlap@10")):
            places = np.rint(shares / 100 * _LISTED).astype(np.int64)
            counts = 100 * np.bincount(places, minlength=_LISTED + 1) / len(places)
            name = f"{study.row(row).label}: mean {places.mean():.1f}"
            lines.append(Series(name, counts.tolist(), range(_LISTED + 1)))
    return Chart("Overlap of the top 10", lines, "images in both lists", "per cent of captions")


def examples(study: Study, evidence: Evidence) -> Further:
    """Return examples of Table 3.4: images with a caption, and what each row of the study makes of both."""
    from diptych.report.document import Card, Gallery

    examples = {
        row.name: kept.examples
        for row in study.rows
        for folder in evidence.kept.get(row.name, ())[:1]
        if (kept := kept_in(folder)) is not None
    }
    galleries = []
    for shown in zip(*examples.values(), strict=True):
        cards = [
            Card(
                row,
                label=study.row(row).label,
                facts={kind: _listed(one[f"{kind} terms"]) for kind in _KINDS},
            )
            for row, one in zip(examples, shown, strict=True)
        ]
        image = partial(_decoded, shown[0]["picture"]) if shown[0]["picture"] else None
        galleries.append(Gallery("", cards, Card(shown[0]["image"], image, shown[0]["caption"])))
    return Further(
        charts=galleries,
        title="Examples",
        note="The ten heaviest terms, heaviest first, of images evenly spaced over the test split and of the first "
        "caption of each. *: the caption, or one of the image's captions, contains the term; -ing continues a word.",
    )


def _listed(terms: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(f"{term}{'*' if is_own else ''}" for term, is_own in terms) or "no term"


def _decoded(address: str) -> Image:
    from PIL import Image as pillow

    return pillow.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
