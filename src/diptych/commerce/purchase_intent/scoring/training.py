"""Train and measure a scorer: a model per setting and step, refitted on all sessions, calibrated by cross-fitting."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle, product
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np

from diptych.commerce.logs.log import UNKNOWN
from diptych.commerce.purchase_intent import measures
from diptych.commerce.purchase_intent.evaluation import chosen_of, refused
from diptych.commerce.purchase_intent.features.fitting import Feature
from diptych.commerce.purchase_intent.features.make import SESSION_TABLES
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.models import FEWEST, MODELS, SPLITS, Fitting, Fold, fit_calibration
from diptych.commerce.purchase_intent.options import EvaluateOptions, TrainOptions
from diptych.commerce.purchase_intent.scoring.request import Reason
from diptych.commerce.purchase_intent.scoring.scorer import Scorer, StepModel, in_words, unit_key
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import (
    TEXTS,
    Grid,
    Row,
    left_out_lines,
    number,
    step_text,
    table_of,
    without_none,
)
from diptych.core import files
from diptych.core.artifact import Artifact, encode
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.table import Table, Tabular
from diptych.metrics.bootstrap import Bootstrap

CARD, EXAMPLE = "model_card.md", "example.json"
_SECONDS = (0, 35, 80, 150, 175, 260, 290, 345, 380, 430)
_THURSDAY = datetime(2020, 1, 2, 19, tzinfo=UTC)
_PLAIN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#|"})


def measured_table(caption: str, cells: Sequence[Row], measures: str = "measures") -> Table:
    """Return a line per setting and step: the ``measures`` of each cell, None where nothing could be measured."""
    names = [(cell["setting"], step_text(cell["step"])) for cell in cells]
    thresholds = ({name: cell[name] for name in ("threshold", "cost_threshold")} for cell in cells)
    found = without_none({**(cell[measures] or {}), **of} for cell, of in zip(cells, thresholds, strict=True))
    after = TEXTS["parts"]["measured"]
    return table_of(TEXTS["tables"]["measured"], caption, names, found, ("setting", "step"), after=after)


def scorer_table(about: Row) -> Table:
    caption = "Measured on the last part, by models that were fitted without it"
    return measured_table(caption, about["cells"], "holdout")


def measured_grid(about: Row, measures: str = "measures") -> Grid:
    options = about["options"]
    fixed = {"set": "all" if about["kind"] == "whole" else options["feature_set"], "model": options["model"]}
    found = [{**fixed, **cell, **cell[measures]} for cell in about["cells"] if cell[measures] is not None]
    return Grid([{**one, "reliability": None, "reliability_calibrated": one["reliability"]} for one in found])


def reasons_table(reasons: Sequence[Reason]) -> Table:
    rows = []
    for one in reasons:
        odds = f"× {math.exp(min(one.effect, 50.0)):.2g}"
        rows.append((one.label, one.value, one.typical, number(one.effect, 2, "+"), odds))
    after = "effect: log-odds less their mean with the feature's values of training sessions"
    return Table.of("Reasons", after, ("feature", "here", "typically", "effect", "odds"), rows)


def example_session(features: FeatureTable, places: Sequence[tuple[str, int]]) -> dict[str, Any]:
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


_TYPICAL = 20_000  # sessions that typical values are taken of, at most
SCORES = "scores.csv"


def slices_of(features: FeatureTable, options: TrainOptions) -> tuple[np.ndarray, np.ndarray, str]:
    """Cut all sessions in two, the same for every setting and step; return two (n,) masks and how they were divided.

    ``time``: the last ones are measured on; others have to end before these begin, or are in neither part. ``grouped``:
    all sessions of a person are in one part, drawn at random; so they are, too, where all begin at one time.
    """
    starts, note = features.start_us, "all sessions of a person are in one part, drawn at random"
    if options.split == "time" and len(starts) and starts.min() < starts.max():
        end = np.sort(starts)[min(round(len(starts) * (1 - options.holdout)), len(starts) - 1)]
        last = "the last sessions are measured on, by a model of those that ended before"
        return features.end_us < end, starts >= end, last
    if options.split == "time":
        note = f"the sessions have no times to be divided by, so that {note}"
    drawn = draw_uniform(options.seed, features.persons) >= 1 - options.holdout
    return ~drawn, drawn, note


def person_folds(features: FeatureTable, rows: np.ndarray, options: TrainOptions) -> list[Fold]:
    """Return the folds of ``rows`` that a calibration is cross-fitted on: all sessions of a person are in one."""
    return SPLITS.get("grouped").folds(features, options.folds, options.seed, rows)


def why_not(features: FeatureTable, rows: np.ndarray, options: TrainOptions) -> str:
    """Return why there can be no model of ``rows`` that is cross-fitted; nothing where there can."""
    bought = features.labels[rows]
    least, needed = int(min(bought.sum(), (~bought).sum())), 2 * max(FEWEST, options.folds)
    few = f"before the last part: {least:,} sessions of a class, at least {needed} are needed"
    return few if least < needed else ""


def fit_rows(
    features: FeatureTable, setting: str, step: int, rows: np.ndarray, options: TrainOptions
) -> StepModel:
    """Fit features and model on ``rows``; calibration and thresholds on predictions of models without each fold."""
    chosen = features.sets[0] if features.is_whole else options.feature_set
    place = Fitting(features, setting, chosen, step, options.model, options.balanced, options.seed)
    held, x = place.cross_fit(person_folds(features, rows, options))
    labels = features.labels[held]
    calibration, notes = fit_calibration(options.calibrate, x, labels)
    p, (fitted, model) = calibration.probabilities(x), place.fit(rows)
    draws = draw_uniform(Draws(options.seed, "background").below(1 << 31), features.session_ids[rows])
    drawn = rows[np.sort(np.argsort(draws, kind="stable")[: options.background])]
    owners, sample = np.array(fitted.owners), features.at(rows[:: max(1, len(rows) // _TYPICAL)], step)
    matrix, names = fitted.matrix(sample), np.array(fitted.names)
    return StepModel(
        setting=setting,
        step=step,
        features=fitted,
        model=model,
        calibration=calibration,
        threshold=measures.best_threshold(p, labels),
        cost_threshold=options.costs and measures.least_cost_threshold(p, labels, *options.costs),
        base_rate=float(labels.mean()),
        background=fitted.matrix(features.at(drawn, step)),
        typical={one: in_words(names[owners == one], matrix[:, owners == one]) for one in fitted.owners},
        about={"notes": [*notes, *filter(None, [model.reason]), *model.warnings]},
    )


def fit_step(given: tuple[FeatureTable, TrainOptions], place: tuple[str, int]) -> StepModel:
    """Fit one setting and step on all its sessions, and measure what is fitted without the last part on that."""
    (features, options), (setting, step) = given, place
    rows, masks = features.population(setting, step), slices_of(features, options)[:2]
    before, last = (rows[part[rows]] for part in masks)
    earlier, final = (fit_rows(features, setting, step, some, options) for some in (before, rows))
    measured = measure(earlier, earlier.probabilities(features.at(last, step)), features, last, options)
    return replace(final, about={**final.about, "sessions": len(rows), "holdout": measured})


def measure(
    model: StepModel, p: np.ndarray, features: FeatureTable, rows: np.ndarray, options: TrainOptions
) -> dict[str, Any] | None:
    """Return measures of the probabilities of some sessions, with intervals over persons; None without both classes."""
    labels = features.labels[rows]
    if labels.all() or not labels.any():
        return None
    found = measures.measure(p, labels, model.threshold) | measures.of_probabilities(p, labels)
    found |= {"mean_p": float(p.mean()), "threshold": model.threshold, "cost_threshold": model.cost_threshold}
    if options.costs and model.cost_threshold is not None:
        found["cost"] = measures.costs(p >= model.cost_threshold, labels, *options.costs)
        blindly = (np.full(len(labels), acts) for acts in (True, False))
        found["cost_without"] = min(measures.costs(one, labels, *options.costs) for one in blindly)
    how = Bootstrap(options.samples, options.confidence, options.seed)
    drawn, predicted = measures.Persons(features.persons[rows], how), {"f1": (p >= model.threshold, labels)}
    samples = drawn.of_scores(np.arange(len(labels)), p, labels, predicted)
    return found | drawn.ends(samples, *measures.RESAMPLED)


@dataclass(frozen=True)
class Training(Artifact, kind="training", recreate="diptych intent train FEATURES --out SCORER"):
    """Record what the models in a scorer's folder are made of, and how."""

    features: str  # fingerprint of the table
    models: list[str]
    options: TrainOptions
    audit: str  # fingerprint


def train(
    features: FeatureTable,
    folder: Path | str,
    *,
    options: TrainOptions | None = None,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    audit: Artifact | None = None,
    jobs: int = 1,
) -> Scorer:
    """Train a scorer, or resume where an earlier call was stopped; its numbers do not depend on ``jobs``."""
    options, folder = options or TrainOptions(), Path(folder)
    places, (before, last, note) = _places(features, options, settings, steps), slices_of(features, options)
    audited = None if audit is None else encode(audit, {})
    reasons = {
        of: why_not(features, (rows := features.population(*of))[before[rows]], options) for of in places
    }
    not_trained = refused(reasons, "trained")
    plan = Training(features.fingerprint, [unit_key(*one) for one in places], options, fingerprint(audited))
    job = Job(folder, plan, StepModel, "models", "")
    fitting = {unit_key(*of): of for of, why in reasons.items() if not why}
    job.run(fitting, fit_step, processes=jobs, setup=_begin, setup_args=(features.shared(jobs), options))
    models = [StepModel.open(job.path(key)) for key in fitting]
    cells = [one.cell for one in models]
    notes = [
        f"{one['setting']}, step {step_text(one['step'])}: {note}" for one in cells for note in one["notes"]
    ]
    alarms = [one for one in (audited or {}).get("findings", ()) if one["alarm"]]
    notes += [f"alarm of the leak audit, {one['check']} {one['where']}: {one['text']}" for one in alarms]
    parts = {"all": before | True, "before": before, "last": last}
    ends = (features.start_us.min(), features.start_us.max()) if features.about["has_times"] else ()
    about = {
        **{"kept_leaking": [], "left_out": [], "session_options": None, **features.about},
        "days": " to ".join(str(np.datetime64(int(one), "us"))[:10] for one in ends) or "times unknown",
        "line": features.describe(),
        "parts": {name: [int(of.sum()), int(features.labels[of].sum())] for name, of in parts.items()},
        "divided": note,
        "options": options.model_dump(),
        "cells": cells,
        "not_trained": not_trained,
        "notes": notes + left_out_lines(not_trained, "not trained"),
        "audit": audited,
        "features": described_features(features, [dict.fromkeys(one.features.features) for one in models]),
    }
    scorer = Scorer(about)
    files.write_text(folder / CARD, model_card(about))
    if not features.is_whole:
        files.write_json(folder / EXAMPLE, example_session(features, scorer.places))
    scorer.save(folder / Scorer.marker())
    return Scorer.open(folder)


def _begin(table: FeatureTable | Path, options: TrainOptions) -> tuple[FeatureTable, TrainOptions]:
    return open_features(table), options


def _places(
    features: FeatureTable, options: TrainOptions, settings: Sequence[str] | None, steps: Sequence[int] | None
) -> list[tuple[str, int]]:
    """Return settings and steps in the table's order; unknown ones are refused."""
    if features.compat == "published":
        wrong = "features made as published look at what comes later: whether the visitor logs in at all"
        raise UsageError(wrong, "make them without --compat published to train what will be used")
    MODELS.get(options.model)
    chosen_of("feature set", None if features.is_whole else [options.feature_set], features.sets)
    names = chosen_of("setting", settings or None, features.settings)
    return list(product(names, chosen_of("step", steps or None, features.steps)))


@dataclass(frozen=True, eq=False)
class ScoredTable(
    Tabular,
    Artifact,
    kind="scores",
    recreate="diptych intent score SCORER TABLE --out SCORES",
    files=["scores"],
):
    """Scores of all sessions of a table: ``scores.csv``, and here by which scorer and how good they are."""

    about: dict[str, Any]
    scores: Sequence[tuple[StepModel, np.ndarray, np.ndarray, np.ndarray]] = ()  # model, sessions, p, labels

    def write_files(self, folder: Path) -> None:
        rows = (
            (session, model.setting, model.step, repr(one), int(one >= model.threshold), int(label))
            for model, sessions, p, labels in self.scores
            for session, one, label in zip(sessions, p.tolist(), labels, strict=True)
        )
        files.write_csv(folder / SCORES, ("session_id", "setting", "step", "p", "likely", "bought"), rows)

    def tables(self) -> list[Table]:
        scores = sum(cell["scored"] for cell in self.about["cells"])
        caption = f"{scores:,} scores, measured on {self.about['measured']}"
        return [measured_table(caption, self.about["cells"])]


def score_table(scorer: Scorer, features: FeatureTable, given: EvaluateOptions | None = None) -> ScoredTable:
    """Score and measure every session of a table; of the own table measures are those of training."""
    given = given or EvaluateOptions()
    if given.models or given.sets or given.folds:
        raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
    own = features.fingerprint == scorer.about["fingerprint"]
    options = TrainOptions(**scorer.about["options"])
    if "samples" in given.model_fields_set:
        options = options.model_copy(update={"samples": given.samples, "seed": given.seed})
    cells, scores = [], []
    scored = scorer.score_table(features, given.settings, given.steps)
    for model, rows, p in track(scored, "scoring", len(scorer.places), "models"):
        found = model.about["holdout"] if own else measure(model, p, features, rows, options)
        cells.append({**model.cell, "scored": len(rows), "measures": found})
        scores.append((model, features.session_ids[rows], p, features.labels[rows]))
    about = {
        "scorer": scorer.describe(),
        "features": features.describe(),
        "features_fingerprint": features.fingerprint,
        "measured": "the last part, by models fitted without it" if own else "all sessions",
        "kind": scorer.about["kind"],
        "options": options.model_dump(),
        "cells": cells,
    }
    return ScoredTable(about, scores)
