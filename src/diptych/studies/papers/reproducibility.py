"""Hendriksen et al. (ECIR 2023): claims about the order of CLIP and X-VLM that count comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula

RECALLS = tuple(f"{direction} R@{k}" for direction in ("t2i", "i2t") for k in (1, 5, 10))
_ORIGINAL = ("coco", "flickr30k")


def larger_gains(evidence: Evidence) -> list[Finding]:
    """Judge X-VLM's gains over CLIP on MS COCO: most are above the original ones, that of i2t R@1 is the largest."""
    gains = {name: f"[x-vlm: coco {name}] / [clip: coco {name}]" for name in RECALLS}
    before = {name: gain.replace(":", "@original:") for name, gain in gains.items()}
    larger = [Formula.parse(f"{gains[name]} > {before[name]}").judge(evidence) for name in RECALLS]
    best = gains.pop("i2t R@1")
    largest = Formula.parse(f"{best} > max({', '.join(gains.values())})").judge(evidence)
    return [
        _share("X-VLM's gains over CLIP on coco tend to be larger than originally", larger, above=0.5),
        replace(largest, what="X-VLM's largest gain over CLIP on coco is that of i2t R@1"),
    ]


def partly_replicated(evidence: Evidence) -> list[Finding]:
    """Judge whether some of the originals' orders, but not all, are those on object-centric collections."""
    found = [
        _same_order(evidence, f"{one} {name}", f"{other} {name}", "@original")
        for one in _shows(evidence, "object")
        for other in _ORIGINAL
        for name in RECALLS
    ]
    what = "the originals' orders are found again on object-centric collections, but not all"
    return [_share(what, found, above=0, below=1)]


def partly_generalised(evidence: Evidence) -> list[Finding]:
    """Judge whether some orders on scene-centric collections, but not all, are those on object-centric ones."""
    found = [
        _same_order(evidence, f"{one} {name}", f"{other} {name}")
        for one in _shows(evidence, "object")
        for other in _shows(evidence, "scene")
        for name in RECALLS
    ]
    what = "orders on scene-centric collections are found again on object-centric ones, but not all"
    return [_share(what, found, above=0, below=1)]


def odd_one_out(evidence: Evidence) -> list[Finding]:
    """Judge whether X-VLM is ahead in every recall on MS COCO, and CLIP on every other collection."""
    isolated = [name.lower() == "coco" for name in evidence.centric]
    if len(set(isolated)) < 2:
        return [Finding.missing("coco is the odd one out", "coco", "another collection")]
    asked = [
        Formula.parse("[x-vlm] > [clip]" if is_coco else "[clip] > [x-vlm]", f"{collection} {name}")
        for collection, is_coco in zip(evidence.centric, isolated, strict=True)
        for name in RECALLS
    ]
    return [one.judge(evidence, len(asked)) for one in asked]


def _shows(evidence: Evidence, kind: str) -> list[str]:
    return [name for name, shows in evidence.centric.items() if shows == kind]


def _same_order(evidence: Evidence, first: str, second: str, source: str = "") -> Finding:
    """Return whether the same model is ahead in two columns; ``source`` of the second one's numbers."""
    one = f"[x-vlm: {first}] - [clip: {first}]"
    other = f"[x-vlm{source}: {second}] - [clip{source}: {second}]"
    return Formula.parse(f"({one}) * ({other}) > 0").judge(evidence)


def _share(what: str, found: Sequence[Finding], above: float, below: float = math.inf) -> Finding:
    """Return whether the share of comparisons that hold is between two bounds, both excluded."""
    if not found:
        return Finding.missing(what, "a scene-centric and an object-centric collection")
    for one in found:
        if one.status == "not tested":
            return replace(one, what=what)
    statuses = [one.status for one in found]
    least, most = statuses.count("holds") / len(found), 1 - statuses.count("fails") / len(found)
    margin = min(least - above, below - most)
    fails = most <= above or least >= below
    detail = f"{statuses.count('holds')} of {len(found)} comparisons"
    return Finding(what, "holds" if margin > 0 else "fails" if fails else "undecided", detail, margin)
