"""A scorer as a model card and tables: how good it is, from what it predicts, where it must not be trusted.

Source of the card's form: Mitchell et al., Model cards for model reporting, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle
from pathlib import Path
from statistics import mode
from typing import TYPE_CHECKING, Any

from diptych.commerce.logs.schema import UNKNOWN
from diptych.commerce.purchase_intent.evaluation.shown import MEASURES, Grid, step_text
from diptych.commerce.purchase_intent.features.fitting import Feature
from diptych.commerce.purchase_intent.features.make import SESSION_TABLES
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import Column, Row, signed, table_of
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.scorer import Reason

CARD, EXAMPLE = "model_card.md", "example.json"
_SECONDS = (0, 35, 80, 150, 175, 260, 290, 345, 380, 430)
_THURSDAY = datetime(2020, 1, 2, 19, tzinfo=UTC)
_MEASURES = (
    Column("sessions", "sessions"),
    Column("bought", "purchases"),
    Column("% bought", "base_rate", 2, 100.0),
    *(Column(MEASURES[name][0], name, 3, ends=f"{name}_") for name in ("average_precision", "roc_auc", "f1")),
    Column("always buy", "always_buy_f1", 3),
    Column("Brier", "brier", 4),
    Column("of the base rate", "brier_prior", 4),
    Column("threshold", "threshold", 3),
)
_COSTS = tuple(
    Column(*one, 3) for one in (("by cost", "cost_threshold"), ("cost", "cost"), ("without", "cost_without"))
)
_AFTER = (
    "F1 at the threshold, chosen for the best F1; always buy: F1 of doing that; cost: of a session, acting from the "
    "threshold by cost on; without: acting always or never"
)
_PLAIN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#|"})


def measured_table(caption: str, cells: Sequence[Row], measures: str = "measures") -> Table:
    """Return a line per setting and step: the ``measures`` of each cell, None where nothing could be measured."""
    columns = _MEASURES + _COSTS * any(cell["cost_threshold"] is not None for cell in cells)
    names = [[Cell(cell["setting"]), Cell(step_text(cell["step"]))] for cell in cells]
    thresholds = ("threshold", "cost_threshold")
    found = [(cell[measures] or {}) | {name: cell[name] for name in thresholds} for cell in cells]
    return table_of(caption, ("setting", "step"), columns, names, found, after=_AFTER)


def scorer_table(about: Row) -> Table:
    """Return what was measured when it was trained."""
    caption = "Measured on the last part, by models that were fitted without it"
    return measured_table(caption, about["cells"], "holdout")


def measured_grid(about: Row, measures: str = "measures") -> Grid:
    """Return measured cells as those of an evaluation."""
    options = about["options"]
    fixed = {"set": "all" if about["kind"] == "whole" else options["feature_set"], "model": options["model"]}
    found = [{**fixed, **cell, **cell[measures]} for cell in about["cells"] if cell[measures] is not None]
    return Grid([{**one, "reliability": None, "reliability_calibrated": one["reliability"]} for one in found])


def reasons_table(reasons: Sequence[Reason]) -> Table:
    """Return what each feature does to the odds of a purchase."""
    odds = [f"× {math.exp(min(one.effect, 50.0)):.2g}" for one in reasons]
    words = [(one.label, one.value, one.typical, signed(one.effect)) for one in reasons]
    rows = [(*row, factor) for row, factor in zip(words, odds, strict=True)]
    after = "effect: log-odds less their mean with the feature's values of training sessions"
    return Table.of("Reasons", after, ("feature", "here", "typically", "effect", "odds"), rows)


def example_session(features: FeatureTable, places: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return a session so far of six pages or as many as are looked at, made up of the words of a table."""
    view, pages = features.view, cycle(features.about["vocabulary"][:3] or [UNKNOWN])
    first = {name: mode(sorted(view.columns[name].tolist())) for name in ("device", "channel")}
    seconds = _SECONDS[: max(6, min(step for _, step in places))]
    events = [
        {"t": (_THURSDAY + timedelta(seconds=seconds)).isoformat(), "action": "page", "page_type": kind}
        for seconds, kind in zip(seconds, pages, strict=False)
    ]
    session: dict[str, Any] = {"id": "an example, of no visitor", **first, "events": events}
    if "identified" in dict(places):
        history = {"sessions": 3, "devices": [first["device"]] * 3, "orders": 1, "days_since_purchase": 12.5}
        session |= {"visitor_id": "example-visitor", "history": history}
    return session


def described_features(table: FeatureTable, features: Iterable[Iterable[Feature]]) -> list[dict[str, str]]:
    """Return what each feature is, and when it is known."""
    rows, of = {}, SESSION_TABLES[table.about["name"]].at_start if table.is_whole else ()
    for one in chain.from_iterable(features):
        known = "once the visitor is known" if one.group == "history" else "at its start"
        known = "when it is over" if table.is_whole and one.name not in of else known
        known = "with every page" if one.dynamic else known
        rows[one.name] = {"label": one.label, "known": known, "description": one.description}
    return list(rows.values())


def model_card(about: Row) -> str:
    """Return the card as Markdown; texts from elsewhere are escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def plain(value: object) -> object:
        return value if isinstance(value, Markup) else " ".join(str(value).split()).translate(_PLAIN)

    options = TrainOptions(**about["options"])
    source = Path(__file__).with_name("model_card.md.j2").read_text("utf-8")
    environment = Environment(undefined=StrictUndefined, finalize=plain, trim_blocks=True, lstrip_blocks=True)
    text: str = environment.from_string(source).render(
        about=about,
        costs=options.costs,
        options=options,
        model=MODELS.get(options.model),
        measured=Markup(scorer_table(about).markdown()),
        least=(about["session_options"] or {}).get("pages", 0) + BUFFER,
        buffer=BUFFER,
        step_text=step_text,
    )
    return text
