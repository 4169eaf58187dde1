"""A scorer as tables and charts: what was measured on sessions it has not seen, and the reasons of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.evaluation.shown import Grid, step_text
from diptych.commerce.purchase_intent.shown import Column, Row, percent, signed
from diptych.core.chart import Chart, Series
from diptych.core.errors import DiptychError
from diptych.core.reading import read_json
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.cell import Reason, Score
    from diptych.commerce.purchase_intent.scoring.scorer import Scorer

EXAMPLE = "example.json"
_REASONS = 8
_COLUMNS = (
    Column("sessions", "sessions", 0),
    Column("bought", "purchases", 0),
    Column("% bought", "base_rate", 2, 100.0),
    *(
        Column(title, key, decimals, ends=f"{key}_")
        for key, title, decimals in (
            ("average_precision", "AP", 3),
            ("roc_auc", "ROC AUC", 3),
            ("f1", "F1", 3),
            ("always_buy_f1", "always buy", 3),
            ("brier", "Brier", 4),
            ("brier_base_rate", "of the base rate", 4),
            ("threshold", "threshold", 3),
        )
    ),
)


def measured_table(caption: str, cells: Sequence[Row]) -> Table:
    """Return a line per setting and step: ``measures`` of each cell, None where nothing could be measured."""
    rows = []
    for cell in cells:
        counts = {one: cell[one]["holdout"] for one in ("sessions", "purchases") if one in cell}
        given = (cell["measures"] and {**cell["measures"], "threshold": cell.get("threshold")}) or counts
        places = [Cell(cell["setting"]), Cell(step_text(cell["step"]))]
        rows.append([*places, *(one.cell(given) for one in _COLUMNS)])
    return Table(caption, ("setting", "step", *(one.title for one in _COLUMNS)), rows)


def scorer_table(scorer: Scorer) -> Table:
    """Return what was measured when it was trained."""
    cells = [{**cell, "measures": cell["holdout"]} for cell in scorer.about["cells"]]
    return measured_table("Measured on the last part, of which the models have seen nothing", cells)


def scorer_grid(about: Row) -> Grid:
    """Return what was measured on the last part as the cells of an evaluation."""
    model = about["options"]["model"]
    name = "all" if about["kind"] == "whole" else about["options"]["feature_set"]
    cells = []
    for cell in about["cells"]:
        if (found := cell["holdout"]) is not None:
            bins = {"reliability": None, "reliability_calibrated": found["reliability"]}
            cells.append({"set": name, "model": model, **cell, **found, **bins})
    return Grid(cells)


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
    lines = [
        Series(
            "this session", [100 * one.p for one in scores], steps, texts=[percent(one.p) for one in scores]
        ),
        Series("base rate", [100 * one.base_rate for one in scores], steps, colour="ink"),
        Series("threshold", [100 * one.threshold for one in scores], steps),
    ]
    charts = [Chart("Page by page", lines, "pages that are open", "probability of a purchase, %")]
    if reasons := scores[-1].reasons:
        doublings = [one.effect / math.log(2) for one in reasons]
        bar = Series("doublings", doublings, mark="bar", texts=[odds(one) for one in reasons])
        names = [one.label for one in reasons]
        charts.append(Chart("Reasons", [bar], "doublings of the odds", "", names, across=True))
    return charts


def reasons_table(reasons: Sequence[Reason]) -> Table:
    """Return what each feature does to the odds of a purchase."""
    rows = [
        [
            *map(Cell, (one.label, one.value[:60], one.typical[:60])),
            Cell(signed(one.effect), value=one.effect),
            Cell(odds(one)),
        ]
        for one in reasons
    ]
    after = "effect: log-odds less their mean with the feature's values of training sessions"
    return Table("Reasons", ("feature", "here", "typically", "effect", "odds"), rows, after=after)


def odds(reason: Reason) -> str:
    """Return what the odds are multiplied by."""
    return f"× {math.exp(min(reason.effect, 50.0)):.2g}"
