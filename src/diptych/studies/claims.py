"""Claims: what a paper's text says its numbers show, and what any numbers say of it.

A claim stands in its paper's file, with checks that are formulas, or short for several::

    check = "[ltd-constraint] > [ltd-dual]"
    check = [{ rises = ["vse-bits-0", "vse-bits-4"], slack = 12 }, { best = "pc", of = "$devices" }]

``in`` names the columns that are asked, ``each`` variables that stand in braces, ``given`` a formula without
which nothing can be judged, ``more`` the share of comparisons above which a claim of *most* holds, ``p`` the level
of tests that are corrected for their number, ``choose`` the row with the highest number of a column. What formulas
cannot say is a function.

A claim **fails** when a comparison does; it is **not tested** when one could not be made, **undecided** when the
error of the numbers leaves one open, and **holds** otherwise.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

from diptych.core.errors import StorageError
from diptych.studies.evidence import Evidence, Place
from diptych.studies.formulas import LEVEL, Finding, Formula, Status, members

Lists = Mapping[str, Sequence[Any]]
_CHECKS = ("rises", "falls", "best", "least", "similar")
FINER = "-fg"
"""Ends the name of a collection of finer captions of the same pictures."""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about its numbers.

    Attributes:
        name: the number it has in the paper.
        text: the statement, in few words.
        where: where the paper says it.
        on: the evaluations of the paper that it is about, by their keys; all when empty.
        about: rows that stand for models by name: a stand-in's numbers do not test it.
        checks: formulas, and what is short for several.
        columns: what formulas without a column are asked of.
        each: variable → the name of a list, or its members.
        given: a formula that has to hold before anything is judged.
        more: the share of comparisons that have to hold, more than it; all of them when not given.
        less: the share that must not all hold, less than it.
        p: level of tests that are corrected for their number (Bonferroni).
        choose: variable → ``of`` a list of rows, ``by`` a column: the row with the highest number.
        function: what makes findings of evidence instead, ``MODULE:NAME``.
        lists: of the paper.
    """

    name: str
    text: str
    where: str = ""
    on: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    checks: tuple[str | Mapping[str, Any], ...] = ()
    columns: tuple[str, ...] = ("",)
    each: Mapping[str, Any] = field(default_factory=dict)
    given: str = ""
    more: float | None = None
    less: float | None = None
    p: float | None = None
    choose: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    function: str = ""
    lists: Lists = field(default_factory=dict)

    def findings(self, evidence: Evidence) -> list[Finding]:
        """Make every comparison."""
        if self.function:
            module, _, name = self.function.partition(":")
            found: list[Finding] = getattr(importlib.import_module(module), name)(evidence)
            return found
        lists = {**self.lists, **lists_of(evidence)}
        made = [
            one for values in self._variables(evidence, lists) for one in self._asked(values, evidence, lists)
        ]
        # What variables do not change is asked once.
        asked = list({one.key if isinstance(one, Formula) else str(one): one for one in made}.values())
        # A claim fails when one comparison does: so many of them are corrected for, where tests are not already.
        level, of = (LEVEL, len(asked)) if self.p is None else (self.p / max(1, len(asked)), 1)
        seeded = self.p is None  # a test over queries is one of queries alone
        found = [one if isinstance(one, Finding) else one.judge(evidence, of, level, seeded) for one in asked]
        return found or [Finding.missing(self.text, "what it is about")]

    def _variables(self, evidence: Evidence, lists: Lists) -> Iterator[dict[str, Any]]:
        """Yield the values of variables, one combination after the other."""
        for named in combinations(self.each, lists):
            for name, how in self.choose.items():
                rows = members(how["of"].format(**named), lists)
                named[name] = chosen_of(evidence, rows, how["by"].format(**named))
            yield named

    def _asked(
        self, values: Mapping[str, Any], evidence: Evidence, lists: Lists
    ) -> Iterator[Formula | Finding]:
        missing = [name for name in self.choose if values[name] is None]
        if missing:
            yield Finding.missing(
                self.text, *(f"one of {self.choose[name]['of'].format(**values)}" for name in missing)
            )
            return
        columns = [one for text in self.columns for one in members(text.format(**values), lists)]
        for column in columns:
            if self.given:
                first = Formula.parse(self.given.format(**values), column, lists).judge(evidence)
                if first.status != "holds":
                    yield Finding.missing(self.text, str(first))
                    continue
            for check in self.checks:
                texts = (
                    [check] if isinstance(check, str) else _several(check, values, column, evidence, lists)
                )
                for text in texts:
                    yield (
                        text
                        if isinstance(text, Finding)
                        else Formula.parse(text.format(**values), column, lists)
                    )


def combinations(each: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the values of variables, one combination after the other."""
    for values in product(*(lists[one] if isinstance(one, str) else one for one in each.values())):
        named = (SimpleNamespace(**one) if isinstance(one, Mapping) else one for one in values)
        yield dict(zip(each, named, strict=True))


def chosen_of(evidence: Evidence, rows: Sequence[str], by: str) -> str | None:
    """Return the row with the highest number of a column; of numbers without it, the only row there is."""
    judged = evidence.only(rows, by)
    if judged:
        return max(judged, key=lambda row: judged[row].mean)
    there = [row for row in rows if evidence.figures.get(row)]
    return there[0] if len(there) == 1 else None


def lists_of(evidence: Evidence) -> dict[str, list[Any]]:
    """Return lists of what was measured: columns, collections, by what their pictures show, and pairs of coarse and
    finer ones."""
    names = list(evidence.centric)
    known = {name.lower(): name for name in names}
    finer = [(name, known[low + FINER]) for low, name in known.items() if low + FINER in known]
    kinds = {kind: [name for name in names if evidence.centric[name] == kind] for kind in ("scene", "object")}
    columns = dict.fromkeys(column for of_row in evidence.figures.values() for column in of_row)
    pairs = [{"coarse": coarse, "fine": fine} for coarse, fine in finer]
    return {"collections": names, "columns": list(columns), "pairs": pairs, **kinds}


def _several(
    check: Mapping[str, Any], values: Mapping[str, Any], column: str, evidence: Evidence, lists: Lists
) -> Iterator[str | Finding]:
    """Yield the formulas that a check is short for."""

    def numbers(given: str | Sequence[str]) -> list[str]:
        texts = [given] if isinstance(given, str) else given
        named = [one for text in texts for one in members(text.format(**values), lists)]
        return [one if "[" in one else f"[{one}]" for one in named]

    kind = next((kind for kind in _CHECKS if kind in check), None)
    if kind is None:
        raise StorageError(f"no check is called {', '.join(check)}: {', '.join(_CHECKS)}")
    given = numbers(check[kind])
    if kind == "similar":
        one, other = (Formula.parse(f"{text} > 0", column, lists).places[0] for text in given)
        yield _similar(one, other, evidence)
        return
    if kind in ("best", "least"):
        others = [one for one in numbers(check["of"]) if one not in given]
        sign, first, second = (">", "min", "max") if kind == "best" else ("<", "max", "min")
        yield f"{first}({', '.join(given)}) {sign} {second}({', '.join(others)})"
        return
    there = [one for one in given if _is_there(one, column, evidence, lists)]
    if len(there) < 2:
        yield Finding.missing(f"{kind} from {given[0]} to {given[-1]}", f"two of {', '.join(given)}")
        return
    steps = [*pairwise(there), *([(there[0], there[-1])] if len(there) > 2 or "slack" in check else [])]
    for place, (before, after) in enumerate(steps):
        more, less = (after, before) if kind == "rises" else (before, after)
        slack = check.get("slack", 0)
        whole = place == len(there) - 1  # the last pair is the whole way
        yield (
            f"{more} > {less}"
            if not slack
            else f"{more} {'>' if whole else '>='} {less} {'+' if whole else '-'} {slack}"
        )


def _similar(first: Place, second: Place, evidence: Evidence) -> Finding:
    """Return whether two numbers differ by at most twice the spread over seeds."""
    one, other = evidence.figure(*first), evidence.figure(*second)
    what = f"{first[0]} is similar to {second[0]} in {first[1]}"
    if one is None or other is None or one.sd is None or other.sd is None:
        return Finding.missing(what, f"two seeds of {first[0]} and {second[0]}")
    apart, allowed = abs(one.mean - other.mean), 2 * math.hypot(one.sd, other.sd)
    detail = f"{one.mean - other.mean:+.1f}, {allowed:.1f} allowed"
    return Finding.of(
        what, apart <= allowed, detail, (allowed - apart) / max(abs(one.mean), abs(other.mean), 1e-12)
    )


def _is_there(number: str, column: str, evidence: Evidence, lists: Lists) -> bool:
    places = Formula.parse(f"{number} > 0", column, lists).places
    return all(evidence.figure(*place) is not None for place in places)


@dataclass(frozen=True)
class Judgement:
    """What numbers say about a claim.

    Attributes:
        status: see above.
        findings: all comparisons.
    """

    status: Status
    findings: tuple[Finding, ...]

    def count(self, status: Status) -> int:
        """Return how many comparisons have a status."""
        return sum(one.status == status for one in self.findings)

    @property
    def figure(self) -> str:
        """The numbers that decide: the first that fails or is open, or the tightest that holds."""
        order: tuple[Status, ...] = ("fails", "undecided", "not tested")
        shown = next((one for status in order for one in self.findings if one.status == status), None)
        tightest = min(self.findings, key=lambda one: one.margin)
        if len(self.findings) == 1:
            return str(tightest)
        kind = {
            "fails": "the first that does not",
            "undecided": "the first that is open",
            "not tested": "the first that was not made",
        }
        first = "the closest" if shown is None else kind[shown.status]
        return f"{self.count('holds')} of {len(self.findings)} comparisons hold; {first}: {shown or tightest}"


def judge(claim: Claim, evidence: Evidence, stand_ins: Sequence[str] = ()) -> Judgement:
    """Hold a claim against figures; ``stand_ins`` are rows that are not the models whose names they have."""
    if own := [row for row in claim.about if row in stand_ins]:
        return Judgement(
            "not tested", (Finding.missing(claim.text, *(f"{row} itself, not a stand-in" for row in own)),)
        )
    findings = tuple(claim.findings(evidence))
    statuses = [one.status for one in findings]
    if (claim.more is not None or claim.less is not None) and "not tested" not in statuses:
        least, most = statuses.count("holds"), len(statuses) - statuses.count("fails")
        low = -1 if claim.more is None else claim.more * len(statuses)
        high = len(statuses) + 1 if claim.less is None else claim.less * len(statuses)
        share: Status = "holds" if low < least and most < high else "undecided"
        return Judgement("fails" if most <= low or least >= high else share, findings)
    order: tuple[Status, ...] = ("fails", "not tested", "undecided")
    return Judgement(next((status for status in order if status in statuses), "holds"), findings)
