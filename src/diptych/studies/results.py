"""What a study's rows gave: one entry per row and seed, kept beside each run and in ``results.json``.

A study of several collections has one per row, seed and collection.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import safe_name
from diptych.studies import study as declared
from diptych.studies.evidence import Evidence, Figure, Trajectory, side_by_side
from diptych.studies.study import SettingName, Study
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.studies.sources import Subject


@dataclass(frozen=True)
class Measurement:
    """What one run gives on one ground truth.

    Attributes:
        values: column → value, in the paper's unit. Where the paper's own way of counting differs from
            the right one, the number to hold against its cell stands under ``COLUMN|published``.
        on: what they were measured on.
        protocol: everything they depend on, in one line.
        commands: what repeats the measurement by hand; ``{run}`` stands for the run's folder.
        trajectory: how the training went, for studies that look at it.
        kept: a folder inside the run's with values per query, see :mod:`diptych.studies.evidence`; empty for none.
    """

    values: Mapping[str, float]
    on: Measured
    protocol: str
    commands: tuple[str, ...] = ()
    trajectory: Trajectory | None = None
    kept: str = ""


@dataclass(frozen=True)
class Measuring:
    """How a study's columns are measured; fields are its options."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run; JSON-able."""
        return {"kind": type(self).__name__, **asdict(self)}

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        """Refuse what a user set about measuring, before anything is made."""

    def withhold(self, results: Results) -> Results:
        """Return results as they may be printed: of people's counts not all may be."""
        return results

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one run: on its collection's own pairs first, then by further judgements; nothing where it cannot."""
        raise NotImplementedError


@dataclass(frozen=True)
class Entry(Artifact, kind="study-entry", recreate="diptych study run"):
    """One row and seed that was made and measured.

    Attributes:
        study, row, seed: which.
        setting: how it was made.
        measurements: what it gave; on the collection's own pairs first.
        key: fingerprint of the run's state and of how it was measured.
        run: the run's folder.
        data: the collection, in one line.
        epochs: how many were trained, and the best.
        cpu_seconds: processor time of training, all attempts together.
        changed: dotted keys by which it differs from what paper and code say.
        given: the encoder that a user gave, to measure or to go on from, with its fingerprint.
        stands_for: of a row that is a published encoder by name, what was measured in its place; empty else.
        fixed: whether no seed changes it.
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
    given: str = ""
    stands_for: str = ""
    fixed: bool = False

    @property
    def dataset(self) -> str:
        """The name of the collection that was measured on."""
        return self.measurements[0].on.dataset

    def measured(self, positives: str = "own") -> Measurement | None:
        """Return the measurement by one kind of judgements."""
        return next((one for one in self.measurements if one.on.positives == positives), None)

    def kept(self, positives: str = "own") -> Path | None:
        """Return the folder of values per query; None where nothing is kept."""
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
            of = [one for one in self.entries if dataset in (None, one.dataset)]
            kinds = sorted({(one.setting, one.data) for one in of})
            if len(kinds) > 1:
                first, second = kinds[:2]
                raise UsageError(
                    f"runs of {self.study} differ: {first[0]} on {first[1]!r} and {second[0]} on {second[1]!r}",
                    "give runs of one setting and one collection",
                )

    @property
    def datasets(self) -> list[str]:
        """The collections that were measured on, in the order of first appearance."""
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    @property
    def setting(self) -> SettingName | None:
        """How all were made; None of nothing."""
        return self.entries[0].setting if self.entries else None

    @property
    def stand_ins(self) -> dict[str, str]:
        """Rows that are not the models whose names they have: what each is."""
        return {entry.row: entry.stands_for for entry in self.entries if entry.stands_for}

    def on(self, dataset: str) -> Results:
        """Return what was measured on one collection."""
        entries = tuple(entry for entry in self.entries if entry.dataset == dataset)
        return Results(self.study, entries, self.left_out)

    def of(self, row: str) -> list[Entry]:
        """Return the entries of one row, seeds rising."""
        return sorted((entry for entry in self.entries if entry.row == row), key=lambda entry: entry.seed)

    def values(self, row: str, column: str, positives: str = "own") -> list[float]:
        """Return one value per seed; empty where there is none."""
        found = [entry.measured(positives) for entry in self.of(row)]
        return [one.values[column] for one in found if one is not None and column in one.values]

    def evidence(self, positives: str = "own") -> Evidence:
        """Return what claims are judged on; over several collections, theirs side by side."""
        fixed = frozenset(entry.row for entry in self.entries if entry.fixed)
        if self.several:
            each = {name: self.on(name).evidence(positives) for name in self.datasets}
            tasks: dict[str, dict[str, str]] = {name: {} for name in each}
            for entry in self.entries:
                tasks[entry.dataset][entry.row] = entry.measurements[0].on.task
            centric = {entry.dataset: entry.measurements[0].on.centric for entry in self.entries}
            return replace(side_by_side(each, centric), tasks=tasks, fixed=fixed)
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
        return Evidence(figures, trajectories, kept, fixed=fixed)


@dataclass(frozen=True)
class StudyFolder(Artifact, kind="study", recreate="diptych study run"):
    """What marks a study's folder: the study, its setting and the command that began it."""

    study: str
    setting: SettingName
    command: str = ""


def entry_file(run: Path, study: str, dataset: str | None = None) -> Path:
    """Return where a run keeps what it gave to a study; of several collections, what it gave on ``dataset``."""
    return run / "studies" / f"{study}{'' if dataset is None else f'@{safe_name(dataset)}'}.json"


def claim_folder(folder: Path, study: Study, setting: SettingName, command: str) -> None:
    """Write study.json, or see that the one there is of the same study and setting."""
    file = folder / StudyFolder.marker()
    if file.is_file():
        there = StudyFolder.open(file)
        for key, have, value in (("study", there.study, study.name), ("setting", there.setting, setting)):
            if have != value:
                stay = f", or stay with --setting {have}" if key == "setting" else ""
                raise UsageError(
                    f"{folder} holds {key} {have!r}, not {value!r}", f"choose another folder with --out{stay}"
                )
    StudyFolder(study.name, setting, command).save(file)


def entries_in(study: Study, runs: Sequence[Path]) -> Iterator[Entry]:
    """Yield all that a study has measured of the runs in some rows' folders, whichever call made them."""
    for row in runs:
        for run in sorted(row.glob("seed-*")):
            pattern = f"{glob.escape(study.name)}{'@*' if study.several else ''}.json"
            for file in sorted((run / "studies").glob(pattern)):
                yield _entry(file, run)


def _entry(file: Path, run: Path) -> Entry:
    """Return an entry, which says where its run is today."""
    return replace(Entry.open(file), run=str(run))


def collect(folders: Sequence[Path]) -> list[Results]:
    """Return the results of study folders, and of single runs, one per study."""
    from diptych.studies.plan import rows_in

    found: dict[str, dict[tuple[str, int, str], Entry]] = {}
    left_out: dict[str, dict[str, str]] = {}
    for folder in folders:
        if (folder / StudyFolder.marker()).is_file():
            study = declared.STUDIES.get(StudyFolder.open(folder / StudyFolder.marker()).study)
            entries = list(entries_in(study, rows_in(study, folder)))
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
    # A run may be of a study that this version does not have.
    known = {one.name: one.several for one in declared.STUDIES}
    return [
        Results(name, tuple(entries.values()), left_out.get(name, {}), known.get(name, False))
        for name, entries in found.items()
    ]
