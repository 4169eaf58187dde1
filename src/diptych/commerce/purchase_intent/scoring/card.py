"""A scorer as a model card, tables and charts: how good it is, from what it predicts, where it must not be trusted.

Source of the card's form: Mitchell et al., Model cards for model reporting, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.logs.schema import UNKNOWN
from diptych.commerce.purchase_intent.evaluation.shown import MEASURES, Grid, left_out_lines, step_text
from diptych.commerce.purchase_intent.features.fitting import Feature
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import Column, Row, number, table_of
from diptych.core.errors import DiptychError
from diptych.core.reading import read_json
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.scorer import Reason, Score, Scorer

CARD, EXAMPLE = "model_card.md", "example.json"
_SECONDS = (0, 35, 80, 150, 175, 260)
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


_EFFECT = Column("effect", "effect", 2, sign=True)
_AT_START = {
    "uci-shoppers": {
        *("SpecialDay", "Month", "OperatingSystems", "Browser"),
        *("Region", "TrafficType", "VisitorType", "Weekend"),
    }
}
"""Columns of tables of whole sessions that are known when a session begins; others when it is over."""

_PLAIN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#"})


def measured_table(caption: str, cells: Sequence[Row]) -> Table:
    """Return a line per setting and step: ``measures`` of each cell, None where nothing could be measured."""
    columns, after = (
        _MEASURES,
        "F1 at the threshold, chosen for the best F1; always buy: F1 of predicting that",
    )
    if any(cell["cost_threshold"] is not None for cell in cells):
        columns += _COSTS
        after += "; cost: of a session, acting from the threshold by cost on; without: acting always or never"
    thresholds = ("threshold", "cost_threshold")
    found = [(cell["measures"] or {}) | {name: cell[name] for name in thresholds} for cell in cells]
    names = [[Cell(cell["setting"]), Cell(step_text(cell["step"]))] for cell in cells]
    return table_of(caption, ("setting", "step"), columns, names, found, after=after)


def held_out(cells: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a scorer's cells with what was measured when it was trained."""
    return [{**cell, "measures": cell["holdout"]} for cell in cells]


def scorer_table(about: Row) -> Table:
    """Return what was measured when it was trained."""
    caption = "Measured on the last part, by models that were fitted without it"
    return measured_table(caption, held_out(about["cells"]))


def measured_grid(cells: Sequence[Row], options: Row, kind: str) -> Grid:
    """Return measured cells as those of an evaluation."""
    fixed = {"set": "all" if kind == "whole" else options["feature_set"], "model": options["model"]}
    found = [{**fixed, **cell, **cell["measures"]} for cell in cells if cell["measures"] is not None]
    return Grid([{**one, "reliability": None, "reliability_calibrated": one["reliability"]} for one in found])


def reasons_table(reasons: Sequence[Reason]) -> Table:
    """Return what each feature does to the odds of a purchase."""
    names = [[*map(Cell, (one.label, one.value, one.typical))] for one in reasons]
    effects = [_EFFECT.cell(one.model_dump()) for one in reasons]
    rows = [[*of, effect, Cell(odds(one))] for of, effect, one in zip(names, effects, reasons, strict=True)]
    after = "effect: log-odds less their mean with the feature's values of training sessions"
    return Table("Reasons", ("feature", "here", "typically", "effect", "odds"), rows, after=after)


def odds(reason: Reason) -> str:
    """Return what the odds are multiplied by."""
    return f"× {math.exp(min(reason.effect, 50.0)):.2g}"


def example_session(about: Row) -> dict[str, Any]:
    """Return a session so far of six pages, made up of the words that the scorer knows."""
    types = [name for name in about["vocabulary"] if name != UNKNOWN] or [UNKNOWN]
    known = about["known"].items()
    first = {name: next((word for word in words or () if word != UNKNOWN), UNKNOWN) for name, words in known}
    events = [
        {"t": (_THURSDAY + timedelta(seconds=seconds)).isoformat(), "action": "page", "page_type": kind}
        for seconds, kind in zip(_SECONDS, cycle(types[:3]), strict=False)
    ]
    session: dict[str, Any] = {"id": "an example, of no visitor", **first, "events": events}
    if any(cell["setting"] == "identified" for cell in about["cells"]):
        history = {"sessions": 3, "devices": [first["device"]] * 3, "orders": 1, "days_since_purchase": 12.5}
        session |= {"visitor_id": "example-visitor", "history": history}
    return session


def example_score(scorer: Scorer) -> tuple[Score | None, str]:
    """Return the score of the made-up session, and what keeps it from being scored."""
    file = scorer.folder / EXAMPLE
    if scorer.is_whole or not file.is_file():
        return None, ""
    try:
        return scorer.score(dict(read_json(file)), reasons=8), ""
    except DiptychError as error:
        return None, f"{EXAMPLE} cannot be scored: {error.message}."


def scorer_facts(about: Row) -> dict[str, str]:
    """Return of what a scorer was made and how, for its card and its page."""
    options, slices, session = TrainOptions(**about["options"]), about["slices"], about["session_options"]
    parts = [
        f"{name.replace('_', ' ')} {size:,}" + ("" if rate is None else f" ({rate:.1%} bought)")
        for (name, size), rate in zip(slices["sizes"].items(), slices["rates"].values(), strict=True)
    ]
    model, weighting = MODELS.get(options.model).description, about["weighting"].replace("_", " ")
    resamples = f"{100 * options.confidence:g} %, {options.samples:,} resamples of persons"
    facts = {
        "features": f"{about['line']}; {options.feature_set} set, fingerprint {about['fingerprint']}",
        "days": about["days"] + (f"; hours and week days of {about['zone']}" if about["zone"] else ""),
        "parts": f"{slices['note']}: {', '.join(parts)}; {slices['left_out']:,} run across the end",
        "model": f"{options.model}: {model}; classes weighed by {weighting}",
        "fitted on": "all sessions; measures are of models fitted without the last part, at their own thresholds",
        "calibration": f"{options.calibrate}, on predictions of models without each of {options.folds} folds of "
        "persons (cross-fitting)",
        "threshold": "the probability with the best F1 of these predictions",
        "intervals": resamples if options.samples else "none",
        "seed": str(options.seed),
        "leak audit": "not run with this scorer: diptych intent audit FEATURES",
    }
    if session:
        ended = "as the log gives them"
        if session["by"] != "given":
            ended = f"of a {session['by']}, ended by more than {session['gap_minutes']:g} minutes without an event"
        short, every = (about["counts"][name] for name in ("too_short", "sessions"))
        facts["sessions"] = f"{ended}; {short:,} of {every:,} are too short"
    if costs := options.costs:
        facts["threshold by cost"] = (
            f"the probability with the least cost of these predictions, {costs[0]:g} for acting on a session without a "
            f"purchase, {costs[1]:g} for not acting on one with; of exact probabilities {costs[0] / sum(costs):.3f}"
        )
    if audit := about["audit"]:
        found, alarms = len(audit["findings"]), sum(one["alarm"] for one in audit["findings"])
        facts["leak audit"] = f"{found} findings, {alarms} alarms ({', '.join(audit['checks'])})"
    return facts


def scorer_notes(about: Row) -> list[str]:
    """Return what was left out, and alarms of the leak audit."""
    notes = left_out_lines(about["not_trained"], "not trained")
    notes += [f"left out: the column {one['column']}: {one['why']}" for one in about["left_out"]]
    notes += [f"the column {name} is in it, although it knows the outcome" for name in about["kept_leaking"]]
    alarms = [one for one in (about["audit"] or {}).get("findings", ()) if one["alarm"]]
    notes += [f"alarm of the leak audit, {one['check']} {one['where']}: {one['text']}" for one in alarms]
    return notes


def model_card(about: Row, features: Sequence[Feature]) -> str:
    """Return the card as Markdown."""
    from jinja2 import StrictUndefined, Template

    cells = about["cells"]
    reliable = [
        (cell["setting"], step_text(cell["step"]), f"{one['low']:.3f} to {one['high']:.3f}", number(one["n"]),
         number(one["mean_score"], 4), number(one["share"], 4))
        for cell in {cell["setting"]: cell for cell in cells}.values()
        for one in (cell["holdout"] or {}).get("reliability", ())
    ]  # fmt: skip
    known = [(_plain(one.label), _known(one, about), _plain(one.description)) for one in features]
    facts = [(name, _plain(value)) for name, value in scorer_facts(about).items()]
    bins, heads = (
        "Of sessions with these probabilities so many bought, on the last part",
        ("mean p", "bought"),
    )
    tables = [
        Table.of("Of what it was made, and how", "", ("what", ""), facts),
        Table.of("Features", "", ("feature", "known", "what it is"), known),
        scorer_table(about),
        Table.of(bins, "", ("setting", "step", "p", "sessions", *heads), reliable),
    ]
    notes = [f"{cell['setting']}, step {cell['step']}: {note}" for cell in cells for note in cell["notes"]]
    source = Path(__file__).with_name("model_card.md.j2").read_text("utf-8")
    text: str = Template(source, undefined=StrictUndefined).render(
        about=about,
        title=_plain(about["name"]),
        tables=[one.markdown().rstrip() for one in tables if one.rows],
        notes=[_plain(one) for one in (*scorer_notes(about), *notes)],
        least=(about["session_options"] or {}).get("pages", 0) + BUFFER,
        buffer=BUFFER,
        unit=f"{cells[-1]['setting']}-{step_text(cells[-1]['step'])}",
    )
    return text


def _known(feature: Feature, about: Row) -> str:
    """Return when a feature is known."""
    if about["kind"] == "whole":
        return "at its start" if feature.name in _AT_START.get(about["name"], ()) else "when it is over"
    if feature.dynamic:
        return "with every page"
    return "once the visitor is known" if feature.group == "history" else "at its start"


def _plain(text: str) -> str:
    """Return a text from elsewhere, harmless in Markdown."""
    return " ".join(str(text).split()).translate(_PLAIN)
