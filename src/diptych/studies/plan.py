"""A study as somebody wants it: which rows, in which setting, on which data, and where each is kept.

The layers of a row's recipe, each over the one before: the setting's recipe for it, the row's own options, the
setting's changes, the data, then what the user sets.
"""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from diptych.core.errors import RecipeError, UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.studies.study import AS_PAPER, Row, Setting, SettingName, Study, recipe_values

if TYPE_CHECKING:
    from diptych.core.options import Options
    from diptych.data.collection import Collection
    from diptych.training.recipe import Recipe
    from diptych.training.sections import Data

BASE_SEED = 0
"""The seed of a row that others start from: it is made once, whatever seeds they have."""

FINE_TUNE = "fine_tune"
"""The recipe key of a pretrained encoder to go on from."""

POSITIVES_OPTION = " --positives-option "
"""Stands before each option of further judgements, after their ``NAME:PATH``: as ``diptych evaluate`` has it."""

MEASURE = "measure"
"""What the keys of measuring begin with in --set."""

SECTIONS = {"head": "sparsify", "search": "search", "adapt": "adapt"}
"""Kinds of rows that are made with options of their own, and what their keys begin with in --set."""

_PLACES = ("model.image.weights", "model.text.word_vectors", "shortcuts.digits", "dense", FINE_TUNE)
_PLACES_BELOW = ("checkpoints.", "sparsify.training.checkpoint_minutes", f"{MEASURE}.")
_NAMES = ("reconstruction.targets.model", "model.text.targets.model", "sparsify.vocabulary.source")
_OPTIONAL = ("reconstruction", "model.projection")
"""Sections that some rows of a study have and others lack."""


@dataclass(frozen=True)
class LogData:
    """What ``--data`` names, of a study of a log.

    Attributes:
        path: a folder that ``diptych intent ingest`` wrote, or a file or folder of raw events.
        importer: the format of raw events, where it is not recognised.
        options: of the import, as ``diptych intent ingest`` takes them.
    """

    path: Path
    importer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choices:
    """What the user chooses.

    Attributes:
        setting: how it is run; the one that fits the data when not given.
        data: the recipes' data section; the setting's own data when not given.
        regions: an .npy file of region features, for rows that take them.
        targets: a sentence-transformers model, or ``lsa``, for rows that have latent targets.
        values: dotted keys and values for all rows; a key of what a row does not have leaves it as it is.
        positives: further judgements to measure by, ``NAME:PATH``, with options after :data:`POSITIVES_OPTION`.
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
    log: LogData | None = None

    def below(self, section: str) -> dict[str, Any]:
        """Return what was set in a section, by the rest of the keys."""
        if section in self.values:
            raise UsageError(
                f"{section} is a section, not a value", f"set its keys: --set {section}.KEY=VALUE"
            )
        start = f"{section}."
        return {key.removeprefix(start): value for key, value in self.values.items() if key.startswith(start)}


class Collections:
    """The data of a study, each read once: most rows share theirs, a pretrained one may have its own."""

    def __init__(self) -> None:
        self._read: dict[str, Collection] = {}

    def of(self, data: Data | Mapping[str, Any]) -> Collection:
        """Return the collection of a recipe's data section."""
        from diptych.training.recipe import collection_of
        from diptych.training.sections import Data

        section = data if isinstance(data, Data) else Data.model_validate(data)
        # Split names are not part of what is read.
        key = section.model_dump_json(exclude={"train", "validation", "test"})
        if key not in self._read:
            self._read[key] = collection_of(section)
        return self._read[key]

    def named(self, sections: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Collection]:
        """Return several collections by their names: those given, else their own."""
        from diptych.data.known import centric_of, known_by_name

        found: dict[str, Collection] = {}
        for given, section in sections:
            collection = self.of(section)
            own, called = known_by_name(collection.name), known_by_name(given)
            if own is not None and called is not None and own is not called:  # its numbers would be another's
                titles = f"{own.title}, not {called.title}"
                raise UsageError(
                    f"the collection called {given!r} calls itself {collection.name!r}: {titles}",
                    f"call it {own.name}=…, or as no known dataset is called",
                )
            name = given or collection.name
            same = next((one for one in found if safe_name(one).lower() == safe_name(name).lower()), None)
            if same is not None:
                both = repr(name) if same == name else f"{same!r} and {name!r}, which are one"
                raise UsageError(
                    f"two collections are called {both}", f"name them: --data NAME={section.get('path')}"
                )
            centric = collection.centric or centric_of(None, name)
            found[name] = replace(collection, name=name, centric=centric)
        return found


def collection_key(collection: Collection) -> str:
    """Return a fingerprint of texts, splits and what the pictures show, for what was measured on it."""
    return fingerprint(collection.text_fingerprint, list(collection.splits), collection.centric)


def row_folder(study: Study, row: Row, folder: Path) -> Path:
    """Return where the runs of a row are: in the study's folder, or in the one beside it that is the row's home."""
    if row.home not in ("", study.name):
        beside = folder if folder.name not in ("", "..") else folder.resolve()
        folder = beside.parent / row.home
    return folder / "rows" / row.name


def rows_in(study: Study, folder: Path) -> list[Path]:
    """Return the folders of all rows of a study."""
    return [row_folder(study, row, folder) for row in study.rows]


@dataclass(frozen=True)
class Unit:
    """A row and seed of a plan.

    Attributes:
        row, seed: which.
        shown: whether it is asked for, or only a row that others start from.
        place: where it stands in the plan, in words.
    """

    row: Row
    seed: int
    shown: bool = True
    place: str = ""


@dataclass
class Plan:
    """Rows and seeds of a study, and how each is made.

    Attributes:
        study: which.
        folder: OUT of ``diptych study run``.
        name: of the setting.
        choices: of the user, with what the setting gives where nothing was chosen.
        several: by name, what a study of several collections measures on.
        collections: what was read.
        features: folder of cached features, shared by all rows.
        accelerator: as for training.
        devices: how many of them train.
    """

    study: Study
    folder: Path
    name: SettingName
    choices: Choices
    several: Mapping[str, Collection]
    collections: Collections
    features: Path
    accelerator: str = "auto"
    devices: int = 1

    @property
    def setting(self) -> Setting:
        """How all rows are made."""
        return self.study.setting(self.name)

    @property
    def dataset(self) -> str:
        """The name of the one collection that is given; empty where the setting's own are taken."""
        return "" if self.choices.data is None else self.collections.of(self.choices.data).name

    @property
    def _holds_regions(self) -> bool:
        given = self.choices.data
        return given is not None and self.collections.of(given).holds == "regions"

    def target(self, row: Row, seed: int = BASE_SEED) -> Path:
        """Return where a row and seed is kept: in the folder of its home, which may be the one beside."""
        return row_folder(self.study, row, self.folder) / f"seed-{seed}"

    def elsewhere(self, row: Row) -> str:
        """Return what to do where what is there is another one than is wanted."""
        if row.home in ("", self.study.name):
            return "choose another folder with --out"
        home = self.target(row).parents[2]
        return f"its runs are in {home}: choose a folder in another parent folder with --out"

    # Which rows ------------------------------------------------------------------------------------

    def is_given(self, row: Row) -> bool:
        """Return whether a user gives a row instead of having it trained."""
        return bool(row.given) and row.given in self.choices.values

    def starts_from_given(self, row: Row) -> bool:
        """Return whether a row starts from an encoder that is given."""
        return row.recipe in self.setting.fine_tunes and self.choices.values.get(FINE_TUNE) is not None

    def base_of(self, row: Row) -> Row | None:
        """Return the row that ``row`` starts from; None for none, and where an encoder is given instead."""
        if row.base is None or self.starts_from_given(row):
            return None
        base = self.study.row(row.base)
        return base if row.kind in SECTIONS or base.recipe in self.setting.recipes else None

    def bases_of(self, row: Row) -> Iterator[Row]:
        """Yield the rows that ``row`` starts from or has its targets of, the first of them first."""
        if row.targets:
            yield self.study.row(row.targets)
        if (base := self.base_of(row)) is not None:
            yield from self.bases_of(base)
            yield base

    def why_not(self, row: Row) -> str | None:
        """Return why a row cannot be run as chosen; None when it can."""
        if why := self.setting.why_not(row.name):
            return why
        if row.kind in SECTIONS:  # it can be made of whatever its base is, where its engine is there
            return missing_engine(row) or self.why_not(self.study.row(str(row.base)))
        if row.kind not in ("recipe", "pretrained") or self.is_given(row):
            return None
        if row.recipe not in self.setting.recipes:
            if row.given:
                what = "RUN or ENCODER" if row.kind == "pretrained" else "RUN, ENCODER or EMBEDDINGS"
                return f"is given in this setting: --set {row.given}={what}"
            return f"the setting {self.name!r} has no recipe for {row.recipe}"
        if row.base is not None and not self.starts_from_given(row) and self.base_of(row) is None:
            return f"starts from a pretrained encoder: give one with --set {FINE_TUNE}=ENCODER"
        if row.regions and self.choices.regions is None and not self._holds_regions:
            return "needs region features: --regions FILE.npy, or --data FOLDER of SPLIT_ims.npy and SPLIT_caps.txt"
        recipe = self.recipe_of(row)
        if _stays_without_words(recipe):
            return (
                "needs word vectors, which its first stage does not train: give them with "
                "--set model.text.word_vectors=FILE.npz"
            )
        shortcuts = recipe.shortcuts
        digits = shortcuts is not None and shortcuts.on_images and not Path(shortcuts.digits).exists()
        if self.name in AS_PAPER and digits:
            return "needs MNIST's digits, as the paper has: give --set shortcuts.digits=MNIST.npz"
        return None

    def units(self, rows: Sequence[Row], seeds: Sequence[int], once: Sequence[str]) -> list[Unit]:
        """Return what to make, a row's base before the row, each once; ``once`` are rows that no seed changes."""
        shown: dict[tuple[str, int], bool] = {}
        for row in rows:
            for base in self.bases_of(row):
                shown.setdefault((base.name, BASE_SEED), False)
            fixed = row.name in once or self.is_given(row)
            shown |= {(row.name, seed): True for seed in ([BASE_SEED] if fixed else seeds)}
        names = list(dict.fromkeys(name for name, _ in shown))
        units = []
        for (name, seed), asked in shown.items():
            of_row = [one for other, one in shown if other == name]
            place = f"row {names.index(name) + 1} of {len(names)}"
            place += f", seed {of_row.index(seed) + 1} of {len(of_row)}" if len(of_row) > 1 else ""
            units.append(Unit(self.study.row(name), seed, asked, place))
        return units

    # How a row is made -----------------------------------------------------------------------------

    def options_of(self, row: Row) -> dict[str, Any]:
        """Return the dotted options of a head, a search or an adaptation."""
        section = SECTIONS[row.kind]
        own = self.choices.below(section)
        for key in own.keys() & row.options.keys():
            raise UsageError(
                f"{section}.{key} is what sets {row.name} apart: {row.options[key]}",
                "leave it out, and choose rows with --rows",
            )
        of_all = self.setting.options.get(row.kind, {})
        return {**of_all, **row.options, **self.setting.changes_of(row.name), **own}

    def recipe_of(self, row: Row, seed: int = BASE_SEED, base: Path | None = None) -> Recipe:
        """Return the complete recipe of one training."""
        changes: dict[str, Any] = {"name": f"{self.study.paper.key}.{row.name}", "seed": seed}
        if self.choices.data is not None:
            changes["data"] = dict(self.choices.data)
        fine_tuned = row.recipe in self.setting.fine_tunes
        if base is not None:
            base = base.resolve()
            changes |= {FINE_TUNE: str(base / "best")} if fine_tuned else {"warm_start": str(base)}
        if row.targets:
            run = self.target(self.study.row(row.targets)).resolve()
            changes["reconstruction.targets"] = {"kind": "dual", "model": str(run / "best")}
        where = self.choices.regions, self.dataset
        plain = plain_recipe(self.study, self.setting, row, changes, *where)
        of_row = row.options.get("reconstruction", {}).get("targets", {}).get("kind", "sentence")
        if self.choices.targets is not None and of_row == "sentence" and not row.targets:
            changes |= _targets(plain, self.choices.targets)
        for key, value in self.choices.values.items():
            if self.not_of_recipes(key) or (self.setting.fine_tunes and key == FINE_TUNE and not fine_tuned):
                continue
            if fine_tuned and key.startswith("model."):
                continue  # it brings its own model
            if not _leaves_alone(plain, row.without, key, value):
                changes[key] = value
        return plain_recipe(self.study, self.setting, row, changes, *where)

    def not_of_recipes(self, key: str) -> bool:
        """Return whether a key is about rows that have no recipe."""
        rows = (*self.study.rows, *self.study.bases)
        has = {SECTIONS[row.kind] for row in rows if row.kind in SECTIONS}
        measured = [MEASURE] if has or self.study.measured_by else []
        return key.partition(".")[0] in {*has, *measured} or key in {row.given for row in rows if row.given}

    def measuring(self, known: Sequence[str]) -> dict[str, Any]:
        """Return what a user set about measuring, of the keys that there are."""
        own = self.choices.below(MEASURE)
        for key in own:
            if key not in known:
                raise UnknownNameError("key of measure", key, known)
        return own

    def changed(self, row: Row) -> tuple[str, ...]:
        """Return the keys by which a row differs from what paper and code say, as far as a user set them.

        Keys that only say where something is make no other training, and neither does a value that the setting
        ``paper`` or ``published`` has itself.
        """
        found = []
        own = {SECTIONS.get(one.kind) for one in (row, *self.bases_of(row))}
        others = {section for section in SECTIONS.values() if section not in own}
        given = {one.given for one in (*self.study.rows, *self.study.bases)}
        for key, value in self.choices.values.items():
            section = key.partition(".")[0]
            measured = (
                self.study.of in ("log", "catalogue") and section == MEASURE and key != f"{MEASURE}.jobs"
            )
            place = key in (*_PLACES, *_NAMES) or key.startswith(_PLACES_BELOW)
            if (place and not measured) or key in given or section in others:
                continue
            if not any(_has(self, name, row, key, value) for name in ("paper", "published")):
                found.append(key)
        if self.choices.targets == "lsa":
            found.append("targets")
        return tuple(sorted(found))


def plain_recipe(
    study: Study,
    setting: Setting,
    row: Row,
    changes: Mapping[str, Any],
    regions: str | None = None,
    dataset: str = "",
) -> Recipe:
    """Return a row's recipe in a setting on a dataset, with changes."""
    from diptych.training.recipe import Recipe, override

    values = copy.deepcopy(recipe_values(study.paper.key, setting.recipes[row.recipe]))
    of_setting = setting.changes_of(row.name, dataset)
    first = {"data": changes["data"]} if "data" in changes else {}  # rows may change keys of it
    own = {**first, **row.options, **dict.fromkeys(row.without), **of_setting, **changes}
    if row.regions and regions is not None:
        options = dict(own.get("data", {}).get("options", {}))
        own["data.options"] = {**options, "regions": regions}
    for key, value in copy.deepcopy(own).items():
        override(values, key, value, row.name)
    return Recipe.read(values, f"{study.name}, {row.name}", RecipeError)


def _has(plan: Plan, name: SettingName, row: Row, key: str, value: Any) -> bool:
    """Return whether a row's recipe has a value in a setting anyway."""
    setting = plan.study.settings.get(name)
    if setting is None or row.recipe not in setting.recipes or row.kind != "recipe":
        return False
    recipe = plain_recipe(plan.study, setting, row, {"name": row.name}, dataset=plan.dataset)
    have: Any = recipe.model_dump(mode="json")
    for part in key.split("."):
        have = have[int(part)] if isinstance(have, list) else (have or {}).get(part)
    return bool(have == value)


def needs_of(study: Study, row: Row) -> str:
    """Return what a user gives for a row, besides data, to have it as the paper has it."""
    if "paper" not in study.settings:
        return ""
    plan = Plan(study, Path(), "paper", Choices(), {}, Collections(), Path())
    needs = [plan.why_not(row) or ""]
    if row.kind in ("recipe", "pretrained") and row.recipe in plan.setting.recipes:
        recipe = plan.recipe_of(row)
        image, text, latent = recipe.model.image, recipe.model.text, recipe.reconstruction
        if getattr(image, "pretrained", False) and recipe.fine_tune is None and plan.base_of(row) is None:
            backbone = getattr(image, "backbone", "")
            needs.append(f"weights of {backbone}, from the hub or --set model.image.weights=FILE")
        if (latent is not None and latent.kind == "latent") or text.kind == "targets":
            needs.append("a sentence encoder for targets: --targets MODEL")
    return "; ".join(filter(None, needs))


def missing_engine(row: Row) -> str:
    """Return what a way of searching needs and is not installed, with its pip line; empty when nothing is."""
    from importlib.util import find_spec

    from diptych.core.errors import MissingExtraError

    engine = str(row.options.get("engine", ""))
    library = {"pisa": "pyterrier_pisa", "seismic": "seismic"}.get(engine)
    if row.kind != "search" or library is None or find_spec(library) is not None:
        return ""
    return str(MissingExtraError(library, "engines", f"the {engine} engine"))


def _stays_without_words(recipe: Recipe) -> bool:
    """Return whether a first stage would read captions through random word embeddings that it does not train."""
    text = recipe.model.text
    if text.kind != "gru" or text.word_vectors is not None:
        return False
    return not any(fnmatch.fnmatch("text.embed.weight", pattern) for pattern in recipe.stages[0].train)


def _targets(recipe: Recipe, named: str) -> dict[str, Any]:
    options = {"kind": "lsa"} if named == "lsa" else {"kind": "sentence", "model": named}
    changes: dict[str, Any] = {}
    if recipe.reconstruction is not None and recipe.reconstruction.kind == "latent":
        changes |= {f"reconstruction.targets.{key}": value for key, value in options.items()}
    if recipe.model.text.kind == "targets":
        changes |= {f"model.text.targets.{key}": value for key, value in options.items()}
    return changes


def _leaves_alone(plain: Recipe, without: Sequence[str], key: str, value: Any) -> bool:
    """Return whether a key is of a section, a kind of tower or a setup of shortcuts that a row does not have, but
    its neighbours may."""
    from diptych.encoders.two_tower import ModelConfig

    for section in (*_OPTIONAL, *without):
        if key.startswith(f"{section}."):
            have: Any = plain
            for part in section.split("."):
                have = getattr(have, part)
            return have is None
    if key.startswith("shortcuts.") and plain.shortcuts is not None:
        shortcuts = plain.shortcuts
        return {
            "in_targets": plain.reconstruction is None or not shortcuts.on_captions,
            "shuffled": shortcuts.setup in ("none", "bits"),
            "compat": shortcuts.setup in ("none", "per-caption"),
            "carries": shortcuts.setup != "per-caption",
        }.get(key.removeprefix("shortcuts."), False)
    match key.split("."):
        case ["model", ("image" | "text") as tower, name, *_]:
            kinds = ModelConfig.model_fields[tower].annotation.__args__  # type: ignore[union-attr]
            fitting = [kind for kind in kinds if name in kind.model_fields and _takes(kind, name, value)]
            return bool(fitting) and type(getattr(plain.model, tower)) not in fitting
    return False


def _takes(kind: type[Options], name: str, value: Any) -> bool:
    """Return whether a key, of the names that it may have, takes a value; others are not looked at."""
    annotation = kind.model_fields[name].annotation
    return get_origin(annotation) is not Literal or value in get_args(annotation)
