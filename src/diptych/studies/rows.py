"""From a study's row to the recipe that trains it.

The layers, each over the one before: the setting's recipe file for the row's model, the row's changes,
the setting's changes for that row, the data, then what the person who runs it sets.
"""

from __future__ import annotations

import copy
import fnmatch
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from diptych.core.errors import MissingExtraError, UnknownNameError, UsageError
from diptych.studies.study import Row, Setting, SettingName, Study

if TYPE_CHECKING:
    from diptych.training.recipe import Recipe


Way = Literal["recipe", "given", "head", "search", "adapted", "captions", "log", "catalogue"]
Section = Literal["sparsify", "search", "adapt"]

SECTIONS: tuple[Section, ...] = ("sparsify", "search", "adapt")
"""Attributes of rows and settings that stand in a recipe's place, and what their keys begin with in --set."""


_LIBRARIES = {"pisa": "pyterrier_pisa", "seismic": "seismic"}
MEASURE = "measure"
"""What the keys of measuring begin with in --set."""

_HEADS_BY = ("words",)


def way_of(row: Row, values: Mapping[str, Any]) -> Way:
    """How a row is made, with what a person has set."""
    if row.captions_alone or row.log_alone:
        return "captions" if row.captions_alone else "log"
    if row.catalogue_alone:
        return "catalogue"
    if row.search is not None:
        return "search"
    if row.sparsify is not None:
        return "head"
    if row.adapt is not None:
        return "adapted"
    return "given" if row.given and row.given in values else "recipe"


def given_keys(study: Study) -> set[str]:
    """The keys by which a person may give a row of the study."""
    return {row.given for row in (*study.rows, *study.bases) if row.given}


def path_keys(study: Study) -> set[str]:
    """Return the keys of --set whose values can be files or folders."""
    from diptych.training.recipe import PATHS

    return {*PATHS, *given_keys(study), *study.paths}


def not_of_recipes(study: Study, key: str) -> bool:
    """Whether a key is about rows that have no recipe."""
    rows = (*study.rows, *study.bases)
    has = {name for name in SECTIONS for row in rows if getattr(row, name) is not None}
    measured = [MEASURE] if has or study.measured_by else []
    return key.partition(".")[0] in {*has, *measured} or key in given_keys(study)


def measuring_of(values: Mapping[str, Any], known: Sequence[str] = _HEADS_BY) -> dict[str, Any]:
    """What a person set about measuring; ``known`` are the keys that there are, those of heads by default."""
    own = _below(MEASURE, values)
    for key in own:
        if key not in known:
            raise UnknownNameError("key of measure", key, known)
    return own


def section_of(row: Row, chosen: Setting, values: Mapping[str, Any], name: Section) -> dict[str, Any]:
    """A row's dotted options: the setting's, the row's, the setting's for that row, then what a person sets."""
    apart = getattr(row, name) or {}
    own = _below(name, values)
    for key in own.keys() & apart.keys():
        raise UsageError(
            f"{name}.{key} is what sets {row.name} apart: {apart[key]}",
            "leave it out, and choose rows with --rows",
        )
    return {**getattr(chosen, name), **apart, **chosen.changes.get(row.name, {}), **own}


def _below(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a person set in a section, by the rest of the keys."""
    if section in values:
        raise UsageError(f"{section} is a section, not a value", f"set its keys: --set {section}.KEY=VALUE")
    start = f"{section}."
    return {key.removeprefix(start): value for key, value in values.items() if key.startswith(start)}


def refuse_recipe_keys(study: Study, row: Row, values: Mapping[str, Any]) -> None:
    """See that nothing is set about the training of a row that is given."""
    for key in values:
        if not not_of_recipes(study, key):
            raise UsageError(
                f"{key} is about the training of {row.name}, which is given ({row.given}={values[row.given]})",
                f"leave {key} out, or leave {row.given} out to have {row.name} trained",
            )


def missing_library(engine: str) -> str:
    """What an engine needs and is not installed, with its pip line; empty when nothing is missing."""
    library = _LIBRARIES.get(engine)
    if library is None or importlib.util.find_spec(library) is not None:
        return ""
    return str(MissingExtraError(library, "engines", f"the {engine} engine"))


_OPTIONAL = ("reconstruction", "model.projection")
"""Sections that some rows of a study have and others lack."""


def leaves_alone(plain: Recipe, without: set[str], key: str) -> bool:
    """Whether a key is of a section, a kind of tower or a setup of shortcuts that a row does not have, but
    its neighbours may.
    """
    from diptych.encoders.two_tower import ModelConfig

    for section in (*_OPTIONAL, *without):
        if key.startswith(f"{section}."):
            have: Any = plain
            for part in section.split("."):
                have = getattr(have, part)
            return have is None
    if key.startswith("shortcuts.") and plain.shortcuts is not None:
        return _not_of_setup(plain, key.removeprefix("shortcuts."))
    match key.split("."):
        case ["model", ("image" | "text") as tower, name, *_]:
            kinds = ModelConfig.model_fields[tower].annotation.__args__  # type: ignore[union-attr]
            own = getattr(plain.model, tower)
            return name not in type(own).model_fields and any(name in kind.model_fields for kind in kinds)
    return False


def _not_of_setup(plain: Recipe, name: str) -> bool:
    """Whether an option of shortcuts has no meaning with a row's setup."""
    assert plain.shortcuts is not None
    setup = plain.shortcuts.setup
    match name:
        case "in_targets":
            return plain.reconstruction is None or not plain.shortcuts.on_captions
        case "shuffled":
            return setup in ("none", "bits")
        case "compat":
            return setup in ("none", "per-caption")
        case "carries":
            return setup != "per-caption"
    return False


@dataclass(frozen=True)
class LogSource:
    """What ``--data`` names, of a study of a log.

    Attributes:
        path: a folder that ``diptych intent ingest`` wrote, or a file or folder of raw events.
        importer: the format of raw events, where it is not recognised.
        options: of the import, as ``diptych intent ingest`` takes them.
    """

    path: Path
    importer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_imported(self) -> bool:
        """Whether it is a folder of canonical events."""
        from diptych.data.logs.log import Log

        return Log.is_at(self.path)


BASE_SEED = 0
"""The seed of a row that others start from: it is trained once, whatever seeds they have."""

FINE_TUNE = "fine_tune"
"""The recipe key of a pretrained encoder to go on from."""


@dataclass(frozen=True)
class Choices:
    """What the person who runs a study chooses.

    Attributes:
        setting: how it is trained; the one that fits the data when not given.
        data: the recipes' data section; the setting's own data when not given.
        regions: an .npy file of region features, for rows that take them.
        targets: a sentence-transformers model, or ``lsa``, for rows that have latent targets.
        values: dotted recipe keys and values for all rows; a key of a section or a kind of tower that
            a row does not have (``reconstruction.…`` of a baseline, ``model.text.word_vectors`` of a
            caption tower of targets, ``fine_tune`` of what is trained from scratch, ``model.…`` of what is
            fine-tuned) leaves that row as it is, and so do keys of rows without a recipe
            (:mod:`diptych.studies.rows`).
        positives: further judgements to measure by, ``NAME:PATH``.
        collections: a name (empty: the collection's own) and a recipe's data section for each, of studies
            of several collections; the setting's own when empty.
        log: a shop's log, of studies of logs; the setting's own when not given.
    """

    setting: SettingName | None = None
    data: Mapping[str, Any] | None = None
    regions: str | None = None
    targets: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    positives: str | None = None
    collections: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    log: LogSource | None = None


DEFAULT = Choices()
"""Nothing chosen: the setting that fits, on its own data."""


def setting_for(study: Study, dataset: str | None, asked: SettingName | None = None) -> SettingName:
    """The setting asked for, else ``paper`` on the paper's datasets, ``data`` on others, ``quick`` on none."""
    if asked is None:
        if dataset is None:
            asked = "quick"
        else:
            asked = "paper" if study.printed_keys(dataset) else "data"
    if asked not in study.settings:
        raise UnknownNameError(f"setting of {study.name}", asked, study.settings)
    return asked


def rows_of(study: Study, setting: SettingName, names: list[str] | None) -> list[Row]:
    """The rows that are named, else the setting's own, else all."""
    return study.resolve(names or list(study.settings[setting].rows))


def usable_rows(study: Study, asked: Sequence[Row], left_out: dict[str, str]) -> list[Row]:
    """Return the rows that are not left out; UsageError where all are."""
    usable = [row for row in asked if row.name not in left_out]
    if not usable:
        row, why = next(iter(left_out.items()))
        raise UsageError(f"no row of {study.name} can be run: {row} {why}", "choose other rows with --rows")
    return usable


def why_left_out(study: Study, row: Row, setting: SettingName, choices: Choices) -> str | None:
    """Why a row cannot be run as chosen; None when it can."""
    chosen = study.settings[setting]
    if row.name in chosen.left_out:
        return chosen.left_out[row.name]
    way = way_of(row, choices.values)
    if way in ("given", "captions", "log", "catalogue"):
        return None
    if way in ("head", "search", "adapted"):
        # It can be made of whatever its base is, where its engine is there.
        lacks = missing_library(str(row.search.get("engine", ""))) if row.search is not None else ""
        return lacks or why_left_out(study, study.row(str(row.base)), setting, choices)
    if row.model not in chosen.recipes:
        if row.given:
            what = "RUN or ENCODER" if row.pretrained else "RUN, ENCODER or EMBEDDINGS"
            return f"is given in this setting: --set {row.given}={what}"
        return f"the setting {setting!r} has no recipe for {row.model}"
    if (
        row.base is not None
        and not _given(chosen, row, choices)
        and base_of(study, row, setting, choices) is None
    ):
        return f"starts from a pretrained encoder: give one with --set {FINE_TUNE}=ENCODER"
    if row.takes_regions and choices.regions is None:
        return "needs region features: give them with --regions FILE.npy"
    if _stays_without_words(recipe_of(study, row, setting, choices)):
        return (
            "needs word vectors, which its first stage does not train: give them with "
            "--set model.text.word_vectors=FILE.npz"
        )
    return None


def base_of(study: Study, row: Row, setting: SettingName, choices: Choices) -> Row | None:
    """The row that ``row`` starts from as chosen; None for none, and where an encoder is given instead."""
    chosen = study.settings[setting]
    if row.base is None or _given(chosen, row, choices):
        return None
    base = study.row(row.base)
    if way_of(row, choices.values) in ("head", "search", "adapted"):
        return base
    return base if base.model in chosen.recipes else None


def _given(chosen: Setting, row: Row, choices: Choices) -> bool:
    """Whether a row starts from an encoder that is given."""
    return row.model in chosen.fine_tunes and choices.values.get(FINE_TUNE) is not None


def _stays_without_words(recipe: Recipe) -> bool:
    """Whether a first stage would read captions through random word embeddings that it does not train."""
    text = recipe.model.text
    if text.kind != "gru" or text.word_vectors is not None:
        return False
    return not any(fnmatch.fnmatch("text.embed.weight", pattern) for pattern in recipe.stages[0].train)


def _text(name: str) -> str:
    folder = resources.files("diptych.studies") / "recipes"
    return (folder / name).read_text(encoding="utf-8")


def recipe_of(
    study: Study,
    row: Row,
    setting: SettingName,
    choices: Choices = DEFAULT,
    seed: int = 0,
    base: Path | None = None,
) -> Recipe:
    """The complete recipe of one training."""
    from diptych.training.recipe import parse_recipe

    chosen = study.settings[setting]
    file = chosen.recipes[row.model]
    # A copy all through: a dotted key reaches into the tables of the row it changes.
    changes: dict[str, Any] = copy.deepcopy({**row.changes, **chosen.changes.get(row.name, {})})
    changes |= {"name": f"{study.paper.key}.{row.name}", "seed": seed}
    if choices.data is not None:
        changes["data"] = dict(choices.data)
    if row.takes_regions:
        options = dict(changes.get("data", {}).get("options", {}))
        changes["data.options"] = {**options, "regions": choices.regions}
    fine_tuned = row.model in chosen.fine_tunes
    if base is not None:
        base = base.resolve()
        changes |= {FINE_TUNE: str(base / "best")} if fine_tuned else {"warm_start": str(base)}
    plain = parse_recipe(_text(file), file, copy.deepcopy(changes))
    if choices.targets is not None:
        changes |= _targets(plain, choices.targets)
    without = {key for key, value in changes.items() if value is None}
    for key, value in choices.values.items():
        if not_of_recipes(study, key) or (chosen.fine_tunes and key == FINE_TUNE and not fine_tuned):
            continue
        if fine_tuned and key.startswith("model."):
            continue  # it brings its own model
        if not leaves_alone(plain, without, key):
            changes[key] = value
    return parse_recipe(_text(file), file, changes)


def _targets(recipe: Recipe, named: str) -> dict[str, Any]:
    options = {"kind": "lsa"} if named == "lsa" else {"kind": "sentence", "model": named}
    changes: dict[str, Any] = {}
    if recipe.reconstruction is not None and recipe.reconstruction.kind == "latent":
        changes |= {f"reconstruction.targets.{key}": value for key, value in options.items()}
    if recipe.model.text.kind == "targets":
        changes |= {f"model.text.targets.{key}": value for key, value in options.items()}
    return changes


def home_of(study: Study, row: Row, folder: Path) -> Path:
    """The study folder whose runs a row has: its own, or the one beside it that is its home's."""
    if row.home is None or row.home == study.name:
        return folder
    beside = folder if folder.name not in ("", "..") else folder.resolve()
    return beside.parent / row.home


def run_folder(study: Study, row: Row, seed: int, folder: Path) -> Path:
    """Where the run of one row and seed is."""
    return home_of(study, row, folder) / "rows" / row.name / f"seed-{seed}"
