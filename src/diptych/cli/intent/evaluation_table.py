"""What is printed of an evaluation: a table per setting, what the extended set gains, and the foremost features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation

__all__ = ["show_evaluation"]

_STEPS = 5
"""Columns of a table; of more steps some are shown."""

_FEATURES = 5


def show_evaluation(evaluation: Evaluation) -> None:
    """Print it."""
    for setting in _once(cell["setting"] for cell in evaluation.cells):
        cells = [cell for cell in evaluation.cells if cell["setting"] == setting]
        _show_setting(setting, cells)
        _show_gain(evaluation, setting)
        _show_importance(evaluation, setting)
    for one in evaluation.left_out:
        say(f"left out: {one['setting']}, {_step(one['step'])}: {one['reason']}")
    for note in evaluation.notes:
        say(note)
    say(evaluation.line())


def _show_setting(setting: str, cells: Sequence[dict[str, Any]]) -> None:
    steps = sorted({cell["step"] for cell in cells})
    shown = _some(steps)
    first = {cell["step"]: cell for cell in reversed(cells)}
    rows: list[list[str]] = [
        ["base rate", "", *(f"{first[step]['base_rate']:.3f}" for step in shown)],
        ["always buy", "", *(f"{first[step]['always_buy_f1']:.3f}" for step in shown)],
    ]
    by_row: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for cell in cells:
        by_row.setdefault((cell["label"], cell["set"]), {})[cell["step"]] = cell
    for (label, feature_set), of_step in by_row.items():
        values = [
            f"{_number(of_step[step]['f1'])} / {_number(of_step[step]['average_precision'])}"
            if step in of_step
            else "–"
            for step in shown
        ]
        rows.append([label, feature_set, *values])
    columns = [_step(step) for step in shown]
    said = "base rate: share of purchases, the average precision of chance; always buy: F1 of predicting nothing else"
    if len(shown) < len(steps):
        said += f"; {len(shown)} of {len(steps)} steps"
    print_table(
        f"{setting}: F1 at 0.5 / average precision",
        ("model", "set", *columns),
        rows,
        numbers=columns,
        caption=said,
    )


def _show_gain(evaluation: Evaluation, setting: str) -> None:
    """What the extended set adds at the first and the last step, to the model whose importances are shown."""
    model = evaluation.protocol.importance_model or evaluation.protocol.models[0]
    gains = [
        one
        for one in evaluation.gains
        if (one["setting"], one["model"], one["measure"]) == (setting, model, "average_precision")
    ]
    for one in gains[:1] + gains[1:][-1:]:
        between = "" if one["low"] is None else f" [{one['low']:+.3f}, {one['high']:+.3f}]"
        say(
            f"extended less baseline, {setting}, {_step(one['step'])}, {model}: "
            f"{one['difference']:+.3f}{between} average precision"
        )


def _show_importance(evaluation: Evaluation, setting: str) -> None:
    rows = [row for row in evaluation.importance if row["setting"] == setting]
    if not rows:
        return
    last = rows[-1]
    mine = [row for row in rows if (row["set"], row["step"]) == (last["set"], last["step"])][:_FEATURES]
    named = ", ".join(f"{row['feature']} {_number(row['permutation'])}" for row in mine)
    say(
        f"foremost features, {setting}, {last['set']}, {_step(last['step'])}, {last['model']} "
        f"(average precision lost by permuting): {named}"
    )


def _some(steps: Sequence[int]) -> list[int]:
    """At most :data:`_STEPS` of them: the first two, the last, and some between."""
    if len(steps) <= _STEPS:
        return list(steps)
    between = [steps[round(1 + (len(steps) - 2) * part / (_STEPS - 2))] for part in range(1, _STEPS - 2)]
    return [*steps[:2], *between, steps[-1]]


def _step(step: int) -> str:
    return "whole session" if step < 0 else f"step {step}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _once(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
