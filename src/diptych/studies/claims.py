"""Claims: what a paper's text says its numbers show, as checks that hold or fail on any numbers.

A claim is a list of comparisons. It holds when all that could be made hold, fails when one does not,
and is not run when none could be made. "A beats B" holds when the difference of the means is above
zero; whether the difference is also more than twice the spread over seeds is said beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from diptych.studies.verdict import Difference, Evidence, difference

Status = Literal["holds", "fails", "not run"]

RECALLS = ("R@1", "R@5", "R@10")
I2T = tuple(f"i2t {name}" for name in RECALLS)
T2I = tuple(f"t2i {name}" for name in RECALLS)


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


def above_one(rows: tuple[str, ...], symbol: str) -> Check:
    """The rows' count per query is above 1 in both directions."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for row in rows:
            for direction in ("i2t", "t2i"):
                column = f"{direction} {symbol}"
                figure = evidence.figure(row, column)
                what = f"{column} of {row} is above 1"
                if figure is None:
                    findings.append(missing(what, f"{column} of {row}"))
                else:
                    findings.append(Finding(what, figure.mean > 1, f"{figure.mean:.2f}", figure.mean - 1))
        return findings

    return check


def between(row: str, column: str, low: float, high: float) -> Check:
    """A count lies in [low, high]."""

    def check(evidence: Evidence) -> list[Finding]:
        figure = evidence.figure(row, column)
        what = f"{column} of {row} lies between {low:g} and {high:g}"
        if figure is None:
            return [missing(what, f"{column} of {row}")]
        margin = min(figure.mean - low, high - figure.mean)
        return [Finding(what, margin >= 0, f"{figure.mean:.2f}", margin)]

    return check


def share_at_rest(row: str, direction: str, queries: float, low: float, high: float) -> Check:
    """The share of a batch's queries without gradient lies in [low, high]; ``queries`` are the paper's."""

    def check(evidence: Evidence) -> list[Finding]:
        what = (
            f"{row}: between {100 * low:g} and {100 * high:g} % of {direction} queries are without gradient"
        )
        at_rest = evidence.figure(row, f"{direction} C^0")
        if at_rest is None:
            return [missing(what, f"{direction} C^0 of {row}")]
        own = evidence.figure(row, f"{direction} queries")
        share = at_rest.mean / (queries if own is None else own.mean)
        return [Finding(what, low <= share <= high, f"{100 * share:.1f} %", min(share - low, high - share))]

    return check


def small_spreads(row: str) -> Check:
    """Deviations over seeds are below half a percentage point in almost all recalls: five of six."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row}: deviations over seeds below 0.5 in at least five of six recalls"
        figures = [evidence.figure(row, column) for column in (*I2T, *T2I)]
        spreads = [figure.sd for figure in figures if figure is not None and figure.sd is not None]
        if len(spreads) < 6:
            return [missing(what, f"two seeds of {row}")]
        small = sum(spread < 0.5 for spread in spreads)
        detail = f"{small} of 6, the largest {max(spreads):.2f}"
        return [Finding(what, small >= 5, detail, small - 5)]

    return check


def narrow(what: str, rows: tuple[str, ...], share: float) -> Check:
    """The rsum of ``rows`` differs by at most ``share`` of the highest."""

    def check(evidence: Evidence) -> list[Finding]:
        figures = evidence.only(rows, "rsum")
        if len(figures) < len(rows):
            return [missing(what, *(row for row in rows if row not in figures))]
        means = [figure.mean for figure in figures.values()]
        apart, allowed = max(means) - min(means), share * max(means)
        detail = f"{apart:.1f} apart, {allowed:.1f} allowed"
        return [Finding(what, apart <= allowed, detail, (allowed - apart) / max(*means, 1e-12))]

    return check


def more_at_the_top(better: str, worse: str) -> Check:
    """What ``better`` gains over ``worse`` is more at R@1 and R@5 than at R@10, in both directions."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for direction in ("i2t", "t2i"):
            gains, scale = {}, 1e-12
            for k in (1, 5, 10):
                one, other = (evidence.figure(row, f"{direction} R@{k}") for row in (better, worse))
                if one is not None and other is not None:
                    gains[k] = one.mean - other.mean
                    scale = max(scale, one.mean, other.mean)
            for k in (1, 5):
                what = f"{better} gains more over {worse} at {direction} R@{k} than at R@10"
                if len(gains) < 3:
                    findings.append(missing(what, f"{better} and {worse}"))
                    continue
                detail = f"{gains[k]:+.1f} against {gains[10]:+.1f}"
                findings.append(Finding(what, gains[k] > gains[10], detail, (gains[k] - gains[10]) / scale))
        return findings

    return check


def no_clear_gain(row: str, reference: str, columns: tuple[str, ...], share: float) -> Check:
    """``row`` is at most ``share`` above ``reference`` on average over the columns."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} gains at most {100 * share:g} % over {reference} on average"
        gain = _mean_gain(evidence, row, reference, columns)
        if gain is None:
            return [missing(what, row, reference)]
        return [Finding(what, gain <= share, f"{100 * gain:+.1f} %", share - gain)]

    return check


def clear_gain(row: str, reference: str, columns: tuple[str, ...], share: float) -> Check:
    """``row`` is more than ``share`` above ``reference`` on average over the columns."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} gains more than {100 * share:g} % over {reference} on average"
        gain = _mean_gain(evidence, row, reference, columns)
        if gain is None:
            return [missing(what, row, reference)]
        return [Finding(what, gain > share, f"{100 * gain:+.1f} %", gain - share)]

    return check


def _mean_gain(evidence: Evidence, row: str, reference: str, columns: tuple[str, ...]) -> float | None:
    """By what share the columns' mean of ``row`` is above that of ``reference``; None with one missing."""
    ours, theirs = ([evidence.figure(name, column) for column in columns] for name in (row, reference))
    one = [figure.mean for figure in ours if figure is not None]
    other = [figure.mean for figure in theirs if figure is not None]
    if len(one) < len(columns) or len(other) < len(columns):
        return None
    return sum(one) / max(sum(other), 1e-12) - 1


def mostly_not_better(row: str, reference: str, columns: tuple[str, ...]) -> Check:
    """``row`` beats ``reference`` in at most half of the columns."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} beats {reference} in at most half of {len(columns)} recalls"
        gains = [
            difference(one, other).mean
            for column in columns
            if (one := evidence.figure(row, column)) is not None
            and (other := evidence.figure(reference, column)) is not None
        ]
        if len(gains) < len(columns):
            return [missing(what, row, reference)]
        better = sum(gain > 0 for gain in gains)
        return [
            Finding(
                what, 2 * better <= len(columns), f"{better} of {len(columns)}", len(columns) / 2 - better
            )
        ]

    return check


def larger_gain(better: str, worse: str) -> Check:
    """What ``better`` gains over ``worse`` from images to captions is more than from captions to images."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{better} gains more over {worse} from images to captions than back"
        gains = []
        for columns in (I2T, T2I):
            known = [
                one.mean - other.mean
                for column in columns
                if (one := evidence.figure(better, column)) is not None
                and (other := evidence.figure(worse, column)) is not None
            ]
            if len(known) < len(columns):
                return [missing(what, better, worse)]
            gains.append(sum(known))
        there, back = gains
        return [Finding(what, there > back, f"{there:+.1f} against {back:+.1f}", there - back)]

    return check
