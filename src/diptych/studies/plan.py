"""A study as a user wants it: which rows, in which setting, on which data, and where each is kept.

The layers of a row's recipe, each over the one before: the setting's recipe for it, the row's own options, the
setting's changes, the data, then what the user sets.
"""

from __future__ import annotations

import copy
import fnmatch
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from diptych.core.errors import MissingExtraError, RecipeError, UnknownNameError, UsageError
from diptych.studies.study import AS_PAPER, Row, Setting, SettingName, Study, recipe_values

if TYPE_CHECKING:
    from diptych.core.options import Options
    from diptych.data.collection import Collection
    from diptych.training.recipe import Recipe
    from diptych.training.sections import Data

BASE_SEED = 0  # of a row that others start from: it is made once, whatever seeds they have
FINE_TUNE = "fine_tune"  # the recipe key of a pretrained encoder to start from
MEASURE = "measure"  # the section of --set about measuring
# Kind of row that is made with options of its own → their section in --set.
SECTIONS = {"head": "sparsify", "search": "search", "adapt": "adapt"}
# Kind of row that a user may give → what.
GIVEN = {"pretrained": "RUN or ENCODER", "recipe": "RUN, ENCODER or EMBEDDINGS"}
# Stands before each option of further judgements, after their NAME:PATH, as in diptych evaluate.
POSITIVES_OPTION = " --positives-option "
# Sections that some rows of a study have and others lack.
_OPTIONAL = ("reconstruction", "model.projection")


@dataclass(frozen=True)
class Choices:
    """Options of the user; what is not given is the setting's own."""

    setting: SettingName | None = None  # the one that fits the data when not given
    data: Mapping[str, Any] | None = None  # the recipes' data section; of a log, its path, reader and options
    regions: str | None = None  # an .npy file of region features
    targets: str | None = None  # a sentence-transformers model, or ``lsa``, for rows with latent targets
    values: Mapping[str, Any] = field(default_factory=dict)  # --set: dotted keys, for rows that have them
    positives: str | None = None  # further judgements, ``NAME:PATH``, with options after POSITIVES_OPTION
    # Of studies of several: a name (empty: the collection's own) and a recipe's data section for each.
    collections: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def below(self, section: str) -> dict[str, Any]:
        """Return what was set in a section, by the rest of the keys."""
        if section in self.values:
            raise UsageError(
                f"{section} is a section, not a value", f"set its keys: --set {section}.KEY=VALUE"
            )
        start = f"{section}."
        return {key.removeprefix(start): value for key, value in self.values.items() if key.startswith(start)}


class Collections:
    """The data of a study, each read once."""

    def __init__(self) -> None:
        self._read: dict[str, Collection] = {}

    def of(self, data: Data | Mapping[str, Any]) -> Collection:
        from diptych.training.recipe import collection_of
        from diptych.training.sections import Data

        section = data if isinstance(data, Data) else Data.model_validate(data)
        # Split names are not part of what is read.
        key = section.model_dump_json(exclude={"train", "validation", "test"})
        if key not in self._read:
            self._read[key] = collection_of(section)
        return self._read[key]


@dataclass(frozen=True)
class Unit:
    """A row and seed of a plan."""

    row: Row
    seed: int
    shown: bool = True  # or only a row that others start from
    place: str = ""  # row 1 of 2, seed 1 of 3


@dataclass
class Plan:
    """Rows and seeds of a study, and how each is made."""

    study: Study
    folder: Path  # OUT of ``diptych study run``
    name: SettingName
    choices: Choices  # with what the setting gives where nothing was chosen
    several: Mapping[str, Collection]  # by name, what a study of several collections measures on
    collections: Collections
    features: Path  # cached features, shared by all rows
    accelerator: str = "auto"
    devices: int = 1
    dataset: str = ""  # the name of the one collection that is given; empty where the setting's own is taken

    @property
    def setting(self) -> Setting:
        return self.study.setting(self.name)

    def target(self, row: Row, seed: int = BASE_SEED) -> Path:
        return self.study.row_folder(row, self.folder) / f"seed-{seed}"

    def elsewhere(self, row: Row) -> str:
        if row.home in ("", self.study.name):
            return "choose another folder with --out"
        home = self.target(row).parents[2]
        return f"its runs are in {home}: choose a folder in another parent folder with --out"

    def is_given(self, row: Row) -> bool:
        return bool(row.given) and row.given in self.choices.values

    def base_of(self, row: Row) -> Row | None:
        """Return the row that ``row`` starts from; None for none, and where an encoder is given instead."""
        if not row.base or self._starts_from_given(row):
            return None
        base = self.study.row(row.base)
        return base if row.kind in SECTIONS or base.recipe in self.setting.recipes else None

    def _starts_from_given(self, row: Row) -> bool:
        return row.recipe in self.setting.fine_tunes and self.choices.values.get(FINE_TUNE) is not None

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
        if row.kind in SECTIONS:  # it can be made of whatever its base is, where its engine is installed
            return _missing_engine(row) or self.why_not(self.study.row(row.base))
        if row.kind not in GIVEN or self.is_given(row):
            return None
        if row.recipe not in self.setting.recipes:
            if row.given:
                return f"is given in this setting: --set {row.given}={GIVEN[row.kind]}"
            return f"the setting {self.name!r} has no recipe for {row.recipe}"
        if row.base and not self._starts_from_given(row) and self.base_of(row) is None:
            return f"starts from a pretrained encoder: give one with --set {FINE_TUNE}=ENCODER"
        data = self.choices.data
        holds_regions = data is not None and self.collections.of(data).holds == "regions"
        if row.regions and self.choices.regions is None and not holds_regions:
            return "needs region features: --regions FILE.npy, or --data FOLDER of SPLIT_ims.npy and SPLIT_caps.txt"
        recipe = self.recipe_of(row)
        text, trained = recipe.model.text, recipe.stages[0].train
        reads_random_words = text.kind == "gru" and text.word_vectors is None
        if reads_random_words and not any(fnmatch.fnmatch("text.embed.weight", one) for one in trained):
            fix = "give them with --set model.text.word_vectors=FILE.npz"
            return f"needs word vectors, which its first stage does not train: {fix}"
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
        names, units = list(dict.fromkeys(name for name, _ in shown)), []
        for (name, seed), is_shown in shown.items():
            place = f"row {names.index(name) + 1} of {len(names)}"
            of_row = [one for other, one in shown if other == name]
            if len(of_row) > 1:
                place += f", seed {of_row.index(seed) + 1} of {len(of_row)}"
            units.append(Unit(self.study.row(name), seed, is_shown, place))
        return units

    def data_of(self, row: Row) -> Data:
        from diptych.training.sections import Data

        if row.kind in SECTIONS:
            return self.data_of(self.study.row(row.base))
        if row.recipe in self.setting.recipes:
            return self.recipe_of(row).data
        if self.choices.data is None:
            raise UsageError("no data given", "give a dataset with --data")
        return Data.model_validate(self.choices.data)

    def options_of(self, row: Row) -> dict[str, Any]:
        """Return the dotted options of a head, a search or an adaptation."""
        section = SECTIONS[row.kind]
        given = self.choices.below(section)
        for key in given.keys() & row.options.keys():
            raise UsageError(
                f"{section}.{key} is what sets {row.name} apart: {row.options[key]}",
                "leave it out, and choose rows with --rows",
            )
        of_kind = self.setting.options.get(row.kind, {})
        return {**of_kind, **row.options, **self.setting.changes_of(row.name), **given}

    def recipe_of(self, row: Row, seed: int = BASE_SEED, base: Path | None = None) -> Recipe:
        changes: dict[str, Any] = {"name": f"{self.study.paper.key}.{row.name}", "seed": seed}
        if self.choices.data is not None:
            changes["data"] = dict(self.choices.data)
        fine_tunes = self.setting.fine_tunes
        fine_tuned = row.recipe in fine_tunes
        if base is not None:
            base = base.resolve()
            changes |= {FINE_TUNE: str(base / "best")} if fine_tuned else {"warm_start": str(base)}
        if row.targets:
            run = self.target(self.study.row(row.targets)).resolve()
            changes["reconstruction.targets"] = {"kind": "dual", "model": str(run / "best")}
        plain = self._recipe(row, changes)
        of_row = row.options.get("reconstruction", {}).get("targets", {}).get("kind", "sentence")
        if self.choices.targets is not None and of_row == "sentence" and not row.targets:
            changes |= _targets(plain, self.choices.targets)
        for key, value in self.choices.values.items():
            of_others = key == FINE_TUNE and fine_tunes and not fine_tuned
            brought = fine_tuned and key.startswith("model.")  # with the encoder that it starts from
            is_its_own = self.is_of_recipes(key) and not of_others and not brought
            if is_its_own and _concerns(plain, row.without, key, value):
                changes[key] = value
        return self._recipe(row, changes)

    def _recipe(self, row: Row, changes: Mapping[str, Any]) -> Recipe:
        from diptych.training.recipe import Recipe, override

        values = copy.deepcopy(recipe_values(self.study.paper.key, self.setting.recipes[row.recipe]))
        of_setting = self.setting.changes_of(row.name, self.dataset)
        data = {"data": changes["data"]} if "data" in changes else {}  # rows may change keys of it
        layers = {**data, **row.options, **dict.fromkeys(row.without), **of_setting, **changes}
        if row.regions and self.choices.regions is not None:
            options = layers.get("data", {}).get("options", {})
            layers["data.options"] = {**options, "regions": self.choices.regions}
        for key, value in copy.deepcopy(layers).items():
            override(values, key, value, row.name)
        return Recipe.read(values, f"{self.study.name}, {row.name}", RecipeError)

    def is_of_recipes(self, key: str) -> bool:
        """Return whether a key of --set is about trainings of recipes."""
        sections = {SECTIONS[row.kind] for row in self.study.all_rows if row.kind in SECTIONS}
        if sections or self.study.measured_by:
            sections.add(MEASURE)
        return key.partition(".")[0] not in sections and all(key != row.given for row in self.study.all_rows)

    def measuring(self) -> dict[str, Any]:
        given = self.choices.below(MEASURE)
        for key in given:
            if key not in self.study.measured_by:
                raise UnknownNameError("key of measure", key, self.study.measured_by)
        return given


def needs_of(study: Study, row: Row) -> str:
    """Return what a user gives for a row, besides data, to have it as the paper has it."""
    if "paper" not in study.settings:
        return ""
    plan = Plan(study, Path(), "paper", Choices(), {}, Collections(), Path())
    needs = [plan.why_not(row) or ""]
    if row.kind in GIVEN and row.recipe in plan.setting.recipes:
        recipe = plan.recipe_of(row)
        image = recipe.model.image
        if getattr(image, "pretrained", False) and recipe.fine_tune is None and plan.base_of(row) is None:
            backbone = getattr(image, "backbone", "")
            needs.append(f"weights of {backbone}, from the hub or --set model.image.weights=FILE")
        if _targets(recipe, ""):
            needs.append("a sentence encoder for targets: --targets MODEL")
    return "; ".join(filter(None, needs))


def _missing_engine(row: Row) -> str:
    engine = str(row.options.get("engine", ""))
    library = {"pisa": "pyterrier_pisa", "seismic": "seismic"}.get(engine)
    if row.kind != "search" or library is None or importlib.util.find_spec(library) is not None:
        return ""
    return str(MissingExtraError(library, "engines", f"the {engine} engine"))


def _targets(recipe: Recipe, name: str) -> dict[str, Any]:
    options = {"kind": "lsa"} if name == "lsa" else {"kind": "sentence", "model": name}
    having = ["reconstruction"] if recipe.reconstruction and recipe.reconstruction.kind == "latent" else []
    having += ["model.text"] if recipe.model.text.kind == "targets" else []
    return {f"{section}.targets.{key}": value for section in having for key, value in options.items()}


def _concerns(recipe: Recipe, without: Sequence[str], key: str, value: Any) -> bool:
    """Return whether a key of --set reaches a recipe; one of a section, a kind of tower or a setup of shortcuts that
    it does not have, but its neighbours may, does not change it."""
    from diptych.encoders.two_tower import ModelConfig

    for section in (*_OPTIONAL, *without):
        if key.startswith(f"{section}."):
            return attrgetter(section)(recipe) is not None
    shortcuts = recipe.shortcuts
    match key.split("."):
        case ["shortcuts", name] if shortcuts is not None:
            of_setups = {
                "in_targets": recipe.reconstruction is not None and shortcuts.on_captions,
                "shuffled": shortcuts.setup not in ("none", "bits"),
                "compat": shortcuts.setup not in ("none", "per-caption"),
                "carries": shortcuts.setup == "per-caption",
            }
            return of_setups.get(name, True)
        case ["model", ("image" | "text") as tower, name, *_]:
            kinds = ModelConfig.model_fields[tower].annotation.__args__  # type: ignore[union-attr]
            fitting = [kind for kind in kinds if _takes(kind, name, value)]
            return not fitting or type(getattr(recipe.model, tower)) in fitting
    return True


def _takes(kind: type[Options], name: str, value: Any) -> bool:
    """Return whether a section has a key and takes a value, which is looked at where only some are allowed."""
    if name not in kind.model_fields:
        return False
    annotation = kind.model_fields[name].annotation
    return get_origin(annotation) is not Literal or value in get_args(annotation)
