"""Hendriksen et al. (2024): claims about all encoders and collections that were measured, however many there are.

What has no numbers is left out; the bag of words is a control, and no encoder that a claim is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from diptych.studies.claims import FINER, combinations, lists_of
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula
from diptych.studies.published import document

_LISTS = document("brittleness")["lists"]
_KINDS = [*_LISTS["shuffles"], *_LISTS["means"]]
_GAIN = "[{row}: {pair.fine} {column}] / [{row}: {pair.coarse} {column}]"
_NEEDED = "an encoder measured on every collection that is compared"


def _there(evidence: Evidence, text: str, **each: str | Sequence[Any]) -> list[str]:
    """Return a text for each encoder and combination of variables that has numbers for all its places."""
    rows = [row for row in evidence.figures if row != "bag"]
    named = combinations({"row": rows, **each}, {**_LISTS, **lists_of(evidence)})
    places = {one: Formula.parse(f"{one} > 0").places for one in (text.format(**values) for values in named)}
    return [one for one, of in places.items() if all(evidence.figure(*place) is not None for place in of)]


def _judged(evidence: Evidence, formulas: Iterable[str]) -> list[Finding]:
    asked = [Formula.parse(one) for one in formulas]
    found = [one.judge(evidence, len(asked)) for one in asked]
    return found or [Finding.missing("comparisons of encoders", _NEEDED)]


def _means(evidence: Evidence, terms: Mapping[str, Sequence[str]], sign: str) -> list[Finding]:
    """Judge whether means of terms are above or below 0, by what that says in words."""
    formulas = {what: f"mean({', '.join(of)}) {sign} 0" for what, of in terms.items() if of}
    judged = {what: Formula.parse(one).judge(evidence, len(terms)) for what, one in formulas.items()}
    found = [replace(one, what=what) for what, one in judged.items()]
    return [*found, *(Finding.missing(what, _NEEDED) for what in terms if what not in formulas)]


def finer_raises(evidence: Evidence) -> list[Finding]:
    """Judge whether finer captions raise R@1, of each encoder in each direction."""
    return _judged(evidence, _there(evidence, f"{_GAIN} > 1", pair="pairs", column="r@1"))


def text_gains_more(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative gain in R@1 by finer captions is larger from text than from images."""
    term = " - ".join(_GAIN.replace("{column}", column) for column in ("t2i R@1", "i2t R@1"))
    what = "finer captions raise R@1 more from text than from images, on average"
    return _means(evidence, {what: _there(evidence, term, pair="pairs")}, ">")


def named_gains(evidence: Evidence, printed: str) -> list[Finding]:
    """Judge whether mean relative gains are those that the text names, to half a per cent."""
    findings = []
    for column, gain, names in _LISTS[printed]:
        pairs = [{"coarse": name, "fine": name + FINER} for name in names]
        each = combinations({"model": "models", "pair": pairs}, _LISTS)
        gains = [_GAIN.format(row=one["model"].key, column=column, **one) for one in each]
        what = f"finer captions raise {column} on {' and '.join(names)} by {100 * gain:.2f} % on average"
        formula = f"{1 + gain - 0.005:.4f} <= mean({', '.join(gains)}) <= {1 + gain + 0.005:.4f}"
        findings.append(replace(_judged(evidence, [formula])[0], what=what))
    return findings


def below(
    evidence: Evidence, lower: Sequence[str], higher: Sequence[str], mean: bool = False
) -> list[Finding]:
    """Judge whether columns are below others: on each collection, or in the mean share of clean sums."""
    text = "[{row}: {name} {low}] < [{row}: {name} {high}]"
    if mean:
        text = "([{row}: {name} {low}] - [{row}: {name} {high}]) / [{row}: {name} none]"
    there = {
        f"{low} is below {high}, on average": _there(
            evidence, text, name="collections", low=[low], high=[high]
        )
        for low in lower
        for high in higher
        if low != high
    }
    return _means(evidence, there, "<") if mean else _judged(evidence, chain(*there.values()))


def finer_drops(evidence: Evidence, flickr30k: bool) -> list[Finding]:
    """Judge whether mean relative drops are smaller with finer captions: Flickr30k's, or all others.

    All thirteen perturbations are compared where they were run, else the kinds that are printed.
    """
    term = "[{row}: {pair.fine} {kind}] / [{row}: {pair.fine} none]"
    term += f" - {term.replace('fine', 'coarse')}"
    pairs = [
        one for one in lists_of(evidence)["pairs"] if (one["coarse"].lower() == "flickr30k") == flickr30k
    ]
    thirteen, kinds = (
        {f"{one} costs less if finer": _there(evidence, term, pair=pairs, kind=[one]) for one in of}
        for of in (_LISTS["perturbations"], _KINDS)
    )
    return _means(evidence, thirteen if all(thirteen.values()) else kinds, ">")
