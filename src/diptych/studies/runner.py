"""Run a study: its rows and seeds are units, each made (trained, opened, or nothing), then measured.

::

    OUT/
      study.json           which study and setting, and the command
      rows/ROW/seed-N/     a run folder, or a head's; its studies/STUDY.json is what it gave to each study,
                           studies/STUDY@NAME.json on one of several collections
      results.json         all of it for this study
      report.html          published and measured side by side

What is made and measured is kept with its state: a unit of the same state is not measured again. An interrupted
training resumes; one of another recipe or other data, or that another process trains, is an error.
Rows of a log and of a catalogue come from :mod:`diptych.studies.logs` and :mod:`diptych.studies.catalogues`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from diptych.core.context import check_stop, stopping, task
from diptych.core.errors import DataError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.studies.making import (
    Collections,
    Machine,
    Made,
    Unit,
    Wanted,
    check,
    collection_key,
    cost_of,
    cpu_seconds,
    logger,
    make,
)
from diptych.studies.results import Entry, Results, claim_folder, entries_of, entry_file, is_kept
from diptych.studies.rows import (
    BASE_SEED,
    DEFAULT,
    MEASURE,
    Choices,
    base_of,
    measuring_of,
    rows_of,
    run_folder,
    setting_for,
    usable_rows,
    way_of,
    why_left_out,
)
from diptych.studies.study import Row, SettingName, Study

if TYPE_CHECKING:
    from diptych.data.collection import Collection


class RowSource(Protocol):
    """Where a study's rows come from."""

    setting: SettingName
    left_out: dict[str, str]
    nothing: str
    """Why a row without any measurement is left out; empty where that is not said."""

    def units(self) -> list[Unit]:
        """Return rows and seeds in order, after seeing that they can be made; nothing is made yet."""

    def made(self, unit: Unit) -> Iterator[Made]:
        """Make a unit and yield what is to be measured of it."""

    def hint(self) -> tuple[str, str]:
        """Return what was measured, in one line, and what to do where it gave nothing at all."""


def run_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: list[str] | None = None,
    seeds: Sequence[int] | None = None,
    features_root: Path | None = None,
    accelerator: str = "auto",
    command: str = "",
) -> Results:
    """Make and measure a study's rows; what is there already is used.

    Args:
        study: what is run.
        folder: OUT, see above.
        choices: setting, data and values.
        rows: names or the paper's numbers; the setting's own, else all, when not given.
        seeds: the setting's own when not given.
        features_root: where cached features live, shared by all rows; the cache folder when not given.
        accelerator: as for training.
        command: what a person types to have the same; kept for reports.

    Returns:
        Everything measured for this study in ``folder``, of earlier calls too.

    Raises:
        Interrupted: a stop was asked for; the same call resumes.
        UsageError: the folder holds another study, or runs of other recipes; no row can be run.
    """
    folder = Path(folder)
    machine = Machine(features_root or cache_root() / "features", accelerator)
    source = _source(study, folder, choices, rows, seeds, machine)
    units = source.units()
    claim_folder(folder, study, source.setting, command)
    states: set[str] = set()
    measured: dict[str, bool] = {}
    for unit in units:
        with task(f"{unit.place}: {unit.row.name}", 1, "rows") as bar:
            for made in source.made(unit):
                state = fingerprint(study.measure.about, *made.state)
                states.add(state)
                there = unit.shown and _measured(study, unit, made, state, source, folder)
                measured[unit.row.name] = there or measured.get(unit.row.name, False)
                if stopping():
                    break
            bar.advance(1)
        check_stop(f"stopped after {unit.place} of {study.name}; nothing is lost")
    if source.nothing:
        source.left_out |= {row: source.nothing for row, there in measured.items() if not there}
        _remove_others(study, folder, states)
    results = Results(study.name, tuple(entries_of(study, folder)), source.left_out, study.several)
    if source.nothing and not results.entries:
        data, fix = source.hint()
        raise DataError(f"{data}: nothing of {study.name} can be measured ({study.asks})", fix)
    results.save(folder / "results.json")
    return results


def _source(
    study: Study,
    folder: Path,
    choices: Choices,
    rows: list[str] | None,
    seeds: Sequence[int] | None,
    machine: Machine,
) -> RowSource:
    if study.of_logs or study.of_catalogues:
        kind = "log" if study.of_logs else "catalogue"
        for flag in ("targets", "regions", "positives"):
            if (value := getattr(choices, flag)) is not None:
                raise UsageError(
                    f"--{flag} {value}: {study.name} is of a shop's {kind}", f"leave --{flag} out"
                )
    if study.of_logs:
        from diptych.studies.logs import LogRows

        return LogRows.of(study, folder, choices, rows)
    if study.of_catalogues:
        from diptych.studies.catalogues import CatalogueRows

        return CatalogueRows.of(study, folder, choices, rows, seeds, machine)
    return _TrainedRows.of(study, folder, choices, rows, seeds, machine)


def _measured(study: Study, unit: Unit, made: Made, state: str, source: RowSource, folder: Path) -> bool:
    """Return whether a unit has numbers, of this state already or measured now."""
    target = run_folder(study, unit.row, unit.seed, folder)
    file = entry_file(target, study.name, made.dataset)
    there = None if made.again else Entry.kept_at(file, state)
    if there is not None and _is_whole(there, target, study):
        return True
    what = f"{unit.place}: {unit.row.label}"
    if not source.nothing:
        logger.info(f"{what}: measuring{f' on {made.dataset}' if made.dataset else ''}")
    with cost_of(target) if made.costs else nullcontext():
        measurements = study.measure(made.subject)
    if not measurements:
        if not source.nothing:
            logger.info(f"{what}: cannot be measured on {made.dataset}")
        file.unlink(missing_ok=True)  # of an earlier call, on other data
        return False
    Entry(
        study=study.name,
        row=unit.row.name,
        seed=unit.seed,
        setting=source.setting,
        measurements=measurements,
        key=state,
        run=str(target),
        data=made.data,
        epochs=made.epochs,
        cpu_seconds=cpu_seconds(target) if made.seconds is None else made.seconds,
        changed=made.changed,
        fine_tuned_from=made.given,
    ).save(file, of=state)
    return True


def _is_whole(entry: Entry, target: Path, study: Study) -> bool:
    """Return whether all that an entry keeps is still there."""
    from diptych.evaluation import Result

    kept = [target / one.kept for one in entry.measurements if one.kept]
    if study.of_logs or study.of_catalogues:
        return all(folder.is_dir() for folder in kept)
    # Of an encoder as it is the whole evaluation is kept.
    return all(is_kept(folder) or (folder / Result.marker()).is_file() for folder in kept)


def _remove_others(study: Study, folder: Path, states: set[str]) -> None:
    """Remove rows of earlier calls that are of other data, or were measured otherwise: no table can hold both."""
    for entry in list(entries_of(study, folder)):
        if entry.key not in states:
            entry_file(Path(entry.run), study.name).unlink(missing_ok=True)


@dataclass
class _TrainedRows:
    """Rows that are trained, or given, on collections of pictures and captions."""

    study: Study
    folder: Path
    choices: Choices
    setting: SettingName
    collections: Collections
    machine: Machine
    left_out: dict[str, str]
    plan: list[Unit]
    nothing: str = ""

    @classmethod
    def of(
        cls,
        study: Study,
        folder: Path,
        choices: Choices,
        rows: list[str] | None,
        seeds: Sequence[int] | None,
        machine: Machine,
    ) -> _TrainedRows:
        choices, setting, named = chosen_for(study, choices)
        asked = rows_of(study, setting, rows)
        left_out = {row.name: why for row in asked if (why := why_left_out(study, row, setting, choices))}
        usable = usable_rows(study, asked, left_out)
        seeds = study.settings[setting].seeds if seeds is None else seeds
        plan = plan_of(study, usable, seeds, setting, choices)
        if study.check_measuring is not None:
            study.check_measuring(measuring_of(choices.values, study.measured_by), named)
        return cls(study, folder, choices, setting, Collections(choices, named), machine, left_out, plan)

    def units(self) -> list[Unit]:
        for unit in self.plan:
            check(self._wanted(unit))
        return self.plan

    def _wanted(self, unit: Unit) -> Wanted:
        what = f"{unit.place}: {unit.row.label}"
        return Wanted(self.study, unit.row, unit.seed, self.setting, self.choices, self.folder, what)

    def made(self, unit: Unit) -> Iterator[Made]:
        made = make(self._wanted(unit), self.collections, self.machine)
        state = (*made.state, self.choices.positives)
        if not self.study.several:
            yield self._described(made, made.subject.collection, state, None)
            return
        measuring = measuring_of(self.choices.values, self.study.measured_by)
        for name, collection in self.collections.several.items():
            subject = replace(made.subject, collection=collection, measuring=measuring)
            yield self._described(
                replace(made, subject=subject), collection, (*state, collection_key(collection)), name
            )

    @staticmethod
    def _described(made: Made, collection: Collection, state: tuple[object, ...], name: str | None) -> Made:
        measuring = [dict(made.subject.measuring)] if made.subject.measuring else []
        return replace(made, state=(*state, *measuring), data=collection.describe(), dataset=name)

    def hint(self) -> tuple[str, str]:
        return "", ""


def plan_of(
    study: Study, rows: Sequence[Row], seeds: Sequence[int], setting: SettingName, choices: Choices = DEFAULT
) -> list[Unit]:
    """What to train, a row's base before the row; each once."""
    jobs: dict[tuple[str, int], Unit] = {}
    for row in rows:
        for base in _bases(study, row, setting, choices):
            jobs.setdefault((base.name, BASE_SEED), Unit(base, BASE_SEED, shown=False))
        # What is given is the same with every seed, and so are captions.
        once = way_of(row, choices.values) in ("given", "captions")
        for seed in [BASE_SEED] if once else seeds:
            jobs[row.name, seed] = Unit(row, seed)
    names = list(dict.fromkeys(name for name, _ in jobs))
    placed = []
    for job in jobs.values():
        of_row = [seed for name, seed in jobs if name == job.row.name]
        place = f"row {names.index(job.row.name) + 1} of {len(names)}"
        if len(of_row) > 1:
            place += f", seed {of_row.index(job.seed) + 1} of {len(of_row)}"
        placed.append(Unit(job.row, job.seed, job.shown, place))
    return placed


def _bases(study: Study, row: Row, setting: SettingName, choices: Choices) -> Iterator[Row]:
    """The rows that ``row`` starts from, the first of them first."""
    base = base_of(study, row, setting, choices)
    if base is not None:
        yield from _bases(study, base, setting, choices)
        yield base


def chosen_for(study: Study, choices: Choices) -> tuple[Choices, SettingName, dict[str, Collection]]:
    """The choices with what the setting gives where nothing was chosen, the setting, and the collections of
    a study of several.
    """
    if not study.several:
        if choices.collections:
            raise UsageError(f"{study.name} is of one collection", "give one --data")
        given = Collections(choices).given
        return choices, setting_for(study, None if given is None else given.name, choices.setting), {}
    asked = choices.setting
    if asked is None and not choices.collections:
        asked = "quick"
    sections = choices.collections
    if not sections and asked is not None:
        sections = tuple(study.settings[setting_for(study, None, asked)].collections.items())
    if not sections:
        raise UsageError(
            f"no data given for {study.name}", "give collections: --data NAME=DATASET, repeatable"
        )
    named = Collections(choices).named(sections)
    # The paper's own setting where one of them is the paper's.
    printed = [name for name in named if study.printed_keys(name)]
    setting = setting_for(study, next(iter([*printed, *named])), asked)
    own = study.settings[setting]
    measured = {f"{MEASURE}.{key}": value for key, value in own.measure.items()}
    values = {**own.given, **measured, **choices.values}
    return replace(choices, values=values, collections=sections), setting, named
