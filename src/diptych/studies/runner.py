"""Run a study: its rows and seeds are units of a job, each made (trained, opened, or nothing), then measured.

::

    OUT/
      study.json           which study and setting, and the command
      units/ROW-seed-N.json  what a row and seed gave, …@NAME.json on one of several collections
      rows/ROW/seed-N/     a run folder, or a head's, in the folder of the first study of the paper that has the row
      results.json         all of it for this study
      report.html          published and measured side by side

A unit that is there, made and measured as it would be now, is not measured again. An interrupted training
resumes; one of another recipe or other data, or that another process trains, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from diptych.core.context import check_stop, stopping, task
from diptych.core.errors import DataError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.studies.plan import (
    MEASURE,
    Choices,
    Collections,
    Plan,
    Unit,
    collection_key,
    rows_in,
)
from diptych.studies.results import Entry, Measuring, Results, claim_folder, entries_in, entry_file
from diptych.studies.sources import SOURCES, Made, Source, cost_of, cpu_seconds, logger
from diptych.studies.study import SettingName, Study, named_function

DEFAULT = Choices()
"""Nothing chosen: the setting that fits, on its own data."""

MEASURES = {
    "retrieval": "diptych.studies.retrieval:Retrieval",
    "counting": "diptych.studies.retrieval:Counting",
    "shortcuts": "diptych.studies.shortcuts:ShortcutRetrieval",
    "information": "diptych.studies.shortcuts:Information",
    "zero-shot": "diptych.studies.zero_shot:ZeroShot",
    "sparse": "diptych.studies.sparse:SparseRetrieval",
    "searching": "diptych.studies.searched:Searching",
    "granularity": "diptych.studies.brittleness:Granularity",
    "clean": "diptych.studies.brittleness:Clean",
    "suite": "diptych.studies.brittleness:Suite",
    "counted": "diptych.studies.counted:Counted",
    "predicted": "diptych.studies.predicting:Predicted",
    "importance": "diptych.studies.predicting:Importance",
    "declared": "diptych.studies.predicting:Declared",
    "catalogue": "diptych.studies.catalogues:OfCatalogue",
}
"""Ways of measuring, by the names that studies have in papers' files."""


def measure_of(study: Study) -> Measuring:
    """Return how a study's columns are measured."""
    options = {key: value for key, value in study.measure.items() if key != "kind"}
    found: Measuring = named_function(MEASURES[study.measure["kind"]])(**options)
    return found


def run_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    features_root: Path | None = None,
    accelerator: str = "auto",
    devices: int = 1,
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
        devices: how many of them train.
        command: what a user types to have the same; kept for reports.

    Returns:
        Everything measured for this study in ``folder``, of earlier calls too.

    Raises:
        Interrupted: a stop was asked for; the same call resumes.
        UsageError: the folder holds another study, or runs of other recipes; no row can be run.
    """
    features = features_root or cache_root() / "features"
    plan = plan_of(study, Path(folder), choices, features, accelerator, devices)
    sources: dict[str, Source] = {
        kind: named_function(SOURCES[kind])()
        for kind in dict.fromkeys(row.kind for row in (*study.rows, *study.bases))
    }
    asked = study.resolve(rows or plan.setting.rows)
    left_out = {row.name: why for row in asked if (why := plan.why_not(row))}
    seeds = tuple(plan.setting.seeds if seeds is None else seeds)
    for kind, source in sources.items():
        of_kind = [row for row in asked if row.kind == kind and row.name not in left_out]
        left_out |= source.begin(plan, of_kind, seeds) if of_kind else {}
    usable = [row for row in asked if row.name not in left_out]
    if not usable:
        row, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {row} {why}", "choose other rows with --rows")
    units = plan.units(usable, seeds, [row.name for row in usable if sources[row.kind].is_fixed(row)])
    for unit in units:
        sources[unit.row.kind].check(plan, unit.row)
    measure, states = measure_of(study), set[str]()
    if study.several:
        measure.check(plan.measuring(study.measured_by), plan.several)
    claim_folder(plan.folder, study, plan.name, command)
    for unit in units:
        source, there = sources[unit.row.kind], False
        with task(f"{unit.place}: {unit.row.name}", 1, "rows") as bar:
            made = source.make(plan, unit.row, unit.seed, f"{unit.place}: {unit.row.label}")
            for one in _on_each(plan, made):
                state = fingerprint(measure.about, *one.state)
                states.add(state)
                there |= unit.shown and _measured(plan, unit, one, state, source, measure)
                if stopping():
                    break
            bar.advance(1)
        if unit.shown and not there and source.nothing:
            left_out.setdefault(unit.row.name, source.nothing)
        check_stop(f"stopped after {unit.place} of {study.name}; nothing is lost")
    found = list(entries_in(study, rows_in(study, plan.folder)))
    if study.of != "collections":  # rows of earlier calls on other data: no table can hold both
        for entry in found:
            if entry.key not in states:
                entry_file(Path(entry.run), study.name).unlink(missing_ok=True)
        found = [entry for entry in found if entry.key in states]
        if not found:
            data, fix = sources[usable[0].kind].hint()
            raise DataError(f"{data}: nothing of {study.name} can be measured ({study.asks})", fix)
    results = Results(study.name, tuple(found), left_out, study.several)
    results.save(plan.folder / "results.json")
    return results


def _on_each(plan: Plan, made: Made) -> Iterator[Made]:
    """Yield what is to be measured of a row: once, or on each of several collections."""
    if plan.study.of != "collections":
        yield made
        return
    state = (*made.state, plan.choices.positives)
    if not plan.study.several:
        yield _described(made, state)
        return
    measuring = plan.measuring(plan.study.measured_by)
    for name, collection in plan.several.items():
        subject = replace(made.subject, collection=collection, measuring=measuring)
        yield _described(replace(made, subject=subject, dataset=name), (*state, collection_key(collection)))


def _described(made: Made, state: tuple[object, ...]) -> Made:
    measuring = [dict(made.subject.measuring)] if made.subject.measuring else []
    return replace(made, state=(*state, *measuring), data=made.subject.collection.describe())


def _measured(plan: Plan, unit: Unit, made: Made, state: str, source: Source, measure: Measuring) -> bool:
    """Return whether a unit has numbers, of this state already or measured now."""
    target = plan.target(unit.row, unit.seed)
    file = entry_file(target, plan.study.name, made.dataset)
    there = None if made.again else Entry.kept_at(file, state)
    if there is not None and all((target / one.kept).is_dir() for one in there.measurements if one.kept):
        return True
    on = f" on {made.dataset}" if made.dataset else ""
    if not source.nothing:
        logger.info(f"{unit.place}: {unit.row.label}: measuring{on}")
    with cost_of(target) if made.costs else nullcontext():
        measurements = measure(made.subject)
    if not measurements:
        if not source.nothing:
            logger.info(f"{unit.place}: {unit.row.label}: cannot be measured{on}")
        file.unlink(missing_ok=True)  # of an earlier call, on other data
        return False
    Entry(
        study=plan.study.name,
        row=unit.row.name,
        seed=unit.seed,
        setting=plan.name,
        measurements=measurements,
        key=state,
        run=str(target),
        data=made.data,
        epochs=made.epochs,
        cpu_seconds=cpu_seconds(target) if made.seconds is None else made.seconds,
        changed=plan.changed(unit.row),
        given=made.given,
        stands_for=made.stands_for,
        fixed=source.is_fixed(unit.row) or plan.is_given(unit.row),
    ).save(file, of=state)
    return True


def plan_of(
    study: Study,
    folder: Path,
    choices: Choices,
    features: Path,
    accelerator: str = "auto",
    devices: int = 1,
) -> Plan:
    """Choose the setting that fits, and fill in what it gives where nothing was chosen."""
    collections = Collections()
    several: dict[str, Any] = {}
    if study.of != "collections":
        for flag in ("targets", "regions", "positives"):
            if (value := getattr(choices, flag)) is not None:
                raise UsageError(
                    f"--{flag} {value}: {study.name} is of a shop's {study.of}", f"leave --{flag} out"
                )
    if study.several:
        choices, name, several = _several(study, choices, collections)
    elif choices.collections:
        raise UsageError(f"{study.name} is of one collection", "give one --data")
    else:
        given = None if choices.data is None else collections.of(choices.data)
        name = setting_for(study, None if given is None else given.name, choices.setting)
    return Plan(study, folder, name, choices, several, collections, features, accelerator, devices)


def setting_for(study: Study, dataset: str | None, asked: SettingName | None = None) -> SettingName:
    """Return the setting asked for, else ``paper`` on the paper's datasets, ``data`` on others, ``quick`` on none."""
    fits: SettingName = "quick"
    if dataset is not None:
        fits = "paper" if study.printed_keys(dataset) else "data"
    study.setting(asked or fits)
    return asked or fits


def _several(
    study: Study, choices: Choices, collections: Collections
) -> tuple[Choices, SettingName, dict[str, Any]]:
    """Return the choices with what the setting gives, the setting, and the collections that are measured on."""
    asked = choices.setting or (None if choices.collections else "quick")
    sections = choices.collections
    if not sections and asked is not None:
        sections = tuple(study.setting(asked).collections.items())
    if not sections:
        raise UsageError(
            f"no data given for {study.name}", "give collections: --data NAME=DATASET, repeatable"
        )
    named = collections.named(sections)
    # The paper's own setting where one of them is the paper's.
    printed = [name for name in named if study.printed_keys(name)]
    name = setting_for(study, next(iter([*printed, *named])), asked)
    own = study.setting(name)
    measured = {f"{MEASURE}.{key}": value for key, value in own.measure.items()}
    values: Mapping[str, Any] = {**own.given, **measured, **choices.values}
    return replace(choices, values=values, collections=sections), name, named
