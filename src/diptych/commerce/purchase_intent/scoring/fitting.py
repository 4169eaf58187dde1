"""Fit one cell on its first part, calibrate it on the second, measure it on the third."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import (
    Persons,
    always_buy_f1,
    average_precision,
    best_threshold,
    brier,
    f1,
    log_odds,
    reliability,
    roc_auc,
)
from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models import FEWEST, fit_model
from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.scoring.cell import Cell, fit_calibration, typical_value
from diptych.commerce.purchase_intent.splits import SplitInput
from diptych.core.draws import Draws, draw_uniform
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


@dataclass(frozen=True)
class Slices:
    """(n,) bool masks, disjoint."""

    fit: np.ndarray  # the model and its features learn from these
    calibration: np.ndarray  # its probabilities are calibrated, and the threshold chosen, on these
    holdout: np.ndarray  # it is measured on these, and learns nothing from them
    split: str  # how they were told apart: time or grouped
    note: str  # what a reader has to know about it
    ends: tuple[int, int] | None = None  # of time: microseconds at which the first two end

    @property
    def n_left_out(self) -> int:
        """Sessions in none of them: they run across an end."""
        return int((~(self.fit | self.calibration | self.holdout)).sum())


def slices_of(
    given: SplitInput, *, split: str = "time", calibration: float = 0.2, holdout: float = 0.2, seed: int = 0
) -> Slices:
    """Cut all sessions in three, the same for every setting and step.

    ``time``: the earliest part is fitted on, the next one calibrated on, the last one measured on; a session has
    to end before its part does. ``grouped``: all sessions of a person are in one part, drawn at random; this is
    what happens, and is said, where all sessions begin at one time.

    Args:
        given: labels, persons and times, (n,).
    """
    n = len(given.start_us)
    first, second = round(n * (1 - calibration - holdout)), round(n * (1 - holdout))
    if split == "time" and n and given.start_us.min() < given.start_us.max():
        starts = np.sort(given.start_us)
        end, last = int(starts[first]), int(starts[min(second, n - 1)])
        return Slices(
            given.end_us < end,
            (given.start_us >= end) & (given.end_us < last),
            given.start_us >= last,
            "time",
            "the earliest sessions are fitted on, later ones calibrated on, the last ones measured on",
            (end, last),
        )
    note = "all sessions of a person are in one part, drawn at random"
    if split == "time":
        note = f"the sessions have no times to be told apart by, so that {note}"
    draws = draw_uniform(seed, given.persons)
    return Slices(
        draws < 1 - calibration - holdout,
        (draws >= 1 - calibration - holdout) & (draws < 1 - holdout),
        draws >= 1 - holdout,
        "grouped",
        note,
    )


_WORDS_ROWS = 20_000
"""Training sessions that typical values are taken of, at most."""


def why_not(features: FeatureTable, setting: str, step: int, slices: Slices) -> str:
    """Why there can be no model of a setting and step; nothing where there can."""
    population = features.population(setting, step)
    if not len(population):
        return "no session"
    for name, part in (("fitted", slices.fit), ("calibrated", slices.calibration)):
        bought = features.labels[population[part[population]]]
        fewest = int(min(bought.sum(), (~bought).sum()))
        if fewest < FEWEST:
            return (
                f"{int(bought.sum()):,} purchases among the {len(bought):,} sessions that it would be {name} on: "
                f"at least {FEWEST} of either class are needed"
            )
    return ""


def fit_cell(
    features: FeatureTable,
    setting: str,
    step: int,
    slices: Slices,
    options: TrainOptions,
) -> Cell:
    """Fit, calibrate and measure one setting and step; see :func:`why_not` for when that cannot be."""
    population = features.population(setting, step)
    fit, held, last = (
        population[part[population]] for part in (slices.fit, slices.calibration, slices.holdout)
    )
    feature_set = features.sets[0] if features.is_whole else options.feature_set
    chosen = features.features(setting, feature_set, step)
    view = features.at(fit, step)
    fitted = fit_features(chosen, view)
    matrix = fitted.matrix(view)
    model = fit_model(
        options.model, matrix, features.labels[fit], balanced=options.balanced, seed=options.seed
    )

    def x_of(rows: np.ndarray) -> np.ndarray:
        return log_odds(model.scores(fitted.matrix(features.at(rows, step))), model.model)

    x = x_of(held)
    calibration, said = fit_calibration(options.calibrate, x, features.labels[held])
    threshold = best_threshold(calibration.probabilities(x), features.labels[held])
    p = calibration.probabilities(x_of(last)) if len(last) else np.zeros(0)
    notes = [one for one in (said, model.reason, *model.warnings) if one]
    return Cell(
        setting=setting,
        step=step,
        features=fitted,
        model=model,
        calibration=calibration,
        threshold=threshold,
        base_rate=float(features.labels[np.r_[fit, held]].mean()),
        background=matrix[_drawn(features.session_ids[fit], options.background, options.seed)],
        typical=_typical(chosen, fitted, view, matrix),
        about={
            "sessions": {"fit": len(fit), "calibration": len(held), "holdout": len(last)},
            "purchases": {
                name: int(features.labels[rows].sum())
                for name, rows in (("fit", fit), ("calibration", held), ("holdout", last))
            },
            "weighting": model.weighting,
            "columns": list(fitted.names),
            "notes": notes,
            "holdout": holdout_measures(p, features.labels[last], features.persons[last], threshold, options),
        },
    )


def holdout_measures(
    p: np.ndarray, labels: np.ndarray, persons: np.ndarray, threshold: float, options: TrainOptions
) -> dict[str, Any] | None:
    """What probabilities are worth: measures, intervals over persons, reliability; None without both classes.

    Args:
        p: (n,) probabilities.
        labels: (n,) bool.
        persons: (n,) int64.
    """
    if not len(labels) or labels.all() or not labels.any():
        return None
    drawn = Persons.of(persons, Bootstrap(options.samples, options.confidence, options.seed))
    everyone = np.arange(len(labels))
    found: dict[str, Any] = {
        "sessions": len(labels),
        "purchases": int(labels.sum()),
        "base_rate": float(labels.mean()),
        "mean_p": float(p.mean()),
        "always_buy_f1": always_buy_f1(float(labels.mean())),
        "brier": brier(p, labels),
        "brier_base_rate": float(labels.mean() * (1 - labels.mean())),
    }
    measures: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "average_precision": lambda weights: average_precision(p, labels, weights),
        "roc_auc": lambda weights: roc_auc(p, labels, weights),
        "f1": lambda weights: f1(p >= threshold, labels, weights),
    }
    resampled = drawn.resamples(everyone, measures)
    for name, measure in measures.items():
        low, high = drawn.interval(resampled[name])
        found |= {name: float(measure(np.ones(len(labels)))), f"{name}_low": low, f"{name}_high": high}
    found["reliability"] = reliability(p, labels)
    return found


def _drawn(session_ids: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Rows of the sessions that are drawn, rising: a session's draw is its own."""
    draws = draw_uniform(Draws(seed, "background").below(1 << 31), session_ids)
    return np.sort(np.argsort(draws, kind="stable")[:most])


def _typical(
    features: Sequence[Feature], fitted: FittedFeatures, view: SessionsView, matrix: np.ndarray
) -> dict[str, str]:
    owners = np.array(fitted.owners)
    some = slice(None, None, max(1, len(matrix) // _WORDS_ROWS))
    few = view.take(np.arange(len(matrix))[some])
    return {
        feature.name: typical_value(feature, few, matrix[some][:, owners == feature.name])
        for feature in features
    }
