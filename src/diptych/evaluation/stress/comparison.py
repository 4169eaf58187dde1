"""Compare models under stress: which one loses less under which perturbation, and whether by more than chance.

Finished stress runs of one test set are read from their folders; no encoder is needed. Every perturbation that
all runs have is compared with the baseline's, query by query
(:mod:`diptych.evaluation.drops`), provided that it made the very same queries for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.evaluation.drops import DropDifference, OwnDrop, Paired, drop_differences, drops_line
from diptych.evaluation.stress.conditions import RECREATE, Clean, Condition, open_condition
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import CLEAN, StressResult, StressRow

GAIN = "gain of DCG_CM"
LANGUAGE = "language"
"""Parts of a protocol that may differ where nothing that is compared depends on them."""

_OWN = ("encoder", "dataset", LANGUAGE, GAIN)  # of the data its content says more than its name
_DEFAULT = (RSUM, "nDCG_CM@10")
_GAINS = "DCG_CM"


@dataclass(frozen=True, eq=False)
class Stressed:
    """A finished stress run."""

    name: str  # what tables call it
    folder: Path  # where it lies
    result: StressResult  # what it found
    clean: Clean  # values of its clean queries
    seeds: tuple[int, ...]  # of every perturbation

    def conditions(self, row: StressRow) -> list[Condition]:
        """What lies behind a row, one per seed."""
        found = [open_condition(self.folder, row.name, seed) for seed in self.seeds]
        for measure in self.result.measures:
            mean = float(np.mean([np.mean(one.values.get(measure, np.nan)) for one in found]))
            if not np.isclose(mean, row.drop(measure).perturbed, rtol=1e-9, atol=1e-12):
                raise StorageError(
                    f"{self.folder}: {row.name} has {measure} {row.drop(measure).perturbed:g} in the result "
                    f"and {mean:g} in its conditions: they are of different runs",
                    f"give {RECREATE}",
                )
        return found


def open_stressed(name: str, folder: Path | str) -> Stressed:
    """Read a folder that ``diptych analyse stress`` wrote."""
    result = StressResult.open(folder)
    try:
        seeds = tuple(int(seed) for seed in str(result.protocol["seeds"]).split(", "))
    except (KeyError, ValueError) as error:
        raise StorageError(f"{folder} does not say which seeds it has: {error}", f"give {RECREATE}") from None
    return Stressed(name, Path(folder), result, Clean.open(Path(folder) / CLEAN, of=result.key), seeds)


def check_comparable(runs: Sequence[Stressed]) -> None:
    """Refuse runs that were not asked the same queries over the same gallery; encoders may differ."""
    first = runs[0]
    said = _said(first)
    for run in runs[1:]:
        other = _said(run)
        for what in dict.fromkeys([*said, *other]):
            if said.get(what) != other.get(what):
                raise _mismatch(
                    (first, run),
                    f"{what} {said.get(what, 'not said')} and {other.get(what, 'not said')}",
                    "stress both on the same data with the same options",
                )
        for way in dict.fromkeys([*first.clean.queries, *run.clean.queries]):
            mine, theirs = first.clean.queries.get(way), run.clean.queries.get(way)
            same = np.array_equal(first.clean.cluster.get(way, ()), run.clean.cluster.get(way, ()))
            if mine != theirs or not same:
                raise _mismatch(
                    (first, run), f"{way} queries {mine} and {theirs}", "stress both on the same data"
                )


def check_same_change(
    runs: Sequence[Stressed], rows: Sequence[StressRow], conditions: Sequence[Sequence[Condition]]
) -> None:
    """Refuse a perturbation that did not make the same of the same queries."""
    first, name = runs[0], rows[0].name
    for run, row, found in zip(runs[1:], rows[1:], conditions[1:], strict=True):
        if dict(rows[0].options) != dict(row.options):
            raise _mismatch(
                (first, run),
                f"{name} with {_options(rows[0])} and with {_options(row)}",
                "stress both with the same --set",
            )
        for mine, theirs in zip(conditions[0], found, strict=True):
            if mine.content == theirs.content:
                continue
            languages = [str(one.result.protocol.get(LANGUAGE, "not said")) for one in (first, run)]
            what = f"{name}, seed {mine.seed}, made other queries, {mine.content} and {theirs.content}"
            if languages[0] != languages[1]:
                what += f", by language {languages[0]} and {languages[1]}"
            raise _mismatch(
                (first, run), what, "stress both with the same --language, --wordnet and --nltk-data"
            )


def common_perturbations(runs: Sequence[Stressed]) -> tuple[list[str], dict[str, str]]:
    """Perturbations that all runs have, in the order of the first, and why each other one is left out."""
    held = [{row.name: row for row in run.result.rows} for run in runs]
    common = [name for name in held[0] if all(name in other for other in held)]
    left_out = {}
    for name in dict.fromkeys(name for rows in held for name in rows):
        if name not in common:
            missing = [run for run, rows in zip(runs, held, strict=True) if name not in rows]
            left_out[name] = "; ".join(
                f"{run.name}: {run.result.left_out.get(name, 'not run')}" for run in missing
            )
    if not common:
        both = " and ".join(", ".join(rows) or "none" for rows in held)
        names = " and ".join(run.name for run in runs)
        raise MismatchError(
            f"{names} have no perturbation in common: {both}", "stress both with the same --perturb"
        )
    return common, left_out


def common_measures(runs: Sequence[Stressed], asked: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The measures that are compared, and what a reader should know of them.

    Without any asked for: rsum and nDCG_CM@10 where all have them, else all that are held in common.
    """
    held = [list(run.result.measures) for run in runs]
    names = " and ".join(run.name for run in runs)
    common = [name for name in held[0] if all(name in other for other in held)]
    for measure in asked or ():
        for run, known in zip(runs, held, strict=True):
            if measure not in known:
                raise UsageError(
                    f"{run.name} was not stressed by {measure}",
                    f"it has {', '.join(known)}; stress it again with --measure {measure}",
                )
    chosen = list(dict.fromkeys(asked or [name for name in _DEFAULT if name in common] or common))
    gains = [name for name in chosen if _GAINS in name]
    models = [str(run.result.protocol.get(GAIN, "not said")) for run in runs]
    notes = []
    if gains and len(set(models)) > 1:
        said = f"{', '.join(gains)}: {GAIN} is {' and '.join(dict.fromkeys(models))}"
        if asked:
            raise MismatchError(f"{names} cannot be compared by {said}", "stress all with one --relevance")
        notes.append(f"left out {said}")
        chosen = [name for name in chosen if name not in gains]
    elif gains and models[0] == "the encoder's own similarity":
        notes.append(f"{', '.join(gains)} by each model's own similarity: a difference may be one of scale")
    if not chosen:
        raise UsageError(f"{names} have no measure in common", "stress them with the same --measure")
    return chosen, notes


def _said(run: Stressed) -> Mapping[str, Any]:
    """What runs must have in common of their protocols."""
    return {name: value for name, value in run.result.protocol.items() if name not in _OWN}


def _options(row: StressRow) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.options.items()) or "no options"


def _mismatch(runs: tuple[Stressed, Stressed], what: str, fix: str) -> MismatchError:
    return MismatchError(f"{runs[0].name} and {runs[1].name} cannot be compared: {what}", fix)


@dataclass(frozen=True)
class ComparedRow:
    """One perturbation, measured one way, of all models.

    Attributes:
        name, description, group, keeps_meaning, direction: of the perturbation.
    """

    name: str
    description: str
    group: str
    keeps_meaning: bool
    direction: str
    options: Mapping[str, Any]  # it was run with
    measure: str  # what was measured
    # per model, share of changed queries that it gives the very row of the clean one
    unseen: Mapping[str, float]
    differences: Mapping[str, DropDifference]  # per model but the baseline, its drop beside the baseline's

    def own(self, model: str) -> OwnDrop:
        """What a model loses."""
        if model not in self.unseen:
            raise UnknownNameError("model", model, self.unseen)
        if model in self.differences:
            return self.differences[model].second
        return next(iter(self.differences.values())).first


@dataclass(frozen=True)
class StressComparison:
    """Models side by side."""

    models: Sequence[str]  # their names, in the order given
    encoders: Mapping[str, str]  # per model, what its stress run calls it, and its fingerprint
    baseline: str  # the one that others are compared with
    measures: Sequence[str]  # by which
    protocol: Mapping[str, Any]  # what all runs have in common
    rows: Sequence[ComparedRow]  # perturbation by perturbation, one per measure
    left_out: Mapping[str, str]  # perturbations that not all have, and which have them not
    method: str  # how intervals and p-values were made, one line
    notes: Sequence[str] = ()  # what a reader of the numbers should know besides

    @property
    def others(self) -> list[str]:
        """All models but the baseline."""
        return [name for name in self.models if name != self.baseline]

    def of(self, measure: str) -> list[ComparedRow]:
        """The rows of one measure."""
        if measure not in self.measures:
            raise UnknownNameError("measure", measure, self.measures)
        return [row for row in self.rows if row.measure == measure]

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())


def compare_stress(
    folders: Mapping[str, Path | str],
    measures: Sequence[str] | None = None,
    *,
    baseline: int = 0,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    correction: str = "holm",
) -> StressComparison:
    """Compare the stress runs in ``folders`` with the baseline, perturbation by perturbation."""
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
) -> ComparedRow:
    first = rows[0]
    return ComparedRow(
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
