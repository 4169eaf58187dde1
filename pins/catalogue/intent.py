"""Purchase intent: one session log through ingest, describe, features, evaluate, train and score."""

from __future__ import annotations

from typing import Any

import numpy as np

from pins import adapters
from pins.adapters import diptych
from pins.numbers import record, text_digest
from pins.registry import pin
from pins.world import World

_SHORT = 40  # rows of a table that is stored whole


@pin("intent.describe")
def describe(world: World) -> Any:
    """What is dropped, and every statistic of the sessions."""
    out = world.folder / "description"
    diptych("intent", "describe", str(world.log), f"--out={out}", "--least-count=1")  # every number
    tables = {
        name: rows if len(rows) <= _SHORT else short(rows) for name, rows in adapters.tables_of(out).items()
    }
    return {"ingested": adapters.ingested(world.log), **tables}


def short(rows: list[list[str]]) -> dict[str, Any]:
    """A long table: its size, its first rows and a digest."""
    return {"rows": len(rows), "first": rows[:3], "all": text_digest("\n".join(map(",".join, rows)))}


@pin("intent.features", fast=True)
def features(world: World) -> Any:
    """Every column of every session and step."""
    found = {}
    for name, values in adapters.feature_columns(world.features).items():
        if any(isinstance(value, str) for value in values):
            found[name] = {"rows": len(values), "all": text_digest("\n".join(map(str, values)))}
        else:
            found[name] = record(np.array([np.nan if one is None else one for one in values], np.float64))
    return found


@pin("intent.evaluate")
def evaluate(world: World) -> Any:
    """Three classifiers in every split."""
    found = {}
    for split in ("random", "grouped", "time"):
        out = world.folder / f"intent-{split}"
        few = () if split == "random" else ("--set=extended", "--no-importance")
        models = "--model=logistic-regression,hist-gradient-boosting,random-forest-small"
        folds = () if split == "time" else ("--folds=2",)
        given = (models, f"--split={split}", *folds, *few, "--step=0", "--step=3", "--samples=50")
        diptych("intent", "evaluate", str(world.features), *given, f"--out={out}")
        found[split] = adapters.intent_cells(out)
    return found


@pin("intent.score")
def score(world: World) -> Any:
    """A calibrated scorer: its example with reasons as printed, a table of sessions, and what it is worth."""
    scorer, out = world.folder / "scorer", world.folder / "scores"
    given = ("--model=logistic-regression", "--step=0", "--step=3", "--samples=20")
    diptych("intent", "train", str(world.features), *given, f"--out={scorer}")
    printed = diptych("intent", "score", str(scorer), str(scorer / "example.json"))
    diptych("intent", "score", str(scorer), str(world.features), f"--out={out}")
    return {
        "example": adapters.printed_numbers(printed),
        "measures": adapters.scorer_cells(out),
        "scores": short(adapters.scores_table(out)),
    }
