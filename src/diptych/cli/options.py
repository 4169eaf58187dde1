"""Options that several verbs share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.core.errors import UsageError

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
        help="The data's format, where it is not recognised; diptych info lists the readers.",
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
Captions = Annotated[
    str,
    typer.Option(
        "--captions",
        help="Which captions of each picture count: all, first, first:K, random or random:SEED.",
    ),
]
OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Where to write.", show_default=False)]
LanguageName = Annotated[
    str,
    typer.Option("--language", help="Tagger and WordNet: auto, nltk, scenes or none; see diptych resources."),
]
WordNetPath = Annotated[
    Path | None, typer.Option("--wordnet", help="A WordNet's folder or file.", show_default=False)
]
NltkData = Annotated[
    Path | None, typer.Option("--nltk-data", help="An NLTK data folder.", show_default=False)
]


def options_by_name(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """What ``--set NAME.KEY=VALUE`` says of perturbations, by name."""
    options: dict[str, dict[str, Any]] = {}
    for text, value in parse_values(given, "--set").items():
        name, point, key = text.partition(".")
        if not point or not key:
            raise UsageError(
                f"--set {text}={value} is not NAME.KEY=VALUE", "e.g. --set character-swap.edits=2"
            )
        options.setdefault(name, {})[key] = value
    return options


def least_and_most(given: str, flag: str, what: str) -> list[int]:
    """``"3"`` or ``"2-9"`` as the least and the most."""
    first, dash, last = given.partition("-")
    try:
        return [int(first), int(last if dash else first)]
    except ValueError:
        raise UsageError(
            f"{flag} {given!r} is no number of {what}", f"e.g. {flag} 1, or {flag} 1-3"
        ) from None


def parse_values(given: list[str] | None, flag: str) -> dict[str, Any]:
    """``KEY=VALUE`` texts to values: TOML where they are TOML, texts where not, None for ``KEY=``."""
    import tomllib

    values: dict[str, Any] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} {text!r} is not KEY=VALUE", f"e.g. {flag} batches.size=64")
        if not value:
            values[key] = None
            continue
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = value
    return values


_PATHS = (
    *("warm_start", "fine_tune", "shortcuts.digits"),
    *("model.image.weights", "model.text.word_vectors", "reconstruction.targets.model"),
    *("dense", "clip", "x-vlm", "measure.words", "sparsify.vocabulary.source"),
    *("align", "altclip", "groupvit", "encoder", "bag"),
    *("measure.relevance", "measure.wordnet", "measure.nltk_data"),
    *("features.weights",),
)
"""Recipe keys whose values can be files or folders."""


def recipe_values(given: list[str] | None) -> dict[str, Any]:
    """What ``--set`` says; files and folders by their whole path, so that a run finds them from anywhere."""
    values = parse_values(given, "--set")
    for key in _PATHS:
        named = values.get(key)
        # A name such as hf:NAME or sklearn is no path, whatever lies in the folder.
        if isinstance(named, str) and named not in ("auto", "sklearn", "drawn", "lsa"):
            path = Path(named).expanduser()
            values[key] = str(path.resolve()) if path.exists() else named
    return values
