"""Running a study of a shop's log: nothing is trained but what predicts, and rows are measured one by one.

::

    OUT/                   as of any study (see :mod:`diptych.studies.runner`)
      rows/ROW/seed-0/     studies/STUDY.json is what the row gave
    OUT/../PAPER.logs/     what is made of logs, shared by the paper's studies
                           (see :mod:`diptych.studies.log_workshop`)

What is there is not made again. A row of which the log has nothing is left out, and the table says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.context import track
from diptych.core.errors import DataError, Interrupted, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.studies.collect import claim_folder, entries_of
from diptych.studies.log_opening import open_log
from diptych.studies.log_options import LogOptions
from diptych.studies.log_row import DeclaredRow, LogRow
from diptych.studies.log_workshop import Workshop
from diptych.studies.measurement import Subject
from diptych.studies.results import Entry, Results, entry_file
from diptych.studies.rows import DEFAULT, Choices, run_folder, setting_for
from diptych.studies.study import Row, SettingName, Study
from diptych.studies.trained import cost_of, cpu_seconds
from diptych.studies.ways import MEASURE, measuring_of

_NOT_STATE = ("jobs",)
_NOTHING = "the log has nothing of it, or too little"


@dataclass(frozen=True)
class _Bench:
    """What rows are measured on.

    Attributes:
        study, folder, setting: as they are run.
        changed: keys that a person set.
        workshop: of the log; None where the study needs none.
    """

    study: Study
    folder: Path
    setting: SettingName
    changed: tuple[str, ...]
    workshop: Workshop | None

    @property
    def data(self) -> str:
        """What is measured, in one line."""
        return "what is declared" if self.workshop is None else self.workshop.log.describe()

    @property
    def key(self) -> str:
        """Of the log and of how it is measured."""
        state: list[Any] = [self.study.measure.about]
        if self.workshop is not None:
            chosen = tuple(key for key in self.study.measured_by if key not in _NOT_STATE)
            state += [self.workshop.log.fingerprint, self.workshop.options.only(chosen)]
        return fingerprint(*state)

    def subject(self, row: Row, target: Path) -> Subject:
        """A row, to be measured."""
        run = DeclaredRow(row) if self.workshop is None else LogRow(row, target, self.workshop)
        return Subject(run, None, None)


def run_log_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: list[str] | None = None,
    command: str = "",
    should_stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda line: None,
) -> Results:
    """Measure a study's rows on a log; what is there already is used."""
    folder = Path(folder)
    _refuse(study, choices)
    asked = study.resolve(rows)
    bench = _bench(study, folder, choices, should_stop, tell)
    claim_folder(folder, study, bench.setting, command)
    left_out = {}
    for row in track(asked, f"{study.name}: measuring", unit="rows"):
        if not _measured(row, bench):
            left_out[row.name] = _NOTHING
        if should_stop():
            raise Interrupted(
                f"stopped after {row.name} of {study.name}; nothing is lost", "the same command goes on"
            )
    _forget_others(bench)
    results = Results(study.name, tuple(entries_of(study, folder)), left_out)
    if not results.entries:
        raise DataError(
            f"{bench.data}: nothing of {study.name} can be measured ({study.asks})",
            "diptych intent describe LOG shows what a log has",
        )
    results.save(folder / "results.json")
    return results


def _refuse(study: Study, choices: Choices) -> None:
    """See that nothing is chosen that has no meaning for a log."""
    for flag, value in (
        ("--targets", choices.targets),
        ("--regions", choices.regions),
        ("--positives", choices.positives),
    ):
        if value is not None:
            raise UsageError(f"{flag} {value}: {study.name} is of a shop's log", f"leave {flag} out")
    for key in choices.values:
        if key.partition(".")[0] != MEASURE:
            known = ", ".join(f"{MEASURE}.{one}" for one in study.measured_by) or "nothing"
            raise UsageError(
                f"{key} is about a training, and {study.name} is of a shop's log", f"what can be set: {known}"
            )


def _bench(
    study: Study,
    folder: Path,
    choices: Choices,
    should_stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> _Bench:
    """Setting, log and options: a log is recognised as the paper's by its name, which an import may have to tell."""
    given = measuring_of(choices.values, study.measured_by)
    changed = tuple(sorted(choices.values))
    if study.without_data:
        return _Bench(study, folder, "paper", changed, None)
    asked = choices.setting or ("quick" if choices.log is None else None)
    scenes = None if asked is None else study.settings[setting_for(study, None, asked)].log
    if choices.log is None and scenes is None:
        raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
    kept, log = open_log(folder.resolve().parent / f"{study.paper.key}.logs", choices.log, scenes, tell)
    setting = setting_for(study, log.name, asked)
    options = LogOptions.of({**study.settings[setting].measure, **given})
    return _Bench(study, folder, setting, changed, Workshop(kept, log, options, should_stop, tell))


def _measured(row: Row, bench: _Bench) -> bool:
    """Whether a row is measured, now or before."""
    study = bench.study
    target = run_folder(study, row, 0, bench.folder)
    file = entry_file(target, study.name)
    if file.is_file():
        there = Entry.open(file)
        if there.key == bench.key and _is_whole(there, target):
            return True
    with cost_of(target):
        measurements = study.measure(bench.subject(row, target))
    if not measurements:
        file.unlink(missing_ok=True)  # of an earlier call, on another log
        return False
    Entry(
        study=study.name,
        row=row.name,
        seed=0,
        setting=bench.setting,
        measurements=measurements,
        key=bench.key,
        run=str(target),
        data=bench.data,
        epochs=(0, 0),
        cpu_seconds=cpu_seconds(target),
        changed=bench.changed,
    ).save(file)
    return True


def _forget_others(bench: _Bench) -> None:
    """Let go of rows of earlier calls that are of another log, or were measured otherwise: no table can hold both."""
    for entry in list(entries_of(bench.study, bench.folder)):
        if entry.key != bench.key:
            entry_file(Path(entry.run), bench.study.name).unlink(missing_ok=True)


def _is_whole(entry: Entry, target: Path) -> bool:
    """Whether what an entry was measured from is still there."""
    return all(not one.kept or (target / one.kept).is_dir() for one in entry.measurements)
