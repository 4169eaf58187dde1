"""Results of a study's rows: one entry per row and seed, kept with each run and in ``results.json``.

A study of several collections has one per row, seed and collection.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from diptych.core.artifact import Artifact
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.studies import study as declared
from diptych.studies.evidence import Evidence, Figure, Trajectory, side_by_side
from diptych.studies.published import Measured as Measured
from diptych.studies.study import SettingName, Study

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.studies.sources import Subject


@dataclass(frozen=True)
class Measurement:
    """Values of one run on one ground truth."""

    # Column → value, in the paper's unit; under COLUMN|published counted as the paper counts, where that differs.
    values: Mapping[str, float]
    on: Measured
    protocol: str  # everything that the values depend on, in one line
    commands: tuple[str, ...] = ()  # repeat the measurement by hand; {run} is the run's folder
    trajectory: Trajectory | None = None  # how the training went
    kept: str = ""  # a folder inside the run's with values per query; empty for none


@dataclass(frozen=True)
class Measuring:
    """A way of measuring a study's columns; fields are its options."""

    @property
    def about(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, **asdict(self)}

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        """Refuse what a user set about measuring, before anything is made."""

    def withhold(self, results: Results) -> Results:
        """Return results as they may be printed: counts of few people may not be."""
        return results

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one run: on its collection's own pairs first, then by further judgements; nothing where it cannot."""
        raise NotImplementedError


MEASURES = {  # by the names that studies have in papers' files
    "retrieval": "diptych.studies.retrieval:Retrieval",
    "counting": "diptych.studies.retrieval:Counting",
    "shortcuts": "diptych.studies.retrieval:ShortcutRetrieval",
    "information": "diptych.studies.retrieval:Information",
    "zero-shot": "diptych.studies.retrieval:ZeroShot",
    "sparse": "diptych.studies.sparse:SparseRetrieval",
    "searching": "diptych.studies.searched:Searching",
    "granularity": "diptych.studies.brittleness:Granularity",
    "clean": "diptych.studies.brittleness:Clean",
    "suite": "diptych.studies.brittleness:Suite",
    "counted": "diptych.studies.log_measures:Counted",
    "predicted": "diptych.studies.log_measures:Predicted",
    "importance": "diptych.studies.log_measures:Importance",
    "declared": "diptych.studies.log_measures:Declared",
    "catalogue": "diptych.studies.catalogues:OfCatalogue",
}


def measure_of(study: Study) -> Measuring:
    options = {key: value for key, value in study.measure.items() if key != "kind"}
    found: Measuring = resolve_name(MEASURES[study.measure["kind"]])(**options)
    return found


@dataclass(frozen=True)
class Entry(Artifact, kind="study-entry", recreate="diptych study run"):
    """One row and seed that was made and measured."""

    study: str
    row: str
    seed: int
    setting: SettingName
    measurements: tuple[Measurement, ...]  # on the collection's own pairs first
    key: str  # fingerprint of the run's state and of how it was measured
    run: str  # the run's folder
    data: str  # the collection, in one line
    epochs: tuple[int, int]  # trained, and the best
    cpu_seconds: float  # of training, all attempts together
    changed: tuple[str, ...] = ()  # keys by which it differs from what paper and code say
    given: str = ""  # the encoder that the user gave, to measure or to start from, with its fingerprint
    stands_for: str = ""  # of a published encoder's row, what was measured in its place
    fixed: bool = False  # no seed changes it

    @property
    def dataset(self) -> str:
        return self.measurements[0].on.dataset


@dataclass(frozen=True)
class Results(Artifact, kind="study-results", recreate="diptych study run"):
    """All entries of one study."""

    study: str
    entries: tuple[Entry, ...]  # in the study's order, seeds rising
    left_out: dict[str, str] = field(default_factory=dict)  # row → why it was not run
    several: bool = False  # they may be of several collections

    def __post_init__(self) -> None:
        kinds: dict[str, str] = {}  # of each collection
        for entry in self.entries:
            one = f"{entry.setting} on {entry.data!r}"
            if (other := kinds.setdefault(entry.dataset if self.several else "", one)) != one:
                raise UsageError(
                    f"runs of {self.study} differ: {' and '.join(sorted((one, other)))}",
                    "give runs of one setting and one collection",
                )

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    @property
    def setting(self) -> SettingName | None:
        return self.entries[0].setting if self.entries else None

    @property
    def stand_ins(self) -> dict[str, str]:
        return {entry.row: entry.stands_for for entry in self.entries if entry.stands_for}

    def on(self, dataset: str) -> Results:
        entries = tuple(entry for entry in self.entries if entry.dataset == dataset)
        return Results(self.study, entries, self.left_out)

    def of(self, row: str) -> list[Entry]:
        return sorted((entry for entry in self.entries if entry.row == row), key=lambda entry: entry.seed)

    def measured(self, row: str, positives: str = "own") -> list[tuple[Entry, Measurement]]:
        each = ((entry, one) for entry in self.of(row) for one in entry.measurements)
        return [(entry, one) for entry, one in each if one.on.positives == positives]

    def values(self, row: str, column: str, positives: str = "own") -> list[float]:
        return [one.values[column] for _, one in self.measured(row, positives) if column in one.values]

    def evidence(self, positives: str = "own") -> Evidence:
        fixed = frozenset(entry.row for entry in self.entries if entry.fixed)
        if self.several:
            each = {name: self.on(name).evidence(positives) for name in self.datasets}
            ons = {(entry.dataset, entry.row): entry.measurements[0].on for entry in self.entries}
            centric = {name: on.centric for (name, _), on in ons.items()}
            tasks = {name: {row: ons[name, row].task for row in each[name].figures} for name in each}
            return replace(side_by_side(each, centric), tasks=tasks, fixed=fixed)
        found = {row: self.measured(row, positives) for row in dict.fromkeys(one.row for one in self.entries)}
        figures, trajectories, kept = {}, {}, {}
        for row, each_seed in found.items():
            columns = dict.fromkeys(column for _, one in each_seed for column in one.values)
            figures[row] = {column: Figure.of(self.values(row, column, positives)) for column in columns}
            trajectories[row] = [one.trajectory for _, one in each_seed if one.trajectory is not None]
            kept[row] = [Path(entry.run) / one.kept for entry, one in each_seed if one.kept]
        return Evidence(figures, trajectories, kept, fixed=fixed)


@dataclass(frozen=True)
class StudyFolder(Artifact, kind="study", recreate="diptych study run"):
    """The file that marks a study's folder: the study, its setting and the command that began it."""

    study: str
    setting: SettingName
    command: str = ""


def entry_file(run: Path, study: str, dataset: str | None = None) -> Path:
    """Return where a run keeps what it gave to a study; of several collections, what it gave on ``dataset``."""
    return run / "studies" / f"{study}{'' if dataset is None else f'@{safe_name(dataset)}'}.json"


def mark_folder(folder: Path, study: Study, setting: SettingName, command: str) -> None:
    """Write study.json, or see that the one there is of the same study and setting."""
    file, fix = folder / StudyFolder.marker(), "choose another folder with --out"
    if file.is_file():
        there = StudyFolder.open(file)
        if there.study != study.name:
            raise UsageError(f"{folder} holds study {there.study!r}, not {study.name!r}", fix)
        if there.setting != setting:
            fix += f", or stay with --setting {there.setting}"
            raise UsageError(f"{folder} holds setting {there.setting!r}, not {setting!r}", fix)
    StudyFolder(study.name, setting, command).save(file)


def entries_in(study: Study, folder: Path) -> Iterator[Entry]:
    """Yield all that a study of that folder has measured, whichever call made the runs."""
    name = f"{glob.escape(study.name)}{'@*' if study.several else ''}.json"
    for row in study.rows:
        yield from _entries(study.row_folder(row, folder), f"seed-*/studies/{name}")


def _entries(folder: Path, pattern: str) -> Iterator[Entry]:
    for file in sorted(folder.glob(pattern)):
        yield replace(Entry.open(file), run=str(file.parents[1]))  # where it is today


def collect(folders: Sequence[Path]) -> list[Results]:
    found: dict[str, dict[tuple[str, int, str], Entry]] = {}
    left_out: dict[str, dict[str, str]] = {}
    for folder in folders:
        if (folder / StudyFolder.marker()).is_file():
            study = declared.STUDIES.get(StudyFolder.open(folder / StudyFolder.marker()).study)
            entries = list(entries_in(study, folder))
            if (folder / "results.json").is_file():
                given = Results.open(folder / "results.json").left_out
                left_out.setdefault(study.name, {}).update(given)
        else:
            entries = list(_entries(folder, "studies/*.json"))
        if not entries:
            raise UsageError(
                f"{folder} holds nothing that a study has measured",
                "give folders that diptych study run has written, or runs inside them",
            )
        for entry in entries:
            found.setdefault(entry.study, {})[entry.row, entry.seed, entry.dataset] = entry
    # A run may be of a study that this version does not have.
    several = {study.name for study in declared.STUDIES if study.several}
    return [
        Results(name, tuple(of_study.values()), left_out.get(name, {}), name in several)
        for name, of_study in found.items()
    ]
