"""Checks that claims of several papers are made of, beside the comparisons of :mod:`diptych.studies.claims`."""

from __future__ import annotations

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence, difference
from diptych.studies.retrieval import I2T, T2I


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
