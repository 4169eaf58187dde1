"""Compare models under stress: which one loses less under which perturbation, and whether by more than chance.

Finished stress runs of one test set are read from their folders; no encoder is needed. Every perturbation that
all runs have is compared with the baseline's, query by query
(:mod:`diptych.evaluation.drops`), provided that it made the very same queries for each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Table, Tabular
from diptych.evaluation.comparison import baseline_of, check_alike, common_measures
from diptych.evaluation.drops import DropDifference, OwnDrop, Paired, drop_differences, drops_line
from diptych.evaluation.stress.conditions import RECREATE, Clean, Condition, open_condition
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import CLEAN, Declared, StressResult

_GAIN, _LANGUAGE = "gain of DCG_CM", "language"
_OWN = ("encoder", "dataset", _LANGUAGE, _GAIN)  # of the data its content says more than its name
_DEFAULT = (RSUM, "nDCG_CM@10")
_MARKER = "stress.json"


@dataclass(frozen=True)
class ComparedRow(Declared):
    """One perturbation, measured one way, of all models."""

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
class StressComparison(Tabular):
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

    def tables(self) -> list[Table]:
        """Return per measure and model what it and the baseline lose, and the difference."""
        from diptych.evaluation.stress.tables import comparison_tables

        return comparison_tables(self)

    def lines(self) -> list[str]:
        """Return how the tables are read, what they say in a sentence, and how they were made."""
        from diptych.evaluation.stress.tables import COMPARISON_LEGEND, comparison_summary

        head = (COMPARISON_LEGEND, comparison_summary(self))
        protocol = "; ".join(f"{name} {value}" for name, value in self.protocol.items())
        return [*head, *self.notes, protocol, self.method]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Run:
    name: str
    folder: Path
    result: StressResult
    clean: Clean
    seeds: Sequence[int]  # of every perturbation
    conditions: dict[str, list[Condition]] = field(default_factory=dict)  # of a row, one per seed

    @classmethod
    def open(cls, name: str, folder: Path) -> Self:
        result = StressResult.open(folder)
        seeds = str(result.protocol.get("seeds")).split(", ")
        if not all(seed.isdecimal() for seed in seeds):
            raise StorageError(f"{folder} does not say which seeds it has", f"give {RECREATE}")
        clean = Clean.open(folder / CLEAN, of=result.key)
        return cls(name, folder, result, clean, list(map(int, seeds)))

    def open_conditions(self, name: str) -> None:
        found = [open_condition(self.folder, name, seed) for seed in self.seeds]
        for measure, drop in self.result.row(name).drops.items():
            mean = float(np.mean([np.mean(one.values.get(measure, np.nan)) for one in found]))
            if not np.isclose(mean, drop.perturbed, rtol=1e-9, atol=1e-12):
                text = f"{self.folder}: {name} has {measure} {drop.perturbed:g} in the result and {mean:g} in its"
                raise StorageError(f"{text} conditions: they are of different runs", f"give {RECREATE}")
        self.conditions[name] = found

    def paired(self, name: str, measure: str) -> Paired:
        way = self.result.row(name).direction
        perturbed = np.stack([one.values[measure] for one in self.conditions[name]])
        return Paired(name, measure, self.clean.values[way][measure], perturbed, self.clean.cluster[way])


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
    first, *others = runs = [_Run.open(name, Path(folders[name])) for name in sorted(names, key=base.__ne__)]
    for run in others:
        _check_comparable(first, run)
    perturbations, left_out = _common_perturbations(runs)
    chosen, notes = _common_measures(runs, measures)
    for name in perturbations:
        for run in runs:
            run.open_conditions(name)
        for run in others:
            _check_same_change(name, first, run)
    cells = list(product(perturbations, chosen))
    pairs = [(first.paired(*cell), run.paired(*cell)) for cell in cells for run in others]
    how: dict[str, Any] = {"samples": samples, "flips": flips, "seed": seed, "correction": correction}
    tested = iter(drop_differences(pairs, **how))
    compared = tuple(
        ComparedRow(
            **{one.name: getattr(first.result.row(name), one.name) for one in fields(Declared)},
            measure=measure,
            unseen={run.name: run.result.row(name).same_share for run in runs},
            differences={run.name: next(tested) for run in others},
        )
        for name, measure in cells
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
        method=f"{method}; of one training of each model, not of others",
        notes=tuple(notes),
    )


def _check_comparable(first: _Run, run: _Run) -> None:
    """Refuse runs that did not evaluate the same queries over the same gallery; encoders may differ."""
    metadata = [
        {name: value for name, value in one.result.protocol.items() if name not in _OWN}
        | {f"{way} queries": mark for way, mark in one.clean.queries.items()}
        | {f"images of {way} queries": fingerprint(of.tolist()) for way, of in one.clean.cluster.items()}
        for one in (first, run)
    ]
    check_alike((first.name, run.name), metadata, "stress both on the same data with the same options")


def _check_same_change(name: str, first: _Run, run: _Run) -> None:
    names, metadata = (first.name, run.name), []
    for one in (first, run):
        given = ", ".join(f"{key} {value}" for key, value in one.result.row(name).options.items())
        metadata.append({name: f"with {given or 'no options'}"})
    check_alike(names, metadata, "stress both with the same --set")
    languages = [str(one.result.protocol.get(_LANGUAGE, "unknown")) for one in (first, run)]
    by = f", by language {' and '.join(languages)}" if languages[0] != languages[1] else ""
    for mine, theirs in zip(first.conditions[name], run.conditions[name], strict=True):
        what = f"{name}, seed {mine.seed}, made other queries,"
        made = {what: mine.content}, {what: theirs.content + (by if theirs.content != mine.content else "")}
        check_alike(names, made, "stress both with the same --language, --wordnet and --nltk-data")


def _common_perturbations(runs: Sequence[_Run]) -> tuple[list[str], dict[str, str]]:
    """Return perturbations that all runs have, in the order of the first, and why each other one is left out."""
    held = {run.name: [row.name for row in run.result.rows] for run in runs}
    common, left_out = [], {}
    for name in dict.fromkeys(name for names in held.values() for name in names):
        lacking = [run for run in runs if name not in held[run.name]]
        if lacking:
            why = (f"{run.name}: {run.result.left_out.get(name, 'not run')}" for run in lacking)
            left_out[name] = "; ".join(why)
        else:
            common.append(name)
    if not common:
        both = " and ".join(", ".join(names) or "none" for names in held.values())
        text = f"{' and '.join(held)} have no perturbation in common: {both}"
        raise MismatchError(text, "stress both with the same --perturb")
    return common, left_out


def _common_measures(runs: Sequence[_Run], requested: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the measures that are compared, and what a reader should know of them.

    Without any requested: rsum and nDCG_CM@10 where all have them, else all that are held in common.
    """
    common = common_measures({run.name: run.result.measures for run in runs}, requested, "stress")
    chosen = common if requested else [name for name in _DEFAULT if name in common] or common
    gains = [name for name in chosen if "DCG_CM" in name]
    models = [str(run.result.protocol.get(_GAIN, "unknown")) for run in runs]
    if not gains or len(set(models)) == 1:
        own = gains and models[0] == "the encoder's own similarity"
        note = f"{', '.join(gains)} by each model's own similarity: a difference may be one of scale"
        return chosen, [note] if own else []
    differ = f"{', '.join(gains)}: {_GAIN} is {' and '.join(dict.fromkeys(models))}"
    chosen = [name for name in chosen if name not in gains]
    if requested or not chosen:
        names = " and ".join(run.name for run in runs)
        raise MismatchError(f"{names} cannot be compared by {differ}", "stress all with one --relevance")
    return chosen, [f"left out {differ}"]
