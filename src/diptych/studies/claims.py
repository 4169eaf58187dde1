"""Claims: what a paper's text says its numbers show, as checks that hold or fail on any numbers.

A claim is a list of comparisons. It holds when all that could be made hold, fails when one does not,
and is not run when none could be made. "A beats B" holds when the difference of the means is above
zero; whether the difference is also more than twice the spread over seeds is said beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from diptych.studies.evidence import Difference, Evidence, difference

Status = Literal["holds", "fails", "not run"]


@dataclass(frozen=True)
class Finding:
    """One comparison of a claim.

    Attributes:
        what: what is compared.
        holds: whether it is as the claim says; None where a figure is missing.
        detail: the figures that decide.
        margin: how far from failing, for finding the tightest; below 0 where it fails.
    """

    what: str
    holds: bool | None
    detail: str
    margin: float = 0.0

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}"


Check = Callable[[Evidence], list[Finding]]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper about its numbers.

    Attributes:
        name: the number it has in the paper.
        text: the statement, in few words.
        check: the comparisons that decide it.
        where: where the paper says it.
        on: the evaluations of the paper that it is about, by their keys; all when empty.
    """

    name: str
    text: str
    check: Check
    where: str = ""
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What the numbers say about a claim.

    Attributes:
        status: ``holds``, ``fails`` or ``not run``.
        findings: all comparisons.
    """

    status: Status
    findings: tuple[Finding, ...]

    @property
    def decided(self) -> list[Finding]:
        """The comparisons that could be made."""
        return [finding for finding in self.findings if finding.holds is not None]

    @property
    def figure(self) -> str:
        """The figure that decides: the first that fails, or the tightest that holds."""
        if not self.decided:
            return self.findings[0].detail if self.findings else ""
        failed = [finding for finding in self.decided if not finding.holds]
        shown = str(failed[0] if failed else min(self.decided, key=lambda finding: finding.margin))
        if len(self.decided) == 1:
            return shown
        right = len(self.decided) - len(failed)
        kind = "the first that does not" if failed else "the closest"
        return f"{right} of {len(self.decided)} comparisons hold; {kind}: {shown}"


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Hold a claim against figures."""
    findings = tuple(claim.check(evidence))
    decided = [finding.holds for finding in findings if finding.holds is not None]
    status: Status = "not run" if not decided else "holds" if all(decided) else "fails"
    return Judgement(status, findings)


def missing(what: str, *needed: str) -> Finding:
    """A comparison that could not be made."""
    return Finding(what, None, f"needs {', '.join(needed)}")


def all_of(*checks: Check) -> Check:
    """The comparisons of several checks."""
    return lambda evidence: [finding for check in checks for finding in check(evidence)]


def _compare(
    first: str,
    second: str,
    columns: Sequence[str],
    word: str,
    rule: Callable[[Difference], tuple[bool, float]],
) -> Check:
    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{first} {word} {second} in {column}"
            one, other = evidence.figure(first, column), evidence.figure(second, column)
            if one is None or other is None:
                absent = [row for row, figure in ((first, one), (second, other)) if figure is None]
                findings.append(missing(what, *(f"{column} of {row}" for row in absent)))
                continue
            apart = difference(one, other)
            holds, margin = rule(apart)
            # Relative, so that the tightest of columns in different units can be named.
            scale = max(abs(one.mean), abs(other.mean), 1e-12)
            findings.append(Finding(what, holds, str(apart), margin / scale))
        return findings

    return check


def beats(better: str, worse: str, *columns: str) -> Check:
    """``better`` has the higher mean in every column."""
    return _compare(better, worse, columns, "beats", lambda apart: (apart.mean > 0, apart.mean))


def not_better(row: str, reference: str, *columns: str) -> Check:
    """``row`` has no higher mean than ``reference`` in any column."""
    return _compare(row, reference, columns, "does not beat", lambda apart: (apart.mean <= 0, -apart.mean))


def similar(first: str, second: str, *columns: str, share: float | None = None) -> Check:
    """The two differ by at most twice the spread over seeds, or by at most ``share`` of the second.

    Without ``share`` and without a spread there is nothing to judge similarity by.
    """

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{first} is similar to {second} in {column}"
            one, other = evidence.figure(first, column), evidence.figure(second, column)
            if one is None or other is None:
                findings.append(missing(what, f"{column} of {first} and {second}"))
                continue
            apart = difference(one, other)
            allowed = share * abs(other.mean) if share is not None else None
            if allowed is None:
                if apart.spread is None:
                    findings.append(missing(what, f"two seeds of {first} and {second}"))
                    continue
                allowed = 2 * apart.spread
            detail = f"{apart}" if share is None else f"{apart.mean:+.1f}, {allowed:.1f} allowed"
            margin = (allowed - abs(apart.mean)) / max(abs(one.mean), abs(other.mean), 1e-12)
            findings.append(Finding(what, abs(apart.mean) <= allowed, detail, margin))
        return findings

    return check


def at_most(row: str, reference: str, factor: float, *columns: str) -> Check:
    """``row`` is at most ``factor`` times ``reference`` in every column."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{row} is at most {factor:g} × {reference} in {column}"
            one, other = evidence.figure(row, column), evidence.figure(reference, column)
            if one is None or other is None:
                findings.append(missing(what, f"{column} of {row} and {reference}"))
                continue
            limit = factor * other.mean
            detail = f"{one.mean:.2f} against {other.mean:.2f}"
            margin = (limit - one.mean) / max(abs(one.mean), abs(limit), 1e-12)
            findings.append(Finding(what, one.mean <= limit, detail, margin))
        return findings

    return check


def best_of(winner: str, others: Sequence[str], *columns: str) -> Check:
    """``winner`` beats each of ``others`` in every column."""
    return all_of(*(beats(winner, other, *columns) for other in others))
