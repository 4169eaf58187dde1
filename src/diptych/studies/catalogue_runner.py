"""Running a study of a catalogue: all its models are trained and evaluated together, rows are read from that.

::

    OUT/                   as of any study (see :mod:`diptych.studies.runner`)
      rows/ROW/seed-N/     studies/STUDY.json is what the row gave
    OUT/../PAPER.catalogues/   what is made of catalogues, shared by the paper's studies
                           (see :mod:`diptych.studies.catalogue_workshop`)

What is there is not made again. A row that the catalogue or its encoders cannot give is left out, and the table says
why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from diptych.core.context import track
from diptych.core.errors import DataError, Interrupted, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.studies.catalogue_by_hand import by_hand
from diptych.studies.catalogue_options import CatalogueOptions
from diptych.studies.catalogue_row import CatalogueMeasuring, CatalogueRow
from diptych.studies.catalogue_workshop import CatalogueWorkshop, catalogue_with_splits
from diptych.studies.collect import claim_folder, entries_of
from diptych.studies.measurement import Subject
from diptych.studies.results import Entry, Results, entry_file
from diptych.studies.rows import BASE_SEED, DEFAULT, Choices, rows_of, run_folder, setting_for
from diptych.studies.study import SettingName, Study
from diptych.studies.trained import Collections

if TYPE_CHECKING:
    from diptych.data.collection import Collection

_NOTHING = "nothing of it can be counted here: no categories of the kind, or no errors"


def run_catalogue_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: list[str] | None = None,
    seeds: Sequence[int] | None = None,
    features_root: Path | None = None,
    command: str = "",
    should_stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda line: None,
) -> Results:
    """Train and measure the models that a study's rows need; what is there already is used."""
    folder = Path(folder)
    _refuse(study, choices)
    collection = Collections(choices).given
    setting = setting_for(study, None if collection is None else collection.name, choices.setting)
    chosen = study.settings[setting]
    options = CatalogueOptions.of({**chosen.measure, **choices.values}, published=setting == "paper")
    asked = rows_of(study, setting, rows)
    if collection is None:
        collection = _generated(study, setting)
    catalogue = catalogue_with_splits(collection, options)
    beside = folder.resolve().parent / f"{study.paper.key}.catalogues"
    workshop = CatalogueWorkshop(beside, catalogue, options, features_root, should_stop, tell)
    seeds = tuple(chosen.seeds if seeds is None else seeds)
    measure = cast(CatalogueMeasuring, study.measure)
    needs = {row.name: measure.needs(row) for row in asked}
    left_out = {name: why for name, (models, _) in needs.items() if (why := _why_not(workshop, models))}
    usable = [row for row in asked if row.name not in left_out]
    if not usable:
        name, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {name} {why}", "choose other rows with --rows")
    claim_folder(folder, study, setting, command)
    models, of_settings = (
        list(dict.fromkeys(name for row in usable for name in needs[row.name][side])) for side in (0, 1)
    )
    evaluation = workshop.evaluation(models, of_settings, seeds)
    key = fingerprint(measure.about, workshop.key)
    command_by_hand = by_hand(choices.data, options, models, of_settings, seeds)
    for row in track(usable, f"{study.name}: measuring", unit="rows"):
        found = []
        for seed in seeds if measure.is_trained(row) else (BASE_SEED,):
            target = run_folder(study, row, seed, folder)
            made = CatalogueRow(
                row, seed, target, evaluation, options, catalogue.name, len(catalogue), command_by_hand
            )
            found.append(_measured(study, made, setting, key, choices, catalogue.describe()))
        if not any(found):
            left_out[row.name] = _NOTHING
        if should_stop():
            raise Interrupted(
                f"stopped after {row.name} of {study.name}; nothing is lost", "the same command goes on"
            )
    _forget_others(study, folder, key)
    results = Results(study.name, tuple(entries_of(study, folder)), left_out)
    if not results.entries:
        raise DataError(
            f"{catalogue.describe()}: nothing of {study.name} can be measured ({study.asks})",
            "give a catalogue with more products",
        )
    results.save(folder / "results.json")
    return results


def _refuse(study: Study, choices: Choices) -> None:
    """See that nothing is chosen that has no meaning for a catalogue."""
    for flag, value in (
        ("--targets", choices.targets),
        ("--regions", choices.regions),
        ("--positives", choices.positives),
    ):
        if value is not None:
            raise UsageError(f"{flag} {value}: {study.name} is of a shop's catalogue", f"leave {flag} out")


def _generated(study: Study, setting: SettingName) -> Collection:
    """The setting's own products."""
    from diptych.data.scenes import product_scenes

    options = study.settings[setting].products
    if options is None:
        raise DataError(
            f"no products given for {study.name}", "--data DATASET, or --quick for generated ones"
        )
    return product_scenes(**options)


def _why_not(workshop: CatalogueWorkshop, models: Sequence[str]) -> str | None:
    return next((why for model in models if (why := workshop.why_not(model))), None)


def _measured(
    study: Study, made: CatalogueRow, setting: SettingName, key: str, choices: Choices, data: str
) -> bool:
    """Whether a row and seed have numbers; they are written where they are new."""
    file = entry_file(made.folder, study.name)
    measurements = study.measure(Subject(made, None, None))
    if not measurements:
        file.unlink(missing_ok=True)  # of an earlier call, on other data
        return False
    Entry(
        study=study.name,
        row=made.row.name,
        seed=made.seed,
        setting=setting,
        measurements=measurements,
        key=key,
        run=str(made.folder),
        data=data,
        epochs=(0, 0),
        cpu_seconds=cast(CatalogueMeasuring, study.measure).seconds(made),
        changed=tuple(sorted(choices.values)),
    ).save(file)
    return True


def _forget_others(study: Study, folder: Path, key: str) -> None:
    """Let go of rows of earlier calls that are of other data, or were measured otherwise: no table can hold both."""
    for entry in list(entries_of(study, folder)):
        if entry.key != key:
            entry_file(Path(entry.run), study.name).unlink(missing_ok=True)
