"""Recipe: the typed, complete description of one training.

A recipe is a TOML file whose comment on top says the command, how long it takes and the number to
expect. Unknown keys are errors. A run keeps its recipe and can be repeated from it.
"""

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.analysis.shortcuts.codes import ShortcutOptions, check_fit
from diptych.core.errors import ImageError, RecipeError, UnknownNameError, UsageError, nearest_path
from diptych.core.options import Options
from diptych.core.reading import file_errors, read_text
from diptych.data.collection import Collection
from diptych.encoders.embeddings import read_data
from diptych.encoders.image_tower import ImageTowerConfig
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.two_tower import ModelConfig
from diptych.objectives import OBJECTIVES, Objective
from diptych.training.features import FeatureOptions
from diptych.training.sections import (
    Averaging,
    Batches,
    CaptionAugmentation,
    Checkpoints,
    Data,
    Optimizer,
    Reconstruction,
    Stage,
)

# Dotted keys whose values can be files or folders.
PATHS = (
    *("warm_start", "fine_tune", "shortcuts.digits", "model.image.weights", "model.text.word_vectors"),
    "reconstruction.targets.model",
)


class Recipe(Options):
    """One training, complete.

    Attributes:
        name: of the run.
        description: one line.
        seed: of everything random.
        features: cache the frozen backbone's features; without it images are read every epoch.
        augmentation: of images in training when features are not cached; none when not given.
        caption_augmentation: of captions in training; none when not given.
        shortcuts: meaningless numbers on images and captions in training, and how; none when not
            given.
        objective: the loss's ``name`` and its options.
        reconstruction: a decoder next to the objective; none when not given.
        averaging: stochastic weight averaging; none when not given.
        warm_start: a run or an encoder folder whose weights and vocabulary training begins with;
            what it does not have begins fresh.
        fine_tune: a whole encoder that is trained further, instead of a ``model`` of the recipe: a
            folder of transformers, of open_clip or of this package, or a name such as ``hf:NAME``. A
            stage that does not say what it trains then trains everything, and a learned temperature
            begins as the encoder's.
        precision: Fabric's: ``32-true``, ``bf16-mixed``, ``16-mixed``; ``auto`` is ``bf16-mixed`` where the
            device computes in bfloat16, else ``32-true``, and the run's ``environment.json`` says which.
        threads: that compute a step on the CPU; as many as PyTorch takes when not given. A small network
            needs the fewest CPU seconds with one, and its numbers are then those of any machine.
    """

    name: str = "run"
    description: str = ""
    seed: int = Field(0, ge=0)
    data: Data = Data()
    model: ModelConfig = ModelConfig()
    features: FeatureOptions | None = None
    augmentation: Augmentation | None = None
    caption_augmentation: CaptionAugmentation | None = None
    shortcuts: ShortcutOptions | None = None
    objective: dict[str, Any] = Field(default_factory=lambda: {"name": "triplet-hardest"})
    reconstruction: Reconstruction | None = None
    averaging: Averaging | None = None
    warm_start: str | None = None
    fine_tune: str | None = None
    batches: Batches = Batches()
    optimizer: Optimizer = Optimizer()
    stages: tuple[Stage, ...] = Field(min_length=1)
    checkpoints: Checkpoints = Checkpoints()
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "32-true"
    threads: int | None = Field(None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _all_is_trained(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("fine_tune") is None:
            return values
        stages = values.get("stages")
        if not isinstance(stages, list | tuple):
            return values
        return {**values, "stages": [_whole(stage) for stage in stages]}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not isinstance(self.objective.get("name"), str):
            raise ValueError("objective has no name")
        # Now, not after hours of computing features.
        for conflicts in (self._fine_tune_conflicts, self._shortcut_conflicts, self._conflicts):
            if message := next((message for message, holds in conflicts().items() if holds), ""):
                raise ValueError(message)
        return self

    def _conflicts(self) -> dict[str, Any]:
        """Return messages, each with whether it applies: options that exclude each other."""
        image, text, rebuilt = self.model.image, self.model.text, self.reconstruction
        vectors = text.kind == "targets"
        unfrozen = [
            number
            for number, stage in enumerate(self.stages, 1)
            if any(pattern in ("*", "image.*") or "backbone" in pattern for pattern in stage.train)
        ]
        return {
            f"objective {self.objective['name']!r} scores images with images, which similarity "
            f"{self.model.similarity!r} is not made for: it tells the two sides apart": (
                self.make_objective().needs_within and self.model.similarity != "cosine"
            ),
            "region features are neither augmented nor cached: leave both sections out": (
                image.kind == "regions" and (self.augmentation or self.features)
            ),
            "captions as their own targets cannot be shuffled: leave shuffled out": (
                text.kind == "targets" and text.targets.shuffled
            ),
            "a caption tower of kind 'targets' reads no words: no caption_augmentation": (
                vectors and self.caption_augmentation is not None
            ),
            "a caption tower of kind 'targets' reads no words to reconstruct": (
                vectors and rebuilt is not None and rebuilt.kind == "input"
            ),
            "augmentation with cached features does nothing: set features.views instead": (
                self.features is not None and self.augmentation is not None
            ),
            "features are cached with running statistics: leave batch-statistics out": (
                self.features is not None and getattr(image, "compat", "none") == "batch-statistics"
            ),
            f"stage {next(iter(unfrozen), 0)} trains the backbone, whose features are cached": (
                self.features is not None and unfrozen
            ),
        }

    def _fine_tune_conflicts(self) -> dict[str, Any]:
        if self.fine_tune is None:
            return {}
        return {
            "fine_tune brings its own model: leave the section [model] out": self.model != ModelConfig(),
            "fine_tune and warm_start are two beginnings: leave one of them out": self.warm_start is not None,
            "fine_tune trains on images, not on cached features: leave [features] out": self.features
            is not None,
        }

    def _shortcut_conflicts(self) -> dict[str, Any]:
        """Return messages, each with whether it applies: digits that a tower cannot see."""
        shortcuts, rebuilt = self.shortcuts, self.reconstruction
        if shortcuts is None:
            return {}
        image, text = self.model.image, self.model.text
        size = ""
        if shortcuts.on_images and self.fine_tune is None and isinstance(image, ImageTowerConfig):
            side = image.preprocessing.size
            try:
                check_fit(side, side, 1, shortcuts.digit_size)
            except ImageError as error:
                size = f"{error.message}; {error.fix}"
        words = rebuilt is not None and rebuilt.kind == "input"
        return {
            "targets of captions with their shortcuts cannot be shuffled: leave one of them out": (
                rebuilt is not None and rebuilt.targets.shuffled and shortcuts.in_targets
            ),
            size: size,
            "cached features cannot see digits on images: leave [features] out": (
                shortcuts.on_images and self.features is not None
            ),
            "region features cannot carry digits: only shortcuts.setup = 'captions' can be had": (
                shortcuts.on_images and image.kind == "regions"
            ),
            "a caption tower of kind 'targets' reads no digits: give one that reads words": (
                shortcuts.on_captions and text.kind == "targets"
            ),
            "model.text.word_dropout would drop digits too: [caption_augmentation] does not": (
                shortcuts.on_captions and text.kind == "gru" and text.word_dropout
            ),
            "reconstruction.kind = 'input' decodes the words that the tower reads, digits included: "
            "say so with shortcuts.in_targets = true, or decode latent targets": (
                shortcuts.on_captions and words and not shortcuts.in_targets
            ),
            "shortcuts.in_targets without a reconstruction does nothing": (
                shortcuts.in_targets and rebuilt is None
            ),
        }

    def make_objective(self, learned: Mapping[str, float] | None = None) -> Objective:
        """Return the objective with its options, a new one each time.

        Args:
            learned: where options that are learned start when the recipe does not say.

        Raises:
            UnknownNameError: there is no such objective.
            UsageError: an option that it does not have, or a value that is impossible.
        """
        options = {key: value for key, value in self.objective.items() if key != "name"}
        kind = OBJECTIVES.get(self.objective["name"])
        for name, value in (learned or {}).items():
            if {**kind.options, **options}.get(f"learn_{name}") is True:
                options.setdefault(name, value)
        return kind(**options)

    @property
    def epochs(self) -> int:
        """Return the number of epochs of all stages."""
        return sum(stage.epochs for stage in self.stages)

    def to_toml(self) -> str:
        """Return the recipe as TOML, every value spelled out."""
        import tomli_w

        # A model of the recipe's own would not be the one that is fine-tuned.
        left_out = None if self.fine_tune is None else {"model"}
        return tomli_w.dumps(_without_none(self.model_dump(mode="json", exclude=left_out)))


def _whole(stage: Any) -> Any:
    if isinstance(stage, Stage):
        return stage if "train" in stage.model_fields_set else stage.model_copy(update={"train": ("*",)})
    return {"train": ["*"], **stage} if isinstance(stage, dict) else stage


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


def recipe_names() -> list[str]:
    """Return the recipes that come with the package."""
    folder = resources.files("diptych.training") / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_recipe(source: Path | str, overrides: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe.

    Args:
        source: a TOML file, or the name of a recipe that comes with the package.
        overrides: dotted keys and values that replace the file's, e.g. ``{"batches.size": 64}``;
            ``stages.0.epochs`` reaches into a list.

    Raises:
        UnknownNameError: no such file or recipe.
        RecipeError: not TOML, an unknown key, or a value that its key does not allow.
    """
    path = Path(source)
    if path.is_file():
        text = read_text(path, error=RecipeError, fix="save it as UTF-8")
    elif str(source) in recipe_names():
        text = (resources.files("diptych.training") / "recipes" / f"{source}.toml").read_text(
            encoding="utf-8"
        )
    else:
        if near := nearest_path(source) if path.suffix else "":
            raise RecipeError(f"{source} does not exist", near)
        raise UnknownNameError("recipe", str(source), recipe_names())
    return parse_recipe(text, str(source), overrides)


def parse_recipe(text: str, name: str, overrides: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe from TOML text; ``name`` is what errors call it."""
    with file_errors(name, RecipeError, "see docs/reference/recipes.md for the format", noun="TOML"):
        values = tomllib.loads(text)
    for key, value in (overrides or {}).items():
        override(values, key, value, name)
    return Recipe.read(values, name, RecipeError)


def override(values: dict[str, Any], key: str, value: Any, name: str) -> None:
    """Put a value in the place of a dotted key; ``name`` is what errors call the recipe."""
    *path, last = key.split(".")
    place: Any = values
    try:
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    except (IndexError, ValueError, TypeError, AttributeError):
        raise RecipeError(
            f"{name} has no place for {key!r}", "e.g. batches.size or stages.0.epochs"
        ) from None


def collection_of(data: Data) -> Collection:
    """Read or generate the data of a recipe; where it names no splits, they are assigned."""
    collection = read_data(dict(data)).divided()
    if data.images is None:
        return collection
    splits = np.asarray(collection.splits)
    train, others = (np.flatnonzero((splits == data.train) == is_train) for is_train in (True, False))
    if data.images > len(train):
        raise UsageError(f"data.images {data.images} of {len(train)} images to train on", "give fewer")
    chosen = np.random.default_rng(0).permutation(train)[: data.images]
    return collection.subset(np.sort(np.concatenate([chosen, others])))


def whole_paths(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return values of ``keys`` that are files or folders by their whole path, so that they are found from anywhere."""
    for key in keys:
        named = values.get(key)
        # A name such as hf:NAME or sklearn is no path, whatever lies in the folder.
        if isinstance(named, str) and named not in ("auto", "sklearn", "drawn", "lsa"):
            path = Path(named).expanduser()
            values[key] = str(path.resolve()) if path.exists() else named
    return values
