"""KEY=VALUE options of encoders and of training, as several verbs take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.options import parse_values
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions


def image_options(given: list[str] | None) -> dict[str, Any] | None:
    """The image encoder's options; files by their whole path, so that they are found from anywhere."""
    values = parse_values(given, "--image-option")
    for key, value in values.items():
        if isinstance(value, str) and Path(value).expanduser().is_file():
            values[key] = str(Path(value).expanduser().resolve())
    return values or None


def training_options(
    given: list[str] | None, named: Mapping[str, str], base: Mapping[str, Any] | None = None
) -> TrainOptions:
    """The options of training that ``--set`` and the verb's own options say."""
    from pydantic import ValidationError

    from diptych.commerce.category_to_image.options import TrainOptions

    values = parse_values(given, "--set")
    for key in values:
        if key in named:
            raise UsageError(f"--set {key}", f"say it with {named[key]}")
        if key not in TrainOptions.model_fields:
            raise UnknownNameError("training option", key, {*TrainOptions.model_fields} - {*named})
    try:
        return TrainOptions.model_validate({**(base or {}), **values})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{where} = {first['input']!r}: {first['msg']}", "see the command's --help"
        ) from None
