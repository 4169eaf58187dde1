"""Hendriksen et al. (2024): claims about all encoders and collections that were measured, however many there are.

What has no numbers is left out; the bag of words is a control, and no encoder that a claim is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from diptych.studies.claims import FINER
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula
from diptych.studies.published import document

_LISTS = document("brittleness")["lists"]
_KINDS: list[str] = _LISTS["kinds"]


def finer_raises(evidence: Evidence) -> list[Finding]:
    """Judge whether finer captions raise R@1, of each encoder in each direction."""
    gains = [one for column in _LISTS["r@1"] for one in _finer(evidence, column)]
    return _judged(evidence, [f"[{row}: {fine}] > [{row}: {coarse}]" for row, fine, coarse in gains])


def text_gains_more(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative gain in R@1 by finer captions is larger from text than from images."""
    text, images = (_mean(evidence, _finer(evidence, column)) for column in ("t2i R@1", "i2t R@1"))
    return _judged(evidence, [f"{text} > {images}"], "finer captions raise R@1 more from text, on average")


def mean_gains(evidence: Evidence) -> list[Finding]:
    """Judge the printed gains in R@1 over both collections."""
    printed = {"t2i R@1": 0.1623, "i2t R@1": 0.0644}
    return [_gain(evidence, column, share, "coco", "flickr30k") for column, share in printed.items()]


def collections_gains(evidence: Evidence) -> list[Finding]:
    """Judge the printed gains in R@1 on each collection."""
    coco, flickr30k = {"i2t R@1": 0.0814, "t2i R@1": 0.1711}, {"i2t R@1": 0.0475, "t2i R@1": 0.1535}
    return [
        _gain(evidence, column, share, name)
        for name, printed in (("coco", coco), ("flickr30k", flickr30k))
        for column, share in printed.items()
    ]


def drops(evidence: Evidence) -> list[Finding]:
    """Judge whether each kind of perturbation lowers the sum of each encoder."""
    return _lowered(evidence, _KINDS)


def shuffles_drop(evidence: Evidence) -> list[Finding]:
    """Judge whether each shuffle lowers the sum of each encoder."""
    return _lowered(evidence, _LISTS["shuffles"])


def shuffling_costs_most(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative drop is the largest where all words are shuffled."""
    return _extreme_mean(evidence, "shuffle-all-words", "<")


def synonyms_cost_least(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative drop is the smallest with synonyms."""
    return _extreme_mean(evidence, "synonyms", ">")


def shuffling_costs_most_everywhere(evidence: Evidence) -> list[Finding]:
    """Judge whether each encoder has its lowest sum on each collection where all words are shuffled."""
    return _extreme(evidence, "shuffle-all-words", "< min", _KINDS)


def synonyms_cost_least_everywhere(evidence: Evidence) -> list[Finding]:
    """Judge whether each encoder has its highest perturbed sum on each collection with synonyms."""
    return _extreme(evidence, "synonyms", "> max", _KINDS)


def finer_drops_less(evidence: Evidence) -> list[Finding]:
    """Judge whether drops are smaller with finer captions, but for Flickr30k's, perturbation by perturbation."""
    return _compared_drops(evidence, [one for one in _pairs(evidence) if one[0].lower() != "flickr30k"], ">")


def finer_drops_no_less(evidence: Evidence) -> list[Finding]:
    """Judge whether drops are not smaller with Flickr30k's finer captions, perturbation by perturbation."""
    return _compared_drops(evidence, [one for one in _pairs(evidence) if one[0].lower() == "flickr30k"], "<=")


def unchanged_agree_most(evidence: Evidence) -> list[Finding]:
    """Judge whether the unchanged queries are the most similar, of each encoder on each collection."""
    return _extreme(evidence, "unchanged", "> max", _LISTS["groups"])


def increased_agree_least(evidence: Evidence) -> list[Finding]:
    """Judge whether the queries that gain are the least similar, of each encoder on each collection."""
    return _extreme(evidence, "increased", "< min", _LISTS["groups"])


Ratio = tuple[str, str, str]
"""A row, and the columns that are above and below the line."""


def _encoders(evidence: Evidence) -> list[str]:
    return [row for row in evidence.figures if row != "bag"]


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    """Return collections with their finer ones."""
    known = {name.lower(): name for name in evidence.centric}
    return [(name, known[low + FINER]) for low, name in known.items() if low + FINER in known]


def _there(evidence: Evidence, row: str, columns: Iterable[str]) -> bool:
    return all(evidence.figure(row, column) is not None for column in columns)


def _finer(evidence: Evidence, column: str) -> list[Ratio]:
    """Return what finer captions make of a column, where it is known with both."""
    found = [
        (row, f"{fine} {column}", f"{coarse} {column}")
        for row in _encoders(evidence)
        for coarse, fine in _pairs(evidence)
    ]
    return [one for one in found if _there(evidence, one[0], one[1:])]


def _mean(ratios: Sequence[Ratio]) -> str:
    return f"mean({', '.join(f'[{row}: {above}] / [{row}: {below}]' for row, above, below in ratios)})"
