"""Tables of an evaluation: a measure per row, both directions beside chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.evaluation import Result
    from diptych.evaluation.correlation import Coefficient
    from diptych.evaluation.judgements import Agreement, HumanAgreement
    from diptych.training.shortcut_testing import BothConditions

__all__ = ["coefficient", "show_agreement", "show_conditions", "show_result"]


def show_agreement(found: HumanAgreement) -> None:
    """Print how relevance and measures correlate with what people said."""
    _correlations("agreement with people: gains of pairs", "gain", found.pairs)
    _correlations("agreement with people: measures of queries", "measure", found.queries)
    say(found.line)
    for direction, reasons in found.left_out.items():
        for reason, count in reasons.items():
            if count:
                say(f"{count:,} {direction} queries left out: {reason}")


def _correlations(title: str, what: str, rows: Sequence[Agreement]) -> None:
    columns = (what, "over", "n", "τ_b", "τ_c", "Spearman", "Pearson")
    table = [
        (one.what, one.over, f"{one.n:,}", *(coefficient(value) for value in one.coefficients.values()))
        for one in rows
    ]
    print_table(title, columns, table, numbers=columns[2:], caption="–: one of the two is constant")


def coefficient(one: Coefficient) -> str:
    """As a cell of a table: with its interval, where there is one; a dash for what is not defined."""
    if one.value is None:
        return "–"
    ends = "" if one.low is None or one.high is None else f" ({one.low:.3f}–{one.high:.3f})"
    return f"{one.value:.3f}{ends}".replace("-", "−")


def show_conditions(both: BothConditions) -> None:
    """Print a split without and with the shortcuts of training."""
    columns = ("measure", "direction", "without shortcuts", "with", "chance")
    print_table(
        f"with the shortcuts of training: {both.shortcuts}", columns, both.table(), numbers=columns[2:]
    )


def show_result(result: Result, samples: int, title: str) -> None:
    """Print every measure of ``result``; ``samples`` says whether there are intervals."""
    ends = " (95 %)" if samples else ""
    columns = ("measure", f"image→text{ends}", f"text→image{ends}", "chance")
    gains = ", gains as they are" if result.protocol.gains else ""
    print_table(
        title,
        columns,
        _rows(result),
        numbers=columns[1:],
        caption=f"shares in per cent, ranks from 1, rsum of both directions{gains}",
    )


def _rows(result: Result) -> Iterator[tuple[str, str, str, str]]:
    """One row per measure; what is of both directions together stands in the first column."""
    from diptych.evaluation import measure as declared

    for name in dict.fromkeys(name for given in result.scores.values() for name in given):
        show = declared(name).show
        cells: dict[str, str] = {}
        chances = []
        for direction, given in result.scores.items():
            if name in given:
                score = given[name]
                cells[direction] = show(score.value)
                if score.low is not None and score.high is not None:
                    cells[direction] += f" ({show(score.low)}–{show(score.high)})"
                chances.append(show(score.chance))
        first = cells.get("i2t", cells.get("both", ""))
        yield name, first, cells.get("t2i", ""), " / ".join(dict.fromkeys(chances))
