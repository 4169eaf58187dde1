"""Claims: what a paper's text says its numbers show, and what any numbers say of it.

A claim stands in its paper's file, with checks that are formulas, or short for several (docs/explanation/studies.md).

A claim **fails** when a comparison does; it is **not tested** when one could not be made, **undecided** when the
error of the numbers leaves one open, and **holds** otherwise.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

from diptych.core.errors import StorageError
from diptych.studies.evidence import (
    LEVEL,
    Evidence,
    Finding,
    Formula,
    Lists,
    RowColumn,
    Status,
    listed,
    members,
)

_CHECKS = ("python", "formula", "rises", "falls", "best", "least", "similar")
# Ends the name of a collection of finer captions of the same images.
FINER = "-fg"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about its numbers."""

    name: str  # the number it has in the paper
    text: str
    where: str = ""  # in the paper, and what was taken for its words
    on: tuple[str, ...] = ()  # keys of the paper's evaluations that it is about; all when empty
    about: tuple[str, ...] = ()  # rows of models that it names: a stand-in's numbers do not test it
    checks: tuple[str | Mapping[str, Any], ...] = ()
    columns: tuple[str, ...] = ("",)  # that formulas without a column are evaluated on
    each: Mapping[str, Any] = field(default_factory=dict)  # variable → the name of a list, or its members
    otherwise: Mapping[str, Any] = field(default_factory=dict)  # variables instead, where some was not tested
    measured: bool = False  # what has no numbers is left out
    given: str = ""  # a formula that has to hold before anything is judged
    more: float | None = None  # more than this share of comparisons have to hold; all when None
    less: float | None = None  # and less than this one
    p: float | None = None  # level of tests over queries, corrected for their number (Bonferroni)
    # variable → the row ``of`` a list with the highest number ``by`` a column
    choose: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)  # of the paper

    def findings(self, evidence: Evidence) -> list[Finding]:
        """Make every comparison, once where variables do not change it."""
        lists = {**self.lists, **lists_of(evidence)}
        found = {
            one.key if isinstance(one, Formula) else str(one): one
            for values in combinations(self.each, lists)
            for one in self._comparisons(values, evidence, lists)
            if not self.measured or isinstance(one, Finding) or one.is_measured(evidence)
        }
        # A claim fails when one comparison does: so many of them are corrected for, where tests are not already.
        level, of = (LEVEL, len(found)) if self.p is None else (self.p / max(1, len(found)), 1)
        judged = [
            one if isinstance(one, Finding) else one.judge(evidence, of, level, seeded=self.p is None)
            for one in found.values()
        ]
        if self.otherwise and any(one.status == "not tested" for one in judged):
            return replace(self, each={**self.each, **self.otherwise}, otherwise={}).findings(evidence)
        return judged or [Finding.missing(self.text, "what it is about")]

    def _comparisons(
        self, values: dict[str, Any], evidence: Evidence, lists: Lists
    ) -> Iterator[Formula | Finding]:
        missing = []
        for name, how in self.choose.items():
            rows = how["of"].format(**values)
            values[name] = chosen_of(evidence, members(rows, lists), how["by"].format(**values))
            missing += [f"one of {rows}"] if values[name] is None else []
        if missing:
            yield Finding.missing(self.text, *missing)
            return
        for column in [one for text in self.columns for one in members(text.format(**values), lists)]:
            if self.given:
                first = Formula.parse(self.given.format(**values), column, lists).judge(evidence)
                if first.status != "holds":
                    yield Finding.missing(self.text, str(first))
                    continue
            for check in self.checks:
                if isinstance(check, str):
                    yield Formula.parse(check.format(**values), column, lists)
                else:
                    yield from self._expanded(check, values, column, evidence, lists)

    def _expanded(
        self,
        check: Mapping[str, Any],
        values: Mapping[str, Any],
        column: str,
        evidence: Evidence,
        lists: Lists,
    ) -> Iterator[Formula | Finding]:
        """Yield the formulas that a check is short for, or what is found otherwise."""

        def parsed(text: str) -> Formula:
            return Formula.parse(text, column, lists)

        def is_measured(term: str) -> bool:
            return parsed(f"{term} > 0").is_measured(evidence)

        def texts(given: str | Sequence[str]) -> list[str]:
            each = [given] if isinstance(given, str) else given
            return [one for text in each for one in members(text.format(**values), lists)]

        def terms(key: str) -> list[str]:
            return [one if "[" in one else f"[{one}]" for one in texts(check[key])]

        kind = next((kind for kind in _CHECKS if kind in check), None)
        if kind is None:
            raise StorageError(f"no check is called {', '.join(check)}: {', '.join(_CHECKS)}")
        if kind == "python":
            arguments = {
                key: texts(value) if isinstance(value, list) else value for key, value in check.items()
            }
            for one in resolve_name(str(arguments.pop("python")))(evidence, **arguments):
                yield parsed(one) if isinstance(one, str) else one
            return
        if kind == "formula":  # of terms, shown in words
            each = [check["term"].format(**values, **one) for one in combinations(check["of"], lists)]
            known = ", ".join(one for one in each if not self.measured or is_measured(one))
            words = check["words"].format(**values)
            formula = check["formula"].format(**values, terms=known)
            yield (
                replace(parsed(formula), text=words) if known else Finding.missing(words, "what it is about")
            )
            return
        given = terms(kind)
        if kind == "similar":
            first, second = parsed(" > ".join(given)).places
            yield _similar(first, second, evidence)
            return
        if kind in ("best", "least"):
            others = [one for one in terms("of") if one not in given]
            sign, nearest, furthest = (">", "min", "max") if kind == "best" else ("<", "max", "min")
            yield parsed(f"{nearest}({', '.join(given)}) {sign} {furthest}({', '.join(others)})")
            return
        there = [one for one in given if is_measured(one)]
        if len(there) < 2:
            yield Finding.missing(f"{kind} from {given[0]} to {given[-1]}", f"two of {', '.join(given)}")
            return
        pairs, slack = [*pairwise(there), (there[0], there[-1])], check.get("slack", 0)
        *steps, (most, least) = pairs if kind == "falls" else [(after, before) for before, after in pairs]
        for more, less in steps:
            yield parsed(f"{more} >= {less} - {slack}" if slack else f"{more} > {less}")
        yield parsed(f"{most} > {least}" + (f" + {slack}" if slack else ""))


def combinations(each: Mapping[str, Any], lists: Lists) -> Iterator[dict[str, Any]]:
    for values in product(*(listed(one, lists) if isinstance(one, str) else one for one in each.values())):
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
    names = list(evidence.centric)
    known = {name.lower(): name for name in names}
    return {
        "collections": names,
        "columns": list(dict.fromkeys(column for row in evidence.figures.values() for column in row)),
        "pairs": [
            {"coarse": known[low], "fine": known[low + FINER]} for low in known if low + FINER in known
        ],
        **{kind: [name for name in names if evidence.centric[name] == kind] for kind in ("scene", "object")},
    }


def _similar(first: RowColumn, second: RowColumn, evidence: Evidence) -> Finding:
    """Return whether two numbers differ by at most twice the spread over seeds."""
    one, other = evidence.figure(*first), evidence.figure(*second)
    what = f"{first[0]} is similar to {second[0]} in {first[1]}"
    if one is None or other is None or one.sd is None or other.sd is None:
        return Finding.missing(what, f"two seeds of {first[0]} and {second[0]}")
    apart, allowed = one.mean - other.mean, 2 * math.hypot(one.sd, other.sd)
    margin = (allowed - abs(apart)) / max(abs(one.mean), abs(other.mean), 1e-12)
    return Finding.of(what, abs(apart) <= allowed, f"{apart:+.1f}, {allowed:.1f} allowed", margin)


_FIRST: Mapping[Status, str] = {
    "fails": "the first that does not",
    "undecided": "the first that is open",
    "not tested": "the first that was not made",
}


@dataclass(frozen=True)
class Judgement:
    """The verdict of numbers on a claim."""

    status: Status
    findings: tuple[Finding, ...]  # all comparisons
    why: str = ""  # what it needs is not there

    def count(self, status: Status) -> int:
        return sum(one.status == status for one in self.findings)

    @property
    def figure(self) -> str:
        """The numbers that decide: the first that fails or is open, or the tightest that holds."""
        if self.why:
            held = self.count("holds")
            return self.why + (f"; {held} of {len(self.findings)} comparisons hold" if held else "")
        tightest = min(self.findings, key=lambda one: one.margin)
        if len(self.findings) == 1:
            return str(tightest)
        shown = next((one for status in _FIRST for one in self.findings if one.status == status), tightest)
        kind = _FIRST.get(shown.status, "the closest")
        return f"{self.count('holds')} of {len(self.findings)} comparisons hold; {kind}: {shown}"


def judge(
    claim: Claim, evidence: Evidence, stand_ins: Sequence[str] = (), keys: Sequence[str] = ()
) -> Judgement:
    """Judge a claim on numbers of the paper's evaluations ``keys``, or all; ``stand_ins`` are of other models."""
    needed = [f"{row} itself, not a stand-in" for row in claim.about if row in stand_ins]
    if claim.on and keys and not set(keys) & set(claim.on):
        needed = list(claim.on)
    if needed:
        return Judgement("not tested", (Finding.missing(claim.text, *needed),))
    findings = tuple(claim.findings(evidence))
    statuses = [one.status for one in findings]
    is_share = claim.more is not None or claim.less is not None
    if not is_share or "not tested" in statuses:
        order: Sequence[Status] = ("not tested",) if is_share else ("fails", "not tested", "undecided")
        return Judgement(next((status for status in order if status in statuses), "holds"), findings)
    least, most = statuses.count("holds"), len(statuses) - statuses.count("fails")
    low = -1 if claim.more is None else claim.more * len(statuses)
    high = len(statuses) + 1 if claim.less is None else claim.less * len(statuses)
    if most <= low or least >= high:
        return Judgement("fails", findings)
    return Judgement("holds" if low < least and most < high else "undecided", findings)
