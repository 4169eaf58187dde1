"""Run a study: each row and seed is made (trained, opened, or nothing), then measured.

What is there, made and measured as it would be now, is not measured again. An interrupted training resumes; one of
another recipe or other data, or that another process trains, is an error.
"""

import fnmatch
import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from diptych.core.context import check_stop, stopping, task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.data.known import called
from diptych.data.several import named_apart
from diptych.studies.plan import MEASURE, Choices, Collections, Plan, Unit
from diptych.studies.results import Entry, Measuring, Results, entries_in, entry_file, mark_folder, measure_of
from diptych.studies.sources import Source, Subject, cost_of, cpu_seconds, logger, source_of
from diptych.studies.study import AS_PAPER, Row, SettingName, Study

DEFAULT = Choices()  # the setting that fits, on its own data

# Keys of --set that say where something is, or how often it is saved: they change no number; besides a recipe's PATHS.
_PLACES = (
    *("checkpoints.*", "sparsify.training.checkpoint_minutes", "measure.jobs"),
    *("*.targets.model", "sparsify.vocabulary.source"),
)
_OWN_PAIRS = ("sparse", "searching")  # measures that take no further judgements


def run_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: Sequence[str] | None = None,  # names or the paper's numbers; the setting's own, else all
    seeds: Sequence[int] | None = None,  # the setting's own when not given
    features_root: Path | None = None,  # of cached features, shared by all rows
    accelerator: str = "auto",
    devices: int = 1,
    command: str = "",  # what a user types to have the same; kept for reports
) -> Results:
    """Make and measure a study's rows; return all that is measured in ``folder``, by earlier calls too.

    Raises:
        Interrupted: a stop was requested; the same call resumes.
        UsageError: the folder holds another study, or runs of other recipes; no row can be run.
    """
    features = features_root or cache_root() / "features"
    plan = plan_of(study, Path(folder), choices, features, accelerator, devices)
    sources = {row.kind: source_of(row) for row in study.all_rows}
    chosen, seeds = study.resolve(rows or plan.setting.rows), plan.setting.seeds if seeds is None else seeds
    left_out = {row.name: why for row in chosen if (why := plan.why_not(row))}
    for kind, source in sources.items():
        of_kind = [row for row in chosen if row.kind == kind and row.name not in left_out]
        left_out |= source.begin(plan, of_kind, seeds) if of_kind else {}
    usable = [row for row in chosen if row.name not in left_out]
    if not usable:
        row, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {row} {why}", "choose other rows with --rows")
    units = plan.units(usable, seeds, [row.name for row in usable if sources[row.kind].is_fixed(row)])
    for unit in units:
        sources[unit.row.kind].check(plan, unit.row)
    measure, states = measure_of(study), set[str]()
    if study.several:
        measure.check(plan.measuring(), plan.several)
    mark_folder(plan.folder, study, plan.name, command)
    with task(study.name, len(units), "runs") as bar:
        for unit in units:
            source, is_measured = sources[unit.row.kind], False
            made = source.make(plan, unit.row, unit.seed, f"{unit.place}: {unit.row.label}")
            for subject in _subjects(plan, unit.row, made):
                state = fingerprint(measure.about, *subject.state)
                states.add(state)
                is_measured |= unit.shown and _measured(plan, unit, subject, state, source, measure)
                if stopping():
                    break
            if unit.shown and not is_measured and source.nothing:
                left_out.setdefault(unit.row.name, source.nothing)
            check_stop(f"stopped after {unit.place} of {study.name}; nothing is lost")
            bar.advance(1, f"{unit.place}: {unit.row.name}")
    found = list(entries_in(study, plan.folder))
    if study.of != "collections":  # rows of earlier calls on other data: no table can hold both
        for entry in found:
            if entry.key not in states:
                entry_file(Path(entry.run), study.name).unlink(missing_ok=True)
        found = [entry for entry in found if entry.key in states]
        if not found and not any(source.limit for source in sources.values()):
            data, fix = sources[usable[0].kind].hint()
            raise DataError(f"{data}: nothing of {study.name} can be measured ({study.asks})", fix)
    results = Results(study.name, tuple(found), left_out, study.several)
    results.save(plan.folder / "results.json")
    return results


def _subjects(plan: Plan, row: Row, made: Subject) -> Iterator[Subject]:
    """Yield what is to be measured of a row: once, or on each of several collections."""
    if plan.study.of != "collections":
        yield made
        return
    measuring = plan.measuring() if plan.study.several else dict(made.measuring)
    state, chosen = (*made.state, plan.choices.positives), [measuring] if measuring else []
    if not plan.study.several:
        # The test split is the same whatever part of the others (data.images) a row is trained on.
        whole = plan.collections.of(plan.data_of(row).model_copy(update={"images": None}))
        yield replace(made, state=(*state, *chosen), data=whole.describe())
    for name, collection in plan.several.items():
        # Of texts, splits and what the images show.
        contents = fingerprint(collection.text_fingerprint, list(collection.splits), collection.centric)
        subject = replace(made, collection=collection, dataset=name, measuring=measuring)
        yield replace(subject, state=(*state, contents, *chosen), data=collection.describe())


def _measured(
    plan: Plan, unit: Unit, subject: Subject, state: str, source: Source, measure: Measuring
) -> bool:
    target = plan.target(unit.row, unit.seed)
    file = entry_file(target, plan.study.name, subject.dataset)
    if not subject.again and _is_measured(file, target, state):
        return True
    level = logging.DEBUG if source.nothing else logging.INFO  # rows of a log are many, and quick
    what, on = f"{unit.place}: {unit.row.label}:", f" on {subject.dataset}" if subject.dataset else ""
    logger.log(level, f"{what} measuring{on}")
    with cost_of(target) if subject.costs else nullcontext():
        measurements = measure(subject)
    if not measurements:
        logger.log(level, f"{what} cannot be measured{on}")
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
        data=subject.data,
        epochs=subject.epochs,
        cpu_seconds=cpu_seconds(target) if subject.seconds is None else subject.seconds,
        changed=changed_keys(plan, unit.row),
        given=subject.given,
        stands_for=subject.stands_for,
        fixed=source.is_fixed(unit.row) or plan.is_given(unit.row),
    ).save(file, of=state)
    return True


def _is_measured(file: Path, run: Path, state: str) -> bool:
    try:
        measurements = Entry.open(file, of=state).measurements
    except StorageError:
        return False
    return all((run / one.kept).is_dir() for one in measurements)


def changed_keys(plan: Plan, row: Row) -> tuple[str, ...]:
    """Return the keys of --set by which a row, or what it starts from, is not as the setting, paper or code have it."""
    from diptych.training.recipe import PATHS

    values, known = plan.choices.values, (*PATHS, *_PLACES, *(one.given for one in plan.study.all_rows))
    places = {key for key in values if any(fnmatch.fnmatchcase(key, one) for one in known)}
    plain = replace(plan.choices, values={key: values[key] for key in places}, targets=None)
    settings = [name for name in {plan.name, *AS_PAPER} if name in plan.study.settings]
    found = {"targets"} if plan.choices.targets == "lsa" else set()
    for made in (row, *plan.bases_of(row)):
        source = source_of(made)
        chosen = source.all_options(plan, made)
        declared = [source.all_options(replace(plan, name=name, choices=plain), made) for name in settings]
        for key in values.keys() - places:
            if all(_option(options, key) != _option(chosen, key) for options in declared):
                found.add(key)
    return tuple(sorted(found))


def _option(options: Any, key: str) -> Any:
    if key in options:
        return options[key]
    for part in key.split("."):
        options = options[int(part)] if isinstance(options, list) else (options or {}).get(part)
    return options


def plan_of(
    study: Study, folder: Path, choices: Choices, features: Path, accelerator: str = "auto", devices: int = 1
) -> Plan:
    """Choose the setting that fits, and fill in what it gives where nothing was chosen."""
    collections, several, dataset, name = Collections(), dict[str, Any](), "", choices.setting
    for flag in ("targets", "regions", "positives"):
        if study.of != "collections" and (value := getattr(choices, flag)) is not None:
            raise UsageError(
                f"--{flag} {value}: {study.name} is of a shop's {study.of}", f"leave --{flag} out"
            )
    if choices.positives is not None and study.measure["kind"] in _OWN_PAIRS:
        raise UsageError(
            f"--positives {choices.positives}: {study.name} is measured on the collection's own pairs",
            "leave --positives out",
        )
    if study.several:
        sections = choices.collections or tuple(study.setting(name or "quick").collections.items())
        if not sections:
            raise UsageError(
                f"no data given for {study.name}", "give collections: --data NAME=DATASET, repeatable"
            )
        several = named_apart(called(collections.of(section), given) for given, section in sections)
        # The paper's own setting where one of them is the paper's.
        first = next((one for one in several if study.printed_on(one)), next(iter(several)))
        name = setting_for(study, first, name or (None if choices.collections else "quick"))
        setting = study.setting(name)
        measured = {f"{MEASURE}.{key}": value for key, value in setting.measure.items()}
        values = {**setting.given, **measured, **choices.values}
        choices = replace(choices, values=values, collections=sections)
    elif choices.collections:
        raise UsageError(f"{study.name} is of one collection", "give one --data")
    elif choices.data is not None and study.of in ("collections", "catalogue"):
        dataset = collections.of(choices.data).name
    name = setting_for(study, dataset or None, name)
    return Plan(study, folder, name, choices, several, collections, features, accelerator, devices, dataset)


def setting_for(study: Study, dataset: str | None, chosen: SettingName | None = None) -> SettingName:
    """Return the chosen setting, else ``paper`` on the paper's datasets, ``data`` on others, ``quick`` on none."""
    if chosen is None:
        chosen = "quick" if dataset is None else "paper" if study.printed_on(dataset) else "data"
    study.setting(chosen)
    return chosen
