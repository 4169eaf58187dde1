"""Run a study: each row and seed is made (trained, opened, or nothing), then measured.

::

    OUT/
      study.json           which study and setting, and the command
      rows/ROW/seed-N/     a run folder, or a head's, in the folder of the first study of the paper that has the row
        studies/NAME.json  what it gave; NAME@COLLECTION.json on one of several collections
      results.json         all of it for this study
      report.html          published and measured side by side

What is there, made and measured as it would be now, is not measured again. An interrupted training resumes; one of
another recipe or other data, or that another process trains, is an error.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import field_validator, model_validator

from diptych.core.context import check_stop, stopping, task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options, command_line, parameter, parse_values
from diptych.data.several import DataChoices
from diptych.studies.plan import (
    FINE_TUNE,
    MEASURE,
    POSITIVES_OPTION,
    Choices,
    Collections,
    LogData,
    Plan,
    Unit,
)
from diptych.studies.results import (
    Entry,
    Measuring,
    Results,
    claim_folder,
    entries_in,
    entry_file,
    measure_of,
)
from diptych.studies.sources import Source, Subject, cost_of, cpu_seconds, logger, source_of
from diptych.studies.study import AS_PAPER, Row, SettingName, Study

DEFAULT = Choices()
"""Nothing chosen: the setting that fits, on its own data."""

_PLACES = (
    "model.image.weights",
    "model.text.word_vectors",
    "shortcuts.digits",
    FINE_TUNE,
    "checkpoints.*",
    "sparsify.training.checkpoint_minutes",
    "*.targets.model",
    "sparsify.vocabulary.source",
    "measure.jobs",
)
"""Keys of --set that say where something is, or how often it is saved: they change no number."""


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
    sources = {row.kind: source_of(row) for row in study.all_rows}
    chosen = study.resolve(rows or plan.setting.rows)
    left_out = {row.name: why for row in chosen if (why := plan.why_not(row))}
    seeds = tuple(plan.setting.seeds if seeds is None else seeds)
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
    claim_folder(plan.folder, study, plan.name, command)
    with task(study.name, len(units), "runs") as bar:
        for unit in units:
            source, is_measured = sources[unit.row.kind], False
            made = source.make(plan, unit.row, unit.seed, f"{unit.place}: {unit.row.label}")
            for subject in _subjects(plan, made):
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
        if not found:
            data, fix = sources[usable[0].kind].hint()
            raise DataError(f"{data}: nothing of {study.name} can be measured ({study.asks})", fix)
    results = Results(study.name, tuple(found), left_out, study.several)
    results.save(plan.folder / "results.json")
    return results


def _subjects(plan: Plan, made: Subject) -> Iterator[Subject]:
    """Yield what is to be measured of a row: once, or on each of several collections."""
    if plan.study.of != "collections":
        yield made
        return
    state = (*made.state, plan.choices.positives)
    if not plan.study.several:
        yield _with_state(made, *state)
    for name, collection in plan.several.items():
        subject = replace(made, collection=collection, dataset=name, measuring=plan.measuring())
        # Of texts, splits and what the images show.
        contents = fingerprint(collection.text_fingerprint, list(collection.splits), collection.centric)
        yield _with_state(subject, *state, contents)


def _with_state(subject: Subject, *state: Any) -> Subject:
    measuring = [dict(subject.measuring)] if subject.measuring else []
    return replace(subject, state=(*state, *measuring), data=subject.collection.describe())


def _measured(
    plan: Plan, unit: Unit, subject: Subject, state: str, source: Source, measure: Measuring
) -> bool:
    """Return whether a unit has numbers, of this state already or measured now."""
    target = plan.target(unit.row, unit.seed)
    file = entry_file(target, plan.study.name, subject.dataset)
    if not subject.again and _is_measured(file, target, state):
        return True
    what = "" if source.nothing else f"{unit.place}: {unit.row.label}:"
    on = f" on {subject.dataset}" if subject.dataset else ""
    if what:
        logger.info(f"{what} measuring{on}")
    with cost_of(target) if subject.costs else nullcontext():
        measurements = measure(subject)
    if not measurements:
        if what:
            logger.info(f"{what} cannot be measured{on}")
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
    """Return whether an entry of a state is there, whole, with all values that it keeps per query."""
    try:
        measurements = Entry.open(file, of=state).measurements
    except StorageError:
        return False
    return all((run / one.kept).is_dir() for one in measurements)


def changed_keys(plan: Plan, row: Row) -> tuple[str, ...]:
    """Return the keys of --set by which a row, or what it starts from, is not as the setting, paper or code have it."""
    values, given = plan.choices.values, {one.given for one in plan.study.all_rows}
    places = {key for key in values if key in given or any(fnmatch.fnmatchcase(key, one) for one in _PLACES)}
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
    """Return the value of a dotted key; None where there is none."""
    if key in options:
        return options[key]
    for part in key.split("."):
        options = options[int(part)] if isinstance(options, list) else (options or {}).get(part)
    return options


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
    for flag in ("targets", "regions", "positives"):
        if study.of != "collections" and (value := getattr(choices, flag)) is not None:
            raise UsageError(
                f"--{flag} {value}: {study.name} is of a shop's {study.of}", f"leave --{flag} out"
            )
    dataset = None if choices.data is None else collections.of(choices.data).name
    if study.several:
        choices, name, several = _several(study, choices, collections)
    elif choices.collections:
        raise UsageError(f"{study.name} is of one collection", "give one --data")
    else:
        name = setting_for(study, dataset, choices.setting)
    shared = several, collections, features, accelerator, devices
    return Plan(study, folder, name, choices, *shared, dataset or "")


def setting_for(study: Study, dataset: str | None, chosen: SettingName | None = None) -> SettingName:
    """Return the chosen setting, else ``paper`` on the paper's datasets, ``data`` on others, ``quick`` on none."""
    if chosen is None:
        chosen = "quick" if dataset is None else "paper" if study.printed_keys(dataset) else "data"
    study.setting(chosen)
    return chosen


def _several(
    study: Study, choices: Choices, collections: Collections
) -> tuple[Choices, SettingName, dict[str, Any]]:
    """Return the choices with what the setting gives, the setting, and the collections that are measured on."""
    generated = study.setting(choices.setting or "quick").collections
    sections = choices.collections or tuple(generated.items())
    if not sections:
        raise UsageError(
            f"no data given for {study.name}", "give collections: --data NAME=DATASET, repeatable"
        )
    named = collections.named(sections)
    # The paper's own setting where one of them is the paper's.
    first = next((name for name in named if study.printed_keys(name)), next(iter(named)))
    name = setting_for(study, first, choices.setting or (None if choices.collections else "quick"))
    setting = study.setting(name)
    measured = {f"{MEASURE}.{key}": value for key, value in setting.measure.items()}
    values: Mapping[str, Any] = {**setting.given, **measured, **choices.values}
    return replace(choices, values=values, collections=sections), name, named


# From the command line ---------------------------------------------------------------------------


class StudyData(DataChoices):
    """Which data a study is run on."""

    def choices(self, study: Study) -> dict[str, Any]:
        """Return what these are among the choices of who runs a study."""
        if study.several:
            return {"collections": self.several()}
        return {"log": self._log(study.name)} if study.of == "log" else {"data": self.one()}

    def _log(self, name: str) -> LogData | None:
        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {name} is of a shop's log", f"leave {flag} out")
        self.check_one(f"{name} is of one log")
        options = parse_values(self.reader_option, "--reader-option")
        return LogData(Path(self.data[0]), next(iter(self.reader), None), options) if self.data else None


class RunOptions(Options):
    """Which rows of a study are run, and how."""

    rows: str | None = parameter(None, "Names or the paper's numbers, with commas: 1.1,1.2.")
    seeds: str | None = parameter(None, "With commas: 0,1,2.", default="the setting's own")
    quick: bool = parameter(False, "On generated data, in minutes.")
    all_: bool = parameter(False, "Every study, and one page over all of them.", "--all")
    setting: SettingName | None = parameter(
        None,
        "How rows are trained: as the paper says, or as its code does (published).",
        default="paper on the paper's datasets, data on others",
    )
    targets: str | None = parameter(
        None, "Latent targets: a sentence-transformers model's folder or name, or lsa."
    )
    regions: Path | None = parameter(None, "An .npy file of region features, for VSRN.")
    positives: str | None = parameter(None, "Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.")
    positives_option: list[str] = parameter([], "KEY=VALUE, e.g. originals=true. Repeatable.")
    set_: list[str] = parameter(
        [],
        "KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, e.g. "
        "clip=ENCODER. Repeatable.",
        "--set",
    )
    features: Path | None = parameter(None, "Folder of cached backbone features.")
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")
    devices: int = parameter(1, "Processes that share each batch.", ge=1)

    @field_validator("seeds")
    @classmethod
    def _are_numbers(cls, seeds: str | None) -> str | None:
        if seeds is not None and not all(part.strip().isdecimal() for part in seeds.split(",")):
            raise ValueError("give whole numbers from 0 with commas, e.g. --seeds 0,1,2")
        return seeds

    @model_validator(mode="after")
    def _is_one_setting(self) -> Self:
        if self.quick and self.setting not in (None, "quick"):
            raise ValueError(f"--quick and --setting {self.setting}: give one of them")
        return self


def run_chosen(study: Study, folder: Path, data: StudyData, options: RunOptions) -> Results:
    """Run a study as :func:`~diptych.studies.runner.run_study` does; reports have the command that repeats it."""
    from diptych.training.recipe import PATHS, whole_paths

    setting = "quick" if options.quick else options.setting
    if not data.data and setting != "quick" and study.of != "nothing":
        what = "log" if study.of == "log" else "dataset"
        fix = f"give a {what} with --data, or --quick for generated data"
        raise UsageError(f"no data given for {study.name}", fix)
    given = {row.given for row in study.all_rows if row.given}
    choices = Choices(
        setting=setting,
        regions=None if options.regions is None else str(options.regions.resolve()),
        values=whole_paths(parse_values(options.set_, "--set"), {*PATHS, *given, *study.paths}),
        targets=options.targets,
        positives=options.positives and POSITIVES_OPTION.join([options.positives, *options.positives_option]),
        **data.choices(study),
    )
    words, apart = ("diptych", "study", "run", study.name), ("features", "accelerator", "devices")
    rows = [part.strip() for part in (options.rows or "").split(",") if part.strip()]
    return run_study(
        study,
        folder,
        choices,
        rows=rows or None,
        seeds=None if options.seeds is None else [int(part) for part in options.seeds.split(",")],
        features_root=options.features,
        accelerator=options.accelerator,
        devices=options.devices,
        command=command_line(words, data, options, left_out=apart),
    )
