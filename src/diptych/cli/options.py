"""Options that several verbs share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.core.errors import UsageError

__all__ = [
    "Data",
    "Images",
    "Model",
    "OutFolder",
    "ReaderName",
    "ReaderOptions",
    "SkipBadImages",
    "Source",
    "Split",
    "parse_values",
]

Source = Annotated[
    str,
    typer.Argument(
        help="A run, a folder that diptych embed wrote, a saved encoder, or a name such as hf:NAME.",
        show_default=False,
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        help="A run, a saved encoder's folder, or a name such as hf:openai/clip-vit-base-patch32.",
        show_default=False,
    ),
]

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="A dataset: folder or file (Karpathy JSON, CSV/JSONL pairs, Hugging Face).",
        show_default=False,
    ),
]
Images = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of pictures, where it is not beside the data.", show_default=False),
]
ReaderName = Annotated[
    str | None,
    typer.Option(
        "--reader",
        help="The data's format, where it is not recognised: karpathy, pairs, huggingface.",
        show_default=False,
    ),
]
ReaderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--reader-option",
        help="KEY=VALUE for the reader, e.g. caption_column=title. Repeatable.",
        show_default=False,
    ),
]
SkipBadImages = Annotated[
    bool, typer.Option("--skip-bad-images", help="Leave out and count pictures that cannot be read.")
]
Split = Annotated[
    str | None, typer.Option(help="The part of the data; test where there is one.", show_default=False)
]
OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Where to write.", show_default=False)]


def parse_values(given: list[str] | None, flag: str) -> dict[str, Any]:
    """``KEY=VALUE`` texts to values: TOML where they are TOML, texts where not.

    Raises:
        UsageError: one without an equals sign.
    """
    import tomllib

    values: dict[str, Any] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} {text!r} is not KEY=VALUE", f"e.g. {flag} batches.size=64")
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = value
    return values
