"""Running a study: what is to be trained, in which order, and what is there already.

::

    OUT/
      study.json           which study and setting, and what was chosen
      rows/ROW/seed-N/     a run folder; its studies/STUDY.json is what it gave to each study
      results.json         all of it for this study
      report.html          published and measured side by side

A run that is finished is not trained again, an interrupted one goes on, and one that was made by
another recipe or on other data, or that another process is training, is an error: nothing is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import Interrupted, UsageError
from diptych.core.files import cache_root, read_json, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.studies.collect import STUDY, entries_of
from diptych.studies.results import Entry, Results, entry_file
from diptych.studies.rows import (
    BASE_SEED,
    DEFAULT,
    FINE_TUNE,
    Choices,
    base_of,
    home_of,
    recipe_of,
    rows_of,
    run_folder,
    setting_for,
    why_left_out,
)
from diptych.studies.start import start_of
from diptych.studies.study import Row, SettingName, Study, Subject
from diptych.studies.trained import Collections, Machine, cpu_seconds, trained

if TYPE_CHECKING:
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run

__all__ = ["Job", "changed_keys", "plan_of", "run_study"]


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
        for seed in seeds:
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
    """Train and measure a study's rows; what is there already is used.

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
    folder = Path(folder)
    machine = Machine(features_root or cache_root() / "features", accelerator, should_stop, tell)
    collections = Collections(choices)
    given = collections.given
    setting = setting_for(study, None if given is None else given.name, choices.setting)
    asked = rows_of(study, setting, rows)
    left_out = {row.name: why for row in asked if (why := why_left_out(study, row, setting, choices))}
    run_rows = [row for row in asked if row.name not in left_out]
    if not run_rows:
        row, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {row} {why}", "choose other rows with --rows")
    _claim(folder, study, setting, command)
    seeds = study.settings[setting].seeds if seeds is None else seeds
    for job in plan_of(study, run_rows, seeds, setting, choices):
        with task(f"{job.place}: {job.row.name}", 1, "trainings") as bar:
            _do(study, job, setting, folder, choices, collections, machine)
            bar.advance(1)
        if should_stop():
            raise Interrupted(
                f"stopped after {job.place} of {study.name}; nothing is lost", "the same command goes on"
            )
    results = Results(study.name, tuple(entries_of(study, folder)), left_out)
    results.save(folder / "results.json")
    return results


def _claim(folder: Path, study: Study, setting: SettingName, command: str) -> None:
    """Write study.json, or see that the one there is of the same study and setting."""
    about = {"study": study.name, "setting": setting}
    file = folder / STUDY
    if file.is_file():
        there = read_json(file)
        for key, value in about.items():
            if there.get(key) != value:
                raise UsageError(
                    f"{folder} holds {key} {there.get(key)!r}, not {value!r}",
                    "choose another folder with --out",
                )
    write_json(file, {**about, "command": command})


def _do(
    study: Study,
    job: Job,
    setting: SettingName,
    folder: Path,
    choices: Choices,
    collections: Collections,
    machine: Machine,
) -> None:
    """Train one row with one seed and measure it."""
    base_row = base_of(study, job.row, setting, choices)
    base = None if base_row is None else run_folder(study, base_row, BASE_SEED, folder)
    recipe = recipe_of(study, job.row, setting, choices, job.seed, base)
    collection = collections.of(recipe)
    target = run_folder(study, job.row, job.seed, folder)
    what = f"{job.place}: {job.row.label}"
    run = trained(target, recipe, collection, what, machine, _elsewhere(study, job.row, folder))
    if not job.shown:
        return
    header = run.header
    key = fingerprint(study.measure.about, header["step"], header["best"], choices.positives)
    file = entry_file(target, study.name)
    if file.is_file() and Entry.open(file).key == key:
        return
    machine.tell(f"{what}: measuring")
    begun_with = recipe.fine_tune or recipe.warm_start
    subject = Subject(run, collection, machine.features_root, choices.positives, begun_with)
    entry = Entry(
        study=study.name,
        row=job.row.name,
        seed=job.seed,
        setting=setting,
        measurements=study.measure(subject),
        key=key,
        run=str(target),
        data=collection.describe(),
        epochs=(int(header["epoch"]), int(header["best_epoch"])),
        cpu_seconds=cpu_seconds(target),
        changed=changed_keys(choices, recipe),
        fine_tuned_from=_given_start(run, recipe) if base is None else "",
    )
    entry.save(file)


def _elsewhere(study: Study, row: Row, folder: Path) -> str:
    """What to do where a run is another one than is wanted."""
    home = home_of(study, row, folder)
    if home == folder:
        return "choose another folder with --out"
    return f"its runs are in {home}: choose a folder in another parent folder with --out"


def _given_start(run: Run, recipe: Recipe) -> str:
    """The encoder that was given to go on from, with its fingerprint; empty without one."""
    start = None if recipe.fine_tune is None else start_of(run, recipe.fine_tune)
    return "" if start is None else start.name


def changed_keys(choices: Choices, recipe: Recipe) -> tuple[str, ...]:
    """What the person who ran it changed about the training, as dotted keys."""
    keys = set(choices.values)
    if recipe.fine_tune is None:
        keys.discard(FINE_TUNE)  # no business of what is trained from scratch
    # Another place of the sentence encoder is the same training; LSA's vectors are not.
    if choices.targets == "lsa":
        if recipe.reconstruction is not None and recipe.reconstruction.kind == "latent":
            keys.add("reconstruction.targets.kind")
        if recipe.model.text.kind == "targets":
            keys.add("model.text.targets.kind")
    return tuple(sorted(keys))
