"""A scorer as tables and charts: what was measured on sessions it has not seen, and the reasons of a score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.evaluation.shown import Grid, step_text
from diptych.commerce.purchase_intent.shown import Row, measured, number, percent
from diptych.core.chart import Chart, Series
from diptych.core.errors import DiptychError
from diptych.core.reading import read_json
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.cell import Reason, Score
    from diptych.commerce.purchase_intent.scoring.scorer import Scorer

EXAMPLE = "example.json"
_REASONS = 8
_COLUMNS: Mapping[str, tuple[str, int]] = {
    "average_precision": ("AP", 3),
    "roc_auc": ("ROC AUC", 3),
    "f1": ("F1", 3),
    "always_buy_f1": ("always buy", 3),
    "brier": ("Brier", 4),
    "brier_base_rate": ("of the base rate", 4),
    "threshold": ("threshold", 3),
}


def measured_table(caption: str, cells: Sequence[Row]) -> Table:
    """Return a line per setting and step: ``measures`` of each cell, None where nothing could be measured."""
    rows = []
    for cell in cells:
        found = cell["measures"]
        row = [Cell(cell["setting"]), Cell(step_text(cell["step"]))]
        if found is None:
            counts = [
                Cell(number(cell[one]["holdout"] if one in cell else None))
                for one in ("sessions", "purchases")
            ]
            rows.append([*row, *counts, *(Cell("–") for _ in range(1 + len(_COLUMNS)))])
            continue
        row += [Cell(number(found[name]), value=found[name]) for name in ("sessions", "purchases")]
        row.append(Cell(percent(found["base_rate"], 2), value=100 * found["base_rate"]))
        given = {**found, "threshold": cell.get("threshold")}
        row += [measured(given, name, decimals, ends=f"{name}_") for name, (_, decimals) in _COLUMNS.items()]
        rows.append(row)
    heads = ("setting", "step", "sessions", "bought", "% bought", *(title for title, _ in _COLUMNS.values()))
    return Table(caption, heads, rows)


def scorer_table(scorer: Scorer) -> Table:
    """Return what was measured when it was trained."""
    cells = [{**cell, "measures": cell["holdout"]} for cell in scorer.about["cells"]]
    return measured_table("Measured on the last part, of which the models have seen nothing", cells)


def scorer_grid(about: Row) -> Grid:
    """Return what was measured on the last part as the cells of an evaluation."""
    model = about["options"]["model"]
    name = "all" if about["kind"] == "whole" else about["options"]["feature_set"]
    of_all = [
        {
            "set": name,
            "model": model,
            **cell,
            **cell["holdout"],
            "reliability_calibrated": cell["holdout"]["reliability"],
        }
        for cell in about["cells"]
        if cell["holdout"] is not None
    ]
    return Grid([{**cell, "reliability": None} for cell in of_all])


def example_scores(scorer: Scorer) -> tuple[list[Score], str]:
    """Return the last score of every step that the made-up session reaches, and what keeps it from being scored."""
    file = scorer.folder / EXAMPLE
    if scorer.is_whole or not file.is_file():
        return [], ""
    try:
        session: dict[str, Any] = dict(read_json(file))
        events = list(session.pop("events", ()))
        stream = scorer.stream(reasons=_REASONS, **session)
        scores = [score for event in events if (score := stream.add(event)) is not None]
    except DiptychError as error:
        return [], f"{EXAMPLE} cannot be scored: {error.message}."
    return list(
        {score.step: score for score in scores}.values()
    ), "" if scores else f"No page is opened in {EXAMPLE}."


def example_charts(scores: Sequence[Score]) -> list[Chart]:
    """Return the probability page by page, and the reasons of the last one."""
    if not scores:
        return []
    steps = [one.step for one in scores]
    values = [100 * one.p for one in scores]
    texts = [percent(one.p) for one in scores]
    lines = [
        Series("this session", values, steps, texts=texts),
        Series("base rate", [100 * one.base_rate for one in scores], steps, colour="ink"),
        Series("threshold", [100 * one.threshold for one in scores], steps),
    ]
    charts = [Chart("Page by page", lines, "pages that are open", "probability of a purchase, %")]
    reasons = scores[-1].reasons
    if reasons:
        doublings = [one.effect / math.log(2) for one in reasons]
        texts = [odds(one) for one in reasons]
        bar = Series("doublings", doublings, mark="bar", texts=texts)
        charts.append(
            Chart("Reasons", [bar], "doublings of the odds", "", [one.label for one in reasons], across=True)
        )
    return charts


def reasons_table(reasons: Sequence[Reason]) -> Table:
    """Return what each feature does to the odds of a purchase."""
    rows = [
        [
            Cell(one.label),
            Cell(one.value[:60]),
            Cell(one.typical[:60]),
            Cell(f"{one.effect:+.2f}".replace("-", "−"), value=one.effect),
            Cell(odds(one)),
        ]
        for one in reasons
    ]
    after = "effect: log-odds less their mean with the feature's values of training sessions"
    return Table("Reasons", ("feature", "here", "typically", "effect", "odds"), rows, after=after)


def odds(reason: Reason) -> str:
    """Return what the odds are multiplied by."""
    return f"× {math.exp(min(reason.effect, 50.0)):.2g}"
