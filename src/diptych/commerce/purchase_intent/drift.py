"""Drift: what changed from one table of features to a later one, and whether a scorer still holds on the later one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.training import measured_grid, measured_table, score_table
from diptych.commerce.purchase_intent.shown import TEXTS, pages_text, reliability_charts, table_of
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart
from diptych.core.errors import MismatchError
from diptych.core.extras import require
from diptych.core.table import Table, Tabular
from diptych.metrics.paired import LEVEL, corrected, correction_text

SOME, LARGE = 0.1, 0.25  # stability indices from which a change is called some or large (a rule of thumb)
_BINS = 10
_MOST_GROUPS = 60  # different values that are compared one by one
_AFTER = (
    f"PSI: population stability index; a change is some from {SOME} on, large from {LARGE} on, if p < {LEVEL}; "
    "p of χ² or Kolmogorov–Smirnov, sessions of a person counted singly; "
)


@dataclass(frozen=True)
class Drift(Tabular, Artifact, kind="drift", recreate="diptych intent drift OLD NEW --out DRIFT"):
    """Changes, feature by feature, and the worth of a scorer on the new sessions."""

    about: dict[str, Any]  # what was compared; of a scorer its options and kind
    rows: list[dict[str, Any]]  # per setting purchases, then every feature: index, corrected p, change
    cells: list[dict[str, Any]]  # per setting and step of a scorer: measures then (holdout) and now

    @property
    def is_large(self) -> bool:
        """True where a feature changed much, or the share of purchases at all."""
        return any(
            one["change"] == "large" or (one["what"] == "purchase" and one["p"] < LEVEL) for one in self.rows
        )

    def tables(self) -> list[Table]:
        names = [(row["setting"], row["what"]) for row in self.rows]
        after = _AFTER + correction_text("holm", len(self.rows))
        heads, then = ("setting", "what"), "The scorer when it was trained, on its last part"
        tables = [
            table_of(TEXTS["tables"]["drift"], "New sessions and old", names, self.rows, heads, after=after)
        ]
        if self.cells:
            tables.append(measured_table(then, self.cells, "holdout"))
            tables.append(measured_table("The scorer on the new sessions", self.cells))
        return tables

    def charts(self) -> list[Chart]:
        return reliability_charts(measured_grid({**self.about, "cells": self.cells})) if self.cells else []

    def lines(self) -> list[str]:
        names = [f"{one['setting']} {one['what']}" for one in self.rows if one["change"] != "–"]
        found = ", ".join(names) or "nothing changed but by chance or little"
        return [f"{len(names)} of {len(self.rows)} changed: {found}", *self.about["sessions"]]


def drift(
    old: FeatureTable, new: FeatureTable, scorer: Scorer | None = None, step: int | None = None
) -> Drift:
    """Compare sessions of two tables at a step, the last by default; features are fitted on the old ones.

    Source of the index: Siddiqi, Credit risk scorecards, 2006; Holm's correction is over all comparisons.
    """
    for name in ("kind", "columns", "session_options"):
        if old.about.get(name) != new.about.get(name):
            wrong = f"the old features have {name} {old.about.get(name)}, the new ones {new.about.get(name)}"
            raise MismatchError(wrong, "make both in the same way")
    step = old.steps[-1] if step is None else step
    rows, sessions = [], [f"old: {old.describe()}", f"new: {new.describe()}"]
    for setting in old.settings:
        both = [(table, table.population(setting, step)) for table in (old, new)]
        if not all(len(some) for _, some in both):
            continue
        labels, views = [one.labels[some] for one, some in both], [one.at(some, step) for one, some in both]
        fitted = fit_features(old.features(setting, old.sets[-1], step), views[0])
        matrices, owners = [fitted.matrix(view) for view in views], np.array(fitted.owners)
        pairs = {"purchase": [one[:, None] for one in labels]}
        pairs |= {name: [of[:, owners == name] for of in matrices] for name in dict.fromkeys(fitted.owners)}
        rows += [{"setting": setting, "what": name, **_compared(*pair)} for name, pair in pairs.items()]
        rates = " and ".join(f"{one.mean():.2%} of {len(one):,} sessions" for one in labels)
        sessions.append(f"{setting}, {pages_text(step)}: {rates} ended in a purchase")
    for row, p in zip(rows, corrected([row["p"] for row in rows], "holm"), strict=True):
        is_change = p is not None and p < LEVEL and row["psi"] >= SOME
        row |= {"p": p, "change": "–" if not is_change else "large" if row["psi"] >= LARGE else "some"}
    about: dict[str, Any] = {"sessions": sessions}
    if scorer is None:
        return Drift(about, rows, [])
    about |= {name: scorer.about[name] for name in ("options", "kind")}
    return Drift(about, rows, score_table(scorer, new).about["cells"])


def _compared(old: np.ndarray, new: np.ndarray) -> dict[str, Any]:
    """Return index and p-value of (n, columns) and (m, columns): of groups, or of the first column's values."""
    stats, both = require("scipy.stats", "commerce", "drift"), np.concatenate([old, new]).astype(np.float64)
    groups, place = np.unique(np.nan_to_num(both, nan=-1e300), axis=0, return_inverse=True)
    p, place = None, place.reshape(-1)
    if len(groups) > _MOST_GROUPS:
        first, later = (one[~np.isnan(one)] for one in (old[:, 0], new[:, 0]))
        edges = np.unique(np.quantile(first, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(first) else first
        place = np.where(np.isnan(both[:, 0]), len(edges) + 1, np.searchsorted(edges, both[:, 0]))
        p = float(stats.ks_2samp(first, later).pvalue) if len(first) and len(later) else None
    counts = stats.contingency.crosstab(np.arange(len(both)) >= len(old), place).count
    if p is None:
        p = float(stats.chi2_contingency(counts).pvalue) if counts.shape[1] > 1 else 1.0
    shares = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    return {"psi": float(np.sum((shares[1] - shares[0]) * np.log(shares[1] / shares[0]))), "p": p}
