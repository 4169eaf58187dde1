"""Whether stress runs can be set side by side: the same queries, changed the same way, over the same gallery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.training.stress.asking import RSUM
from diptych.training.stress.clean import Clean
from diptych.training.stress.condition import Condition
from diptych.training.stress.result import StressResult
from diptych.training.stress.rows import StressRow

__all__ = [
    "GAIN",
    "LANGUAGE",
    "Stressed",
    "check_comparable",
    "check_same_change",
    "common_measures",
    "common_perturbations",
    "open_stressed",
]

GAIN = "gain of DCG_CM"
LANGUAGE = "language"
"""Parts of a protocol that may differ where nothing that is compared depends on them."""

_OWN = ("encoder", "dataset", LANGUAGE, GAIN)  # of the data its content says more than its name
_DEFAULT = (RSUM, "nDCG_CM@10")
_GAINS = "DCG_CM"
_AGAIN = "give the command of diptych stress once more: what is finished is kept"


@dataclass(frozen=True, eq=False)
class Stressed:
    """A finished stress run.

    Attributes:
        name: what tables call it.
        folder: where it lies.
        result: what it found.
        clean: values of its clean queries.
        seeds: of every perturbation.
    """

    name: str
    folder: Path
    result: StressResult
    clean: Clean
    seeds: tuple[int, ...]

    def conditions(self, row: StressRow) -> list[Condition]:
        """What lies behind a row, one per seed.

        Raises:
            StorageError: one is missing or damaged, or they are of another run than the row.
        """
        found = [Condition.open(self.folder / "conditions", row.name, seed) for seed in self.seeds]
        for measure in self.result.measures:
            mean = float(np.mean([np.mean(one.values.get(measure, np.nan)) for one in found]))
            if not np.isclose(mean, row.drop(measure).perturbed, rtol=1e-9, atol=1e-12):
                raise StorageError(
                    f"{self.folder}: {row.name} has {measure} {row.drop(measure).perturbed:g} in the result "
                    f"and {mean:g} in its conditions: they are of different runs",
                    _AGAIN,
                )
        return found


def open_stressed(name: str, folder: Path | str) -> Stressed:
    """Read a folder that ``diptych stress`` wrote.

    Raises:
        StorageError: there is none, or it is not finished, of another version, or has no clean values.
    """
    result = StressResult.open(folder)
    try:
        seeds = tuple(int(seed) for seed in str(result.protocol["seeds"]).split(", "))
    except (KeyError, ValueError) as error:
        raise StorageError(f"{folder} does not say which seeds it has: {error}", _AGAIN) from None
    return Stressed(name, Path(folder), result, Clean.open(Path(folder), result.key), seeds)


def check_comparable(runs: Sequence[Stressed]) -> None:
    """Refuse runs that were not asked the same queries over the same gallery; encoders may differ.

    Raises:
        MismatchError: the message has both values.
    """
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
    """Refuse a perturbation that did not make the same of the same queries.

    Args:
        runs: side by side.
        rows: of one perturbation, of each run.
        conditions: behind the rows, one per seed.

    Raises:
        MismatchError: the message has what differs: its options, the language, or the changed queries.
    """
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
    """Perturbations that all runs have, in the order of the first, and why each other one is left out.

    Raises:
        MismatchError: there is none in common.
    """
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

    Raises:
        UsageError: one that was asked for is missing somewhere, or there is none in common.
        MismatchError: gains that were asked for are of different relevance models.
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
