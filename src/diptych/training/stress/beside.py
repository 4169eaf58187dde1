"""Models side by side under stress: which one loses less under which perturbation, and whether by more than chance.

Finished stress runs of one test set are read from their folders; no encoder is needed. Every perturbation that
all runs have is compared with the baseline's, query by query
(:mod:`diptych.evaluation.drop_differences`), provided that it made the very same queries for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.drop_differences import DropDifference, OwnDrop, drop_differences
from diptych.evaluation.drops import Paired, drops_line
from diptych.training.stress.comparable import (
    LANGUAGE,
    Stressed,
    check_comparable,
    check_same_change,
    common_measures,
    common_perturbations,
    open_stressed,
)
from diptych.training.stress.rows import StressRow

__all__ = ["BesideRow", "StressComparison", "beside"]

_FORMAT = 1


@dataclass(frozen=True)
class BesideRow:
    """One perturbation, measured one way, of all models.

    Attributes:
        name, description, group, keeps_meaning, direction: of the perturbation.
        options: it was run with.
        measure: what was measured.
        unseen: per model, share of changed queries that it gives the very row of the clean one.
        differences: per model but the baseline, its drop beside the baseline's.
    """

    name: str
    description: str
    group: str
    keeps_meaning: bool
    direction: str
    options: Mapping[str, Any]
    measure: str
    unseen: Mapping[str, float]
    differences: Mapping[str, DropDifference]

    def own(self, model: str) -> OwnDrop:
        """What a model loses.

        Raises:
            UnknownNameError: there is no such model.
        """
        if model not in self.unseen:
            raise UnknownNameError("model", model, self.unseen)
        if model in self.differences:
            return self.differences[model].second
        return next(iter(self.differences.values())).first


@dataclass(frozen=True)
class StressComparison:
    """Models side by side.

    Attributes:
        models: their names, in the order given.
        encoders: per model, what its stress run calls it, and its fingerprint.
        baseline: the one that others are compared with.
        measures: by which.
        protocol: what all runs have in common.
        rows: perturbation by perturbation, one per measure.
        left_out: perturbations that not all have, and which have them not.
        method: how intervals and p-values were made, one line.
        notes: what a reader of the numbers should know besides.
    """

    models: Sequence[str]
    encoders: Mapping[str, str]
    baseline: str
    measures: Sequence[str]
    protocol: Mapping[str, Any]
    rows: Sequence[BesideRow]
    left_out: Mapping[str, str]
    method: str
    notes: Sequence[str] = ()

    @property
    def others(self) -> list[str]:
        """All models but the baseline."""
        return [name for name in self.models if name != self.baseline]

    def of(self, measure: str) -> list[BesideRow]:
        """The rows of one measure.

        Raises:
            UnknownNameError: it was not compared.
        """
        if measure not in self.measures:
            raise UnknownNameError("measure", measure, self.measures)
        return [row for row in self.rows if row.measure == measure]

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"format": _FORMAT, "kind": "stress comparison", **asdict(self)}


def beside(
    folders: Mapping[str, Path | str],
    measures: Sequence[str] | None = None,
    *,
    baseline: int = 0,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    correction: str = "holm",
) -> StressComparison:
    """Set stress runs side by side.

    Args:
        folders: by name, each of a finished stress run.
        measures: names; rsum and nDCG_CM@10 where all have them, when not given.
        baseline: number of the run that the others are compared with.
        samples: resamples for 95 % intervals; 0 for none.
        flips: random swaps for p-values.
        seed: of resamples and swaps.
        correction: ``"holm"``, ``"bonferroni"`` or ``"none"``, over everything that is compared.

    Raises:
        UsageError: fewer than two runs; a baseline, measure, correction or number that cannot be.
        MismatchError: the runs were not asked the same queries, changed the same way, over one gallery.
        StorageError: a folder without a finished run, or parts of different runs in it.
    """
    names = list(folders)
    if len(names) < 2:
        raise UsageError(f"{len(names)} stress run: at least two are needed", "give two folders or more")
    if not -len(names) <= baseline < len(names):
        raise UsageError(f"baseline {baseline} of {len(names)} runs", f"a number from 0 to {len(names) - 1}")
    base = names[baseline]
    runs = [open_stressed(name, folders[name]) for name in [base, *(one for one in names if one != base)]]
    check_comparable(runs)
    perturbations, left_out = common_perturbations(runs)
    chosen, notes = common_measures(runs, measures)
    rows: list[tuple[list[StressRow], str]] = []
    pairs: list[tuple[Paired, Paired]] = []
    for name in perturbations:
        of_runs = [run.result.row(name) for run in runs]
        paired = _paired(runs, of_runs, chosen)
        for measure in chosen:
            rows.append((of_runs, measure))
            pairs += [(paired[0][measure], other[measure]) for other in paired[1:]]
    how: dict[str, Any] = {"samples": samples, "flips": flips, "seed": seed, "correction": correction}
    found = iter(drop_differences(pairs, **how))
    made = tuple(
        _row(runs, of_runs, measure, {run.name: next(found) for run in runs[1:]}) for of_runs, measure in rows
    )
    languages = {run.name: str(run.result.protocol.get(LANGUAGE, "")) for run in runs}
    if len(set(languages.values())) > 1:
        said = "; ".join(f"{name} {line}" for name, line in languages.items())
        notes.append(f"languages differ, the changed queries do not: {said}")
    return StressComparison(
        models=tuple(names),
        encoders={
            run.name: f"{run.result.model} {run.result.protocol.get('encoder', '')}".strip()
            for run in sorted(runs, key=lambda run: names.index(run.name))
        },
        baseline=base,
        measures=tuple(chosen),
        protocol=_protocol(runs),
        rows=made,
        left_out=left_out,
        method=drops_line(len(pairs), what="differences of two models' drops", **how)
        + "; of one training of each model, which says nothing of others",
        notes=tuple(notes),
    )


def _paired(
    runs: Sequence[Stressed], rows: Sequence[StressRow], measures: Sequence[str]
) -> list[dict[str, Paired]]:
    """Of every run its queries under one perturbation, by measure."""
    conditions = [run.conditions(row) for run, row in zip(runs, rows, strict=True)]
    check_same_change(runs, rows, conditions)
    return [
        {
            measure: Paired(
                row.name,
                measure,
                run.clean.values[row.direction][measure],
                np.stack([one.values[measure] for one in found]),
                run.clean.cluster[row.direction],
            )
            for measure in measures
        }
        for run, row, found in zip(runs, rows, conditions, strict=True)
    ]


def _row(
    runs: Sequence[Stressed],
    rows: Sequence[StressRow],
    measure: str,
    differences: Mapping[str, DropDifference],
) -> BesideRow:
    first = rows[0]
    return BesideRow(
        name=first.name,
        description=first.description,
        group=first.group,
        keeps_meaning=first.keeps_meaning,
        direction=first.direction,
        options=dict(first.options),
        measure=measure,
        unseen={run.name: row.same_share for run, row in zip(runs, rows, strict=True)},
        differences=dict(differences),
    )


def _protocol(runs: Sequence[Stressed]) -> dict[str, Any]:
    """What all runs say alike."""
    first, *others = (run.result.protocol for run in runs)
    return {
        name: value
        for name, value in first.items()
        if name != "encoder" and all(other.get(name) == value for other in others)
    }
