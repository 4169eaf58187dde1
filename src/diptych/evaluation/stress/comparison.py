"""Compare models under stress: which one loses less under which perturbation, and whether by more than chance.

Finished stress runs of one test set are read from their folders; no encoder is needed. Every perturbation that
all runs have is compared with the baseline's, query by query
(:mod:`diptych.evaluation.drops`), provided that it made the very same queries for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Table
from diptych.evaluation.comparison import baseline_of, check_alike, common_measures
from diptych.evaluation.drops import DropDifference, OwnDrop, Paired, drop_differences, drops_line
from diptych.evaluation.stress.conditions import RECREATE, Clean, Condition, open_condition
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import CLEAN, StressResult, StressRow

_GAIN, _LANGUAGE = "gain of DCG_CM", "language"
_OWN = ("encoder", "dataset", _LANGUAGE, _GAIN)  # of the data its content says more than its name
_DECLARED = ("name", "description", "group", "keeps_meaning", "direction", "options")
_DEFAULT = (RSUM, "nDCG_CM@10")
_MARKER = "stress.json"


@dataclass(frozen=True)
class ComparedRow:
    """One perturbation, measured one way, of all models; its own fields are those of a stress run's row."""

    name: str
    description: str
    group: str
    keeps_meaning: bool
    direction: str
    options: Mapping[str, Any]
    measure: str
    unseen: Mapping[str, float]  # per model, share of changed queries that it gives the row of the clean one
    differences: Mapping[str, DropDifference]  # per model but the baseline, against it

    def own(self, model: str) -> OwnDrop:
        """Return what a model loses."""
        if model not in self.unseen:
            raise UnknownNameError("model", model, self.unseen)
        if model in self.differences:
            return self.differences[model].second
        return next(iter(self.differences.values())).first


@dataclass(frozen=True)
class StressComparison:
    """Models side by side."""

    models: Sequence[str]
    encoders: Mapping[str, str]  # per model, what its stress run calls it, and its fingerprint
    baseline: str
    measures: Sequence[str]
    protocol: Mapping[str, Any]  # what all runs have in common
    rows: Sequence[ComparedRow]  # perturbation by perturbation, one per measure
    left_out: Mapping[str, str]  # perturbations that not all have, and which have them not
    method: str  # how intervals and p-values were made, one line
    notes: Sequence[str] = ()  # what a reader of the numbers should know besides

    @property
    def others(self) -> list[str]:
        return [name for name in self.models if name != self.baseline]

    def of(self, measure: str) -> list[ComparedRow]:
        if measure not in self.measures:
            raise UnknownNameError("measure", measure, self.measures)
        return [row for row in self.rows if row.measure == measure]

    def protocol_line(self) -> str:
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())

    def tables(self) -> list[Table]:
        """Return per measure and model what it and the baseline lose, and the difference."""
        from diptych.evaluation.stress.tables import comparison_tables

        return comparison_tables(self)

    def lines(self) -> list[str]:
        """Return how the tables are read, what they say in a sentence, and how they were made."""
        from diptych.evaluation.stress.tables import COMPARISON_LEGEND, comparison_summary

        head = (COMPARISON_LEGEND, comparison_summary(self))
        return [*head, *self.notes, self.protocol_line(), self.method]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Run:
    name: str
    folder: Path
    result: StressResult
    clean: Clean
    seeds: tuple[int, ...]  # of every perturbation

    @classmethod
    def open(cls, name: str, folder: Path | str) -> _Run:
        result = StressResult.open(folder)
        try:
            seeds = tuple(int(seed) for seed in str(result.protocol["seeds"]).split(", "))
        except (KeyError, ValueError) as error:
            text = f"{folder} does not say which seeds it has: {error}"
            raise StorageError(text, f"give {RECREATE}") from None
        return cls(name, Path(folder), result, Clean.open(Path(folder) / CLEAN, of=result.key), seeds)

    def conditions(self, row: StressRow) -> list[Condition]:
        """Return what lies behind a row, one per seed."""
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


def is_stressed(runs: Sequence[Path]) -> bool:
    """Return whether folders are of stress runs: all or none."""
    stressed = [run for run in runs if (run / _MARKER).is_file()]
    others = [run for run in runs if run not in stressed]
    if stressed and others:
        inside = sorted(others[0].glob(f"stress/*/{_MARKER}"))
        fix = f"give {inside[0].parent}" if inside else f"run: diptych analyse stress {others[0]}"
        raise UsageError(f"{stressed[0]} is a stress run and {others[0]} is not", fix)
    return bool(stressed)


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
    base = baseline_of(baseline, names)
    runs = [_Run.open(name, folders[name]) for name in [base, *(one for one in names if one != base)]]
    for run in runs[1:]:
        _check_comparable(runs[0], run)
    perturbations, left_out = _common_perturbations(runs)
    chosen, notes = _common_measures(runs, measures)
    unpaired: list[dict[str, Any]] = []
    pairs: list[tuple[Paired, Paired]] = []
    for name in perturbations:
        rows = [run.result.row(name) for run in runs]
        conditions = [run.conditions(row) for run, row in zip(runs, rows, strict=True)]
        for other in range(1, len(runs)):
            _check_same_change(*((runs[one], rows[one], conditions[one]) for one in (0, other)))
        metadata = {field: getattr(rows[0], field) for field in _DECLARED}
        metadata["unseen"] = {run.name: row.same_share for run, row in zip(runs, rows, strict=True)}
        direction = rows[0].direction
        for measure in chosen:
            unpaired.append({**metadata, "measure": measure})
            baselines, *others = (
                Paired(
                    name,
                    measure,
                    run.clean.values[direction][measure],
                    np.stack([one.values[measure] for one in found]),
                    run.clean.cluster[direction],
                )
                for run, found in zip(runs, conditions, strict=True)
            )
            pairs += [(baselines, each) for each in others]
    how: dict[str, Any] = {"samples": samples, "flips": flips, "seed": seed, "correction": correction}
    tested = iter(drop_differences(pairs, **how))
    compared = tuple(
        ComparedRow(**one, differences={run.name: next(tested) for run in runs[1:]}) for one in unpaired
    )
    protocols = {run.name: run.result.protocol for run in runs}
    languages = {name: str(one.get(_LANGUAGE, "")) for name, one in protocols.items()}
    if len(set(languages.values())) > 1:
        each = "; ".join(f"{name} {line}" for name, line in languages.items())
        notes.append(f"languages differ, the changed queries do not: {each}")
    models = {run.name: run.result.model for run in runs}
    common = {
        name: value
        for name, value in protocols[base].items()
        if name != "encoder" and all(one.get(name) == value for one in protocols.values())
    }
    method = drops_line(len(pairs), what="differences of two models' drops", **how)
    return StressComparison(
        models=tuple(names),
        encoders={name: f"{models[name]} {protocols[name].get('encoder', '')}".strip() for name in names},
        baseline=base,
        measures=tuple(chosen),
        protocol=common,
        rows=compared,
        left_out=left_out,
        method=f"{method}; of one training of each model, which says nothing of others",
        notes=tuple(notes),
    )


def _check_comparable(first: _Run, run: _Run) -> None:
    """Refuse runs that were not asked the same queries over the same gallery; encoders may differ."""
    names, options, queries = (first.name, run.name), [], []
    for one in (first, run):
        options.append({name: value for name, value in one.result.protocol.items() if name not in _OWN})
        queries.append({f"{way} queries": mark for way, mark in one.clean.queries.items()})
        for way, owners in one.clean.cluster.items():
            queries[-1][f"images of {way} queries"] = fingerprint(owners.tolist())
    check_alike(names, options, "stress both on the same data with the same options")
    check_alike(names, queries, "stress both on the same data")


def _check_same_change(*both: tuple[_Run, StressRow, Sequence[Condition]]) -> None:
    """Refuse a perturbation that did not make the same of the same queries."""
    (first, row, mine), (run, other, theirs) = both
    names, options = (first.name, run.name), []
    for each in (row, other):
        given = ", ".join(f"{key} {value}" for key, value in each.options.items())
        options.append({row.name: f"with {given or 'no options'}"})
    check_alike(names, options, "stress both with the same --set")
    languages = [str(each.result.protocol.get(_LANGUAGE, "not said")) for each in (first, run)]
    by = f", by language {' and '.join(languages)}" if languages[0] != languages[1] else ""
    for one, two in zip(mine, theirs, strict=True):
        what = f"{row.name}, seed {one.seed}, made other queries,"
        found = f"{two.content}{by}" if two.content != one.content else one.content
        fix = "stress both with the same --language, --wordnet and --nltk-data"
        check_alike(names, ({what: one.content}, {what: found}), fix)


def _common_perturbations(runs: Sequence[_Run]) -> tuple[list[str], dict[str, str]]:
    """Return perturbations that all runs have, in the order of the first, and why each other one is left out."""
    held = {run.name: {row.name for row in run.result.rows} for run in runs}
    each = dict.fromkeys(row.name for run in runs for row in run.result.rows)
    common = [name for name in each if all(name in rows for rows in held.values())]
    left_out = {
        name: "; ".join(
            f"{run.name}: {run.result.left_out.get(name, 'not run')}"
            for run in runs
            if name not in held[run.name]
        )
        for name in each
        if name not in common
    }
    if not common:
        both = " and ".join(", ".join(row.name for row in run.result.rows) or "none" for run in runs)
        text = f"{' and '.join(held)} have no perturbation in common: {both}"
        raise MismatchError(text, "stress both with the same --perturb")
    return common, left_out


def _common_measures(runs: Sequence[_Run], asked: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the measures that are compared, and what a reader should know of them.

    Without any asked for: rsum and nDCG_CM@10 where all have them, else all that are held in common.
    """
    common = common_measures({run.name: run.result.measures for run in runs}, asked, "stress")
    chosen = common if asked else [name for name in _DEFAULT if name in common] or common
    gains = [name for name in chosen if "DCG_CM" in name]
    models = [str(run.result.protocol.get(_GAIN, "not said")) for run in runs]
    if not gains or len(set(models)) == 1:
        own = gains and models[0] == "the encoder's own similarity"
        note = f"{', '.join(gains)} by each model's own similarity: a difference may be one of scale"
        return chosen, [note] if own else []
    differ = f"{', '.join(gains)}: {_GAIN} is {' and '.join(dict.fromkeys(models))}"
    chosen = [name for name in chosen if name not in gains]
    if asked or not chosen:
        names = " and ".join(run.name for run in runs)
        raise MismatchError(f"{names} cannot be compared by {differ}", "stress all with one --relevance")
    return chosen, [f"left out {differ}"]
