"""Running a study: what is to be trained, in which order, and what is there already.

::

    OUT/
      study.json           which study and setting, and what was chosen
      rows/ROW/seed-N/     a run folder, or a head's; its studies/STUDY.json is what it gave to each study,
                           studies/STUDY@NAME.json on one of several collections
      results.json         all of it for this study
      report.html          published and measured side by side

A run that is finished is not trained again, an interrupted one goes on, and one that was made by
another recipe or on other data, or that another process is training, is an error: nothing is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diptych.core.context import task
from diptych.core.errors import Interrupted, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.studies.chosen import chosen_for
from diptych.studies.collect import claim_folder, entries_of
from diptych.studies.kept import is_kept
from diptych.studies.making import Made, Wanted, check, make
from diptych.studies.results import Entry, Results, entry_file
from diptych.studies.rows import (
    BASE_SEED,
    DEFAULT,
    Choices,
    base_of,
    rows_of,
    why_left_out,
)
from diptych.studies.study import Row, SettingName, Study
from diptych.studies.trained import Collections, Machine, collection_key, cpu_seconds
from diptych.studies.ways import measuring_of, way_of


@dataclass(frozen=True)
class Job:
    """One training of a plan.

    Attributes:
        row, seed: which.
        shown: whether it is asked for, or only a row that others start from.
        place: where it stands in the plan, in words.
    """

    row: Row
    seed: int
    shown: bool = True
    place: str = ""


def plan_of(
    study: Study, rows: Sequence[Row], seeds: Sequence[int], setting: SettingName, choices: Choices = DEFAULT
) -> list[Job]:
    """What to train, a row's base before the row; each once."""
    jobs: dict[tuple[str, int], Job] = {}
    for row in rows:
        for base in _bases(study, row, setting, choices):
            jobs.setdefault((base.name, BASE_SEED), Job(base, BASE_SEED, shown=False))
        # What is given is the same with every seed, and so are captions.
        once = way_of(row, choices.values) in ("given", "captions")
        for seed in [BASE_SEED] if once else seeds:
            jobs[row.name, seed] = Job(row, seed)
    names = list(dict.fromkeys(name for name, _ in jobs))
    placed = []
    for job in jobs.values():
        of_row = [seed for name, seed in jobs if name == job.row.name]
        place = f"row {names.index(job.row.name) + 1} of {len(names)}"
        if len(of_row) > 1:
            place += f", seed {of_row.index(job.seed) + 1} of {len(of_row)}"
        placed.append(Job(job.row, job.seed, job.shown, place))
    return placed


def _bases(study: Study, row: Row, setting: SettingName, choices: Choices) -> Iterator[Row]:
    """The rows that ``row`` starts from, the first of them first."""
    base = base_of(study, row, setting, choices)
    if base is not None:
        yield from _bases(study, base, setting, choices)
        yield base


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
    should_stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda line: None,
) -> Results:
    """Train and measure a study's rows; what is there already is used. One of a shop's log trains nothing: see
    :mod:`diptych.studies.log_runner`; models of a catalogue are trained together: see
    :mod:`diptych.studies.catalogue_runner`.

    Args:
        study: what is run.
        folder: OUT, see above.
        choices: setting, data and values.
        rows: names or the paper's numbers; the setting's own, else all, when not given.
        seeds: the setting's own when not given.
        features_root: where cached features live, shared by all rows; the cache folder when not given.
        accelerator: as for training.
        command: what a person types to have the same; kept for reports.
        should_stop: asked after every step.
        tell: gets one line before each training and measurement.

    Returns:
        Everything measured for this study in ``folder``, of earlier calls too.

    Raises:
        Interrupted: ``should_stop`` said so; the same call goes on.
        UsageError: the folder holds another study, or runs of other recipes; no row can be run.
    """
    if study.of_logs:
        from diptych.studies.log_runner import run_log_study

        return run_log_study(
            study, folder, choices, rows=rows, command=command, should_stop=should_stop, tell=tell
        )
    if study.of_catalogues:
        from diptych.studies.catalogue_runner import run_catalogue_study

        return run_catalogue_study(
            study,
            folder,
            choices,
            rows=rows,
            seeds=seeds,
            features_root=features_root,
            command=command,
            should_stop=should_stop,
            tell=tell,
        )
    folder = Path(folder)
    machine = Machine(features_root or cache_root() / "features", accelerator, should_stop, tell)
    choices, setting, named = chosen_for(study, choices)
    collections = Collections(choices, named)
    asked = rows_of(study, setting, rows)
    left_out = {row.name: why for row in asked if (why := why_left_out(study, row, setting, choices))}
    run_rows = [row for row in asked if row.name not in left_out]
    if not run_rows:
        row, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {row} {why}", "choose other rows with --rows")
    seeds = study.settings[setting].seeds if seeds is None else seeds
    plan = [
        (job, Wanted(study, job.row, job.seed, setting, choices, folder, f"{job.place}: {job.row.label}"))
        for job in plan_of(study, run_rows, seeds, setting, choices)
    ]
    if study.check_measuring is not None:
        study.check_measuring(measuring_of(choices.values, study.measured_by), named)
    for _, wanted in plan:
        check(wanted)
    claim_folder(folder, study, setting, command)
    for job, wanted in plan:
        with task(f"{job.place}: {job.row.name}", 1, "trainings") as bar:
            _do(wanted, job.shown, collections, machine)
            bar.advance(1)
        if should_stop():
            raise Interrupted(
                f"stopped after {job.place} of {study.name}; nothing is lost", "the same command goes on"
            )
    results = Results(study.name, tuple(entries_of(study, folder)), left_out, study.several)
    results.save(folder / "results.json")
    return results


def _do(wanted: Wanted, shown: bool, collections: Collections, machine: Machine) -> None:
    """Make one row with one seed and measure it, on one collection or on each of several."""
    made = make(wanted, collections, machine)
    if not shown:
        return
    if not wanted.study.several:
        _measure(wanted, made, None, machine)
        return
    measuring = measuring_of(wanted.choices.values, wanted.study.measured_by)
    for name, collection in collections.several.items():
        subject = replace(
            made.subject, collection=collection, measuring=measuring, should_stop=machine.should_stop
        )
        _measure(wanted, replace(made, subject=subject), name, machine)
        if machine.should_stop():
            return


def _measure(wanted: Wanted, made: Made, dataset: str | None, machine: Machine) -> None:
    """Measure what is made, unless it has been; ``dataset``: which of several collections it is on."""
    study, target = wanted.study, wanted.target
    measuring = [dict(made.subject.measuring)] if made.subject.measuring else []
    of = [] if dataset is None else [collection_key(made.subject.collection)]
    key = fingerprint(study.measure.about, *made.state, wanted.choices.positives, *measuring, *of)
    file = entry_file(target, study.name, dataset)
    if file.is_file() and _is_whole(replace(Entry.open(file), run=str(target)), key):
        return
    machine.tell(f"{wanted.what}: measuring{'' if dataset is None else f' on {dataset}'}")
    measurements = study.measure(made.subject)
    if not measurements:
        machine.tell(f"{wanted.what}: cannot be measured on {dataset}")
        file.unlink(missing_ok=True)  # of an earlier call, on other data
        return
    entry = Entry(
        study=study.name,
        row=wanted.row.name,
        seed=wanted.seed,
        setting=wanted.setting,
        measurements=measurements,
        key=key,
        run=str(target),
        data=made.subject.collection.describe(),
        epochs=made.epochs,
        cpu_seconds=cpu_seconds(target),
        changed=made.changed,
        fine_tuned_from=made.given,
    )
    entry.save(file)


def _is_whole(entry: Entry, key: str) -> bool:
    """Whether an entry is of this measurement, with all that it keeps."""
    kept = entry.kept()
    return entry.key == key and (kept is None or is_kept(kept))
