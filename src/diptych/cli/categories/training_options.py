"""KEY=VALUE options of encoders and of training, as several verbs take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.options import parse_values
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions

__all__ = ["image_options", "training_options"]

_OF_A_CELL = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": "--seeds"}


def image_options(given: list[str] | None) -> dict[str, Any] | None:
    """The image encoder's options; files by their whole path, so that they are found from anywhere."""
    values = parse_values(given, "--image-option")
    for key, value in values.items():
        if isinstance(value, str) and Path(value).expanduser().is_file():
            values[key] = str(Path(value).expanduser().resolve())
    return values or None


def training_options(given: list[str] | None) -> TrainOptions | None:
    """What ``--set`` changes of every training of a grid; None where it changes nothing.

    Raises:
        UnknownNameError: a key that training has not.
        UsageError: a key that the grid sets, or a value that cannot be.
    """
    values = parse_values(given, "--set")
    if not values:
        return None
    from pydantic import ValidationError

    from diptych.commerce.category_to_image.options import TrainOptions

    for key in values:
        if key in _OF_A_CELL:
            raise UsageError(f"--set {key}", f"say it with {_OF_A_CELL[key]}")
        if key not in TrainOptions.model_fields:
            raise UnknownNameError("training option", key, {*TrainOptions.model_fields} - {*_OF_A_CELL})
    try:
        return TrainOptions.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{where} = {first['input']!r}: {first['msg']}", "see diptych categories evaluate --help"
        ) from None
