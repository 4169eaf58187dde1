"""Recipe: the typed, complete description of one training.

A recipe is a TOML file whose comment on top says the command, how long it takes and the number to
expect. Unknown keys are errors. A run keeps its recipe and can be repeated from it.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from diptych.core.errors import RecipeError, UnknownNameError
from diptych.data.batches import PlanName
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.store import FeatureOptions
from diptych.encoders.two_tower import ModelConfig

__all__ = ["Batches", "Checkpoints", "Data", "Optimizer", "Recipe", "Stage", "load_recipe", "recipe_names"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Strict):
    """What is trained on.

    Attributes:
        path: a dataset's folder or file; ``--data`` sets it.
        reader: the format, when it is not recognised.
        options: the reader's options, e.g. ``images``.
        train, validation, test: split names.
        scenes: generate the embedded dataset with these options instead of reading ``path``.
        skip_bad_images: leave out and count pictures that cannot be read instead of failing.
    """

    path: str | None = None
    reader: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    train: str = "train"
    validation: str = "val"
    test: str = "test"
    scenes: dict[str, Any] | None = None
    skip_bad_images: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Data:
        if self.path is not None and self.scenes is not None:
            raise ValueError("give either path or scenes, not both")
        return self


class Batches(_Strict):
    """Which captions and images meet in a batch; see :mod:`diptych.data.batches`."""

    plan: PlanName = "distinct"
    size: int = Field(128, ge=2)
    captions_per_image: int = Field(5, ge=1)


class Optimizer(_Strict):
    """How a gradient becomes a step.

    Attributes:
        name: ``adam`` or ``adamw``.
        weight_decay: of adamw on matrices; vectors (biases, norms) and word embeddings have none.
        betas: of both.
        clip: largest global gradient norm; no clipping when not given.
        accumulate: micro-batches whose gradients are summed for one step. Each is scored against
            itself alone: a contrastive loss on 4 × 128 is not the loss on 512, it has 127 negatives.
    """

    name: Literal["adam", "adamw"] = "adam"
    weight_decay: float = Field(0.0, ge=0)
    betas: tuple[float, float] = (0.9, 0.999)
    clip: float | None = Field(2.0, gt=0)
    accumulate: int = Field(1, ge=1)


class Stage(_Strict):
    """A part of training with its own learning rate and its own trained parameters.

    Attributes:
        epochs: how many.
        learning_rate: at the top of the schedule.
        schedule: ``constant``, ``step`` (times ``decay`` every ``step_epochs``) or ``cosine`` (to
            ``final`` times the learning rate at the end of the stage), counted in steps.
        step_epochs, decay: of ``step``.
        final: of ``cosine``.
        warmup: steps over which the learning rate rises linearly from 0.
        train: patterns of parameter names; ``*`` alone unfreezes everything. By default the
            backbone stays frozen: ``["image.head.*", "text.*", "objective.*"]``.
        backbone_scale: the backbone's learning rate as a share of ``learning_rate``.
    """

    epochs: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    schedule: Literal["constant", "step", "cosine"] = "constant"
    step_epochs: int = Field(15, ge=1)
    decay: float = Field(0.1, gt=0, le=1)
    final: float = Field(0.0, ge=0, le=1)
    warmup: int = Field(0, ge=0)
    train: tuple[str, ...] = ("image.head.*", "text.*", "objective.*")
    backbone_scale: float = Field(1.0, gt=0)


class Checkpoints(_Strict):
    """When a run is saved.

    Attributes:
        every_steps: a kill loses at most this many steps.
        patience: stop after so many epochs without a better validation rsum; never when not given.
        validate_every: epochs between validations.
    """

    every_steps: int = Field(200, ge=1)
    patience: int | None = Field(None, ge=1)
    validate_every: int = Field(1, ge=1)


class Recipe(_Strict):
    """One training, complete.

    Attributes:
        name: of the run.
        description: one line.
        seed: of everything random.
        features: cache the frozen backbone's features; without it pictures are read every epoch.
        augmentation: of pictures in training when features are not cached; none when not given.
        objective: the loss's ``name`` and its options.
        precision: Fabric's: ``32-true``, ``bf16-mixed``, ``16-mixed``.
    """

    name: str = "run"
    description: str = ""
    seed: int = Field(0, ge=0)
    data: Data = Data()
    model: ModelConfig = ModelConfig()
    features: FeatureOptions | None = None
    augmentation: Augmentation | None = None
    objective: dict[str, Any] = Field(default_factory=lambda: {"name": "triplet-hardest"})
    batches: Batches = Batches()
    optimizer: Optimizer = Optimizer()
    stages: tuple[Stage, ...] = Field(min_length=1)
    checkpoints: Checkpoints = Checkpoints()
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"

    @model_validator(mode="after")
    def _consistent(self) -> Recipe:
        if "name" not in self.objective:
            raise ValueError("objective has no name")
        if self.features is not None:
            if self.augmentation is not None:
                raise ValueError("augmentation with cached features does nothing: set features.views instead")
            for number, stage in enumerate(self.stages, 1):
                if any(pattern in ("*", "image.*") or "backbone" in pattern for pattern in stage.train):
                    raise ValueError(f"stage {number} trains the backbone, whose features are cached")
        return self

    @property
    def epochs(self) -> int:
        """Of all stages."""
        return sum(stage.epochs for stage in self.stages)

    def to_toml(self) -> str:
        """The recipe as TOML, every value spelled out."""
        import tomli_w

        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
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
        text = path.read_text(encoding="utf-8")
    elif str(source) in recipe_names():
        text = (resources.files("diptych.training") / "recipes" / f"{source}.toml").read_text(
            encoding="utf-8"
        )
    else:
        raise UnknownNameError("recipe", str(source), recipe_names())
    return parse_recipe(text, str(source), overrides)


def parse_recipe(text: str, name: str, overrides: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe from TOML text; ``name`` is what errors call it."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{name} is not TOML: {error}", "see docs/recipes.md for the format") from None
    for key, value in (overrides or {}).items():
        _override(values, key, value, name)
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise _recipe_error(name, error) from None


def _override(values: dict[str, Any], key: str, value: Any, name: str) -> None:
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


def _recipe_error(name: str, error: ValidationError) -> RecipeError:
    """The first thing that is wrong, in one line, with the keys there are when one is unknown."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the recipe"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = ", ".join(_known_keys(first["loc"][:-1]))
        return RecipeError(f"{name}: unknown key {where!r}{more}", f"known there: {known}")
    message = first["msg"].removeprefix("Value error, ")
    return RecipeError(f"{name}: {where}: {message}{more}", f"got {first['input']!r}"[:200])


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Recipe
    for part in path:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return sorted(model.model_fields)
