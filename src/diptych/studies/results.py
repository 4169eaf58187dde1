"""What a study's runs gave: one entry per row and seed, kept beside each run and in ``results.json``.

A study of several collections has one per row, seed and collection.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import safe_name
from diptych.studies.rows import run_folder
from diptych.studies.study import STUDIES, Measurement, SettingName, Study
from diptych.studies.verdict import Evidence, Figure, Trajectory, side_by_side


@dataclass(frozen=True)
class Entry(Artifact, kind="study-entry", recreate="diptych study run"):
    """One row and seed that was trained and measured.

    Attributes:
        study, row, seed: which.
        setting: how it was trained.
        measurements: what it gave; on the collection's own pairs first.
        key: fingerprint of the run's state and of how it was measured.
        run: the run's folder.
        data: the collection, in one line.
        epochs: how many were trained, and the best.
        cpu_seconds: processor time of training, all attempts together.
        changed: dotted recipe keys that the person who ran it set.
        fine_tuned_from: the encoder that the person gave it to go on from, with its fingerprint.
    """

    study: str
    row: str
    seed: int
    setting: SettingName
    measurements: tuple[Measurement, ...]
    key: str
    run: str
    data: str
    epochs: tuple[int, int]
    cpu_seconds: float
    changed: tuple[str, ...] = ()
    fine_tuned_from: str = ""

    @property
    def dataset(self) -> str:
        """The name of the collection that was measured on."""
        return self.measurements[0].on.dataset

    def measured(self, positives: str = "own") -> Measurement | None:
        """The measurement by one kind of judgements."""
        return next((one for one in self.measurements if one.on.positives == positives), None)

    def kept(self, positives: str = "own") -> Path | None:
        """The folder of what is too large for an entry; None where nothing is kept."""
        measured = self.measured(positives)
        return None if measured is None or not measured.kept else Path(self.run) / measured.kept

    @classmethod
    def kept_at(cls, path: Path, state: str) -> Entry | None:
        """Return the entry in a file where it is there, whole and of that state."""
        try:
            return cls.open(path, of=state) if path.is_file() else None
        except StorageError:
            return None


@dataclass(frozen=True)
class Results(Artifact, kind="study-results", recreate="diptych study run"):
    """All entries of one study.

    Attributes:
        study: its name.
        entries: in the study's order, seeds rising.
        left_out: row → why it was not run.
        several: whether they may be of several collections.
    """

    study: str
    entries: tuple[Entry, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    several: bool = False

    def __post_init__(self) -> None:
        for dataset in self.datasets if self.several else [None]:
            kinds = {
                (entry.setting, entry.data)
                for entry in self.entries
                if dataset is None or entry.dataset == dataset
            }
            if len(kinds) > 1:
                first, second = sorted(kinds)[:2]
                raise UsageError(
                    f"runs of {self.study} differ: {first[0]} on {first[1]!r} and {second[0]} on {second[1]!r}",
                    "give runs of one setting and one collection",
                )

    @property
    def datasets(self) -> list[str]:
        """The collections that were measured on, in the order of first appearance."""
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    def on(self, dataset: str) -> Results:
        """What was measured on one collection."""
        entries = tuple(entry for entry in self.entries if entry.dataset == dataset)
        return Results(self.study, entries, self.left_out)

    @property
    def setting(self) -> SettingName | None:
        """How all were trained; None of nothing."""
        return self.entries[0].setting if self.entries else None

    @property
    def seeds(self) -> list[int]:
        """All seeds."""
        return sorted({entry.seed for entry in self.entries})

    def of(self, row: str) -> list[Entry]:
        """The entries of one row, seeds rising."""
        return sorted((entry for entry in self.entries if entry.row == row), key=lambda entry: entry.seed)

    def values(self, row: str, column: str, positives: str = "own") -> list[float]:
        """One value per seed; empty where there is none."""
        found = [entry.measured(positives) for entry in self.of(row)]
        return [one.values[column] for one in found if one is not None and column in one.values]

    def evidence(self, positives: str = "own") -> Evidence:
        """What claims are judged on; over several collections, theirs side by side."""
        if self.several:
            each = {name: self.on(name).evidence(positives) for name in self.datasets}
            tasks: dict[str, dict[str, str]] = {name: {} for name in each}
            for entry in self.entries:
                tasks[entry.dataset][entry.row] = entry.measurements[0].on.task
            return replace(side_by_side(each, self._centric), tasks=tasks)
        figures: dict[str, dict[str, Figure]] = {}
        trajectories: dict[str, Sequence[Trajectory]] = {}
        kept: dict[str, Sequence[Path]] = {}
        for row in dict.fromkeys(entry.row for entry in self.entries):
            entries = self.of(row)
            measured = [one for entry in entries if (one := entry.measured(positives)) is not None]
            columns = dict.fromkeys(column for one in measured for column in one.values)
            figures[row] = {column: Figure.of(self.values(row, column, positives)) for column in columns}
            trajectories[row] = [one.trajectory for one in measured if one.trajectory is not None]
            folders = [entry.kept(positives) for entry in entries]
            kept[row] = [folder for folder in folders if folder is not None]
        return Evidence(figures, trajectories, kept)

    @property
    def _centric(self) -> dict[str, str]:
        return {entry.dataset: entry.measurements[0].on.centric for entry in self.entries}


def entry_file(run: Path, study: str, dataset: str | None = None) -> Path:
    """Where a run keeps what it gave to a study; of several collections, what it gave on ``dataset``."""
    return run / "studies" / f"{study}{'' if dataset is None else f'@{safe_name(dataset)}'}.json"


_KEPT = "per_query.npz"


@dataclass(frozen=True, eq=False)
class Kept(Artifact, kind="study-queries", recreate="diptych study run: it measures what is missing"):
    """What a measurement keeps beside its figures, for tests that pair queries, and for reports.

    Attributes:
        values: column → (n,) one value per query.
        cluster: (n,) the number of each query's cluster: captions of one picture are asked together.
        examples: what a report shows of single queries.
    """

    values: dict[str, np.ndarray]
    cluster: np.ndarray
    examples: list[dict[str, Any]] = field(default_factory=list)


def keep(
    folder: Path,
    values: Mapping[str, np.ndarray],
    cluster: np.ndarray,
    shown: list[dict[str, Any]] | None = None,
) -> None:
    """Write what a measurement keeps."""
    Kept(dict(values), cluster, shown or []).save(folder / _KEPT)


def is_kept(folder: Path) -> bool:
    """Return whether a measurement's values are there."""
    return (folder / _KEPT).is_file()


def per_query(folder: Path, column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (n,) values of a column and (n,) clusters; None where the column is not kept."""
    kept = Kept.open(folder / _KEPT)
    return (kept.values[column], kept.cluster) if column in kept.values else None


def per_query_of(evidence: Evidence, row: str, column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return values per query and clusters of a row's first seed; None where there are none."""
    folders = evidence.kept.get(row, ())
    return per_query(folders[0], column) if folders else None


def examples(evidence: Evidence, row: str) -> list[dict[str, Any]]:
    """Return what a row's first seed shows of single queries."""
    folders = evidence.kept.get(row, ())
    return Kept.open(folders[0] / _KEPT).examples if folders and is_kept(folders[0]) else []


@dataclass(frozen=True)
class StudyFolder(Artifact, kind="study", recreate="diptych study run"):
    """What marks a study's folder: the study, its setting and the command that began it."""

    study: str
    setting: SettingName
    command: str = ""


STUDY = StudyFolder.marker()


def claim_folder(folder: Path, study: Study, setting: SettingName, command: str) -> None:
    """Write study.json, or see that the one there is of the same study and setting."""
    file = folder / STUDY
    if file.is_file():
        there = StudyFolder.open(file)
        for key, have, value in (("study", there.study, study.name), ("setting", there.setting, setting)):
            if have != value:
                stay = f", or stay with --setting {have}" if key == "setting" else ""
                raise UsageError(
                    f"{folder} holds {key} {have!r}, not {value!r}", f"choose another folder with --out{stay}"
                )
    StudyFolder(study.name, setting, command).save(file)


def entries_of(study: Study, folder: Path) -> Iterator[Entry]:
    """All that a study has measured of the runs of its folder, whichever call trained them."""
    for row in study.rows:
        for run in sorted(run_folder(study, row, 0, folder).parent.glob("seed-*")):
            if study.several:
                for file in sorted((run / "studies").glob(f"{glob.escape(study.name)}@*.json")):
                    yield _entry(file, run)
                continue
            file = entry_file(run, study.name)
            if file.is_file():
                yield _entry(file, run)


def _entry(file: Path, run: Path) -> Entry:
    """An entry, which says where its run is today."""
    return replace(Entry.open(file), run=str(run))


def collect(folders: Sequence[Path]) -> list[Results]:
    """The results of study folders, and of single runs, one per study."""
    found: dict[str, dict[tuple[str, int, str], Entry]] = {}
    left_out: dict[str, dict[str, str]] = {}
    for folder in folders:
        if (folder / STUDY).is_file():
            study = STUDIES.get(StudyFolder.open(folder / STUDY).study)
            entries = list(entries_of(study, folder))
            if (folder / "results.json").is_file():
                given = Results.open(folder / "results.json").left_out
                left_out.setdefault(study.name, {}).update(given)
        else:
            entries = [_entry(file, folder) for file in sorted((folder / "studies").glob("*.json"))]
        if not entries:
            raise UsageError(
                f"{folder} holds nothing that a study has measured",
                "give folders that diptych study run has written, or runs inside them",
            )
        for entry in entries:
            found.setdefault(entry.study, {})[entry.row, entry.seed, entry.dataset] = entry
    return [
        Results(name, tuple(entries.values()), left_out.get(name, {}), _is_several(name))
        for name, entries in found.items()
    ]


def _is_several(study: str) -> bool:
    """Whether a study is of several collections; a run may be of one that this version does not have."""
    return study in STUDIES.names() and STUDIES.get(study).several
