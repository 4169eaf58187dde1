"""Hendriksen et al. (2024): claims about all encoders and collections that were measured, however many there are.

What has no numbers is left out; the bag of words is a control, and no encoder that a claim is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.studies.claims import FINER
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula
from diptych.studies.published import document

_LISTS = document("brittleness")["lists"]
_KINDS, _GROUPS = _LISTS["kinds"], _LISTS["groups"]


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    """Return collections with their finer ones."""
    known = {name.lower(): name for name in evidence.centric}
    return [(name, known[low + FINER]) for low, name in known.items() if low + FINER in known]


def _cases(evidence: Evidence, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return encoders and collections that have all of some columns."""
    return [
        (row, name)
        for row in evidence.figures
        for name in evidence.centric
        if row != "bag" and all(evidence.figure(row, f"{name} {column}") is not None for column in columns)
    ]


def _judged(evidence: Evidence, formulas: Sequence[str], what: str = "") -> list[Finding]:
    """Judge formulas, which ``what`` says in words."""
    found = [Formula.parse(one).judge(evidence, len(formulas)) for one in formulas]
    needed = "numbers of an encoder on every collection that is compared"
    return [replace(one, what=what or one.what) for one in found] or [Finding.missing(what, needed)]


def _ratio(row: str, above: str, below: str) -> str:
    return f"[{row}: {above}] / [{row}: {below}]"


# Table 5.2 --------------------------------------------------------------------------------------------


def _gains(evidence: Evidence, column: str, *names: str) -> list[str]:
    """Return what finer captions multiply a column by: encoder by encoder, on ``names``, else on all."""
    pairs = {coarse.lower(): (coarse, fine) for coarse, fine in _pairs(evidence)}
    if not pairs.keys() >= set(names):
        return []
    cases = _cases(evidence, [column])
    return [
        _ratio(row, f"{fine} {column}", f"{coarse} {column}")
        for row in evidence.figures
        for coarse, fine in map(pairs.get, names or pairs)
        if (row, coarse) in cases and (row, fine) in cases
    ]


def finer_raises(evidence: Evidence) -> list[Finding]:
    """Judge whether finer captions raise R@1, of each encoder in each direction."""
    gains = [one for column in _LISTS["r@1"] for one in _gains(evidence, column)]
    return _judged(evidence, [f"{one} > 1" for one in gains])


def text_gains_more(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative gain in R@1 by finer captions is larger from text than from images."""
    text, images = (", ".join(_gains(evidence, column)) for column in ("t2i R@1", "i2t R@1"))
    formulas = [f"mean({text}) > mean({images})"] if text and images else []
    return _judged(evidence, formulas, "finer captions raise R@1 more from text than from images, on average")


def _mean_gains(evidence: Evidence, printed: Sequence[tuple[str, float, str]]) -> list[Finding]:
    """Judge mean gains as the text has them, to half a per cent: column, share and collections."""
    findings = []
    for column, share, names in printed:
        gains = ", ".join(_gains(evidence, column, *names.split(" and ")))
        formulas = [f"{share - 0.005:.4f} <= mean({gains}) - 1 <= {share + 0.005:.4f}"] if gains else []
        what = f"finer captions raise {column} on {names} by {100 * share:.2f} % on average"
        findings += _judged(evidence, formulas, what)
    return findings


_BOTH = [("t2i R@1", 0.1623, "coco and flickr30k"), ("i2t R@1", 0.0644, "coco and flickr30k")]
_COCO = [("i2t R@1", 0.0814, "coco"), ("t2i R@1", 0.1711, "coco")]
_FLICKR30K = [("i2t R@1", 0.0475, "flickr30k"), ("t2i R@1", 0.1535, "flickr30k")]
mean_gains = partial(_mean_gains, printed=_BOTH)
collections_gains = partial(_mean_gains, printed=_COCO + _FLICKR30K)

# Tables 5.3 and 5.4 -----------------------------------------------------------------------------------


def _drops(evidence: Evidence, kinds: Sequence[str]) -> list[Finding]:
    """Judge whether perturbations lower the sum, one by one."""
    cases = [(row, f"{name} ", kind) for kind in kinds for row, name in _cases(evidence, ["none", kind])]
    return _judged(evidence, [f"[{row}: {on}{kind}] < [{row}: {on}none]" for row, on, kind in cases])


def _extreme(evidence: Evidence, column: str, sign: str, of: Sequence[str]) -> list[Finding]:
    """Judge whether a column is below (``< min``) or above (``> max``) others, of each encoder on each collection."""
    others = [one for one in of if one != column]
    return _judged(
        evidence,
        [
            f"[{row}: {name} {column}] {sign}({', '.join(f'[{row}: {name} {one}]' for one in others)})"
            for row, name in _cases(evidence, of)
        ],
    )


def _extreme_drop(evidence: Evidence, kind: str, sign: str) -> list[Finding]:
    """Judge whether the mean relative drop of a kind is larger (``<``) or smaller (``>``) than those of all others."""
    cases = _cases(evidence, ["none", *_KINDS])
    shares = {
        one: ", ".join(_ratio(row, f"{name} {one}", f"{name} none") for row, name in cases) for one in _KINDS
    }
    word = "more" if sign == "<" else "less"
    return [
        finding
        for other in _KINDS
        if other != kind
        for finding in _judged(
            evidence,
            [f"mean({shares[kind]}) {sign} mean({shares[other]})"] if cases else [],
            f"{kind} costs {word} than {other}, on average",
        )
    ]
