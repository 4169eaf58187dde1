"""From what a person names on the command line to encoders, collections and embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import field_validator

from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.data.language import Language
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import EncodedCollection, Origin
    from diptych.evaluation.sources import Named
    from diptych.training.run import Run


class DataSource(Options):
    """How a dataset is read."""

    images: Path | None = parameter(None, "Folder of images, where it is not beside the data.")
    reader: str | None = parameter(
        None, "The data's format, where it is not recognised.", names="diptych.data.readers:READERS"
    )
    reader_option: list[str] = parameter(
        [], "KEY=VALUE for the reader, e.g. caption_column=title. Repeatable."
    )

    def reader_options(self) -> dict[str, Any]:
        """Return the reader's options, the image folder among them."""
        options = parse_values(self.reader_option, "--reader-option")
        return options if self.images is None else {**options, "images": str(self.images.resolve())}


class DataSpec(DataSource):
    """Which data: what every command that reads a dataset takes."""

    data: Path | None = parameter(
        None, "A dataset: folder or file (Karpathy JSON, CSV or JSONL pairs, Hugging Face)."
    )
    skip_bad_images: bool = parameter(False, "Leave out and count images that cannot be read.")

    def check_used(self) -> None:
        """Raise a UsageError for an option that says how data is read where none is named."""
        given = [
            name for name in ("images", "reader", "reader_option", "skip_bad_images") if getattr(self, name)
        ]
        if given and self.data is None:
            flag = f"--{given[0].replace('_', '-')}"
            raise UsageError(f"{flag} without --data", "give --data: it says how that is read")

    def section(self, run: Run | None) -> dict[str, Any]:
        """Return the recipe's data section that this means; the run's own where no data is named."""
        self.check_used()
        if self.data is None:
            if run is None:
                raise UsageError("no data given", "give a dataset with --data")
            return run.recipe.data.model_dump(mode="json")
        return {
            "path": str(self.data.resolve()) if self.data.exists() else str(self.data),
            "reader": self.reader,
            "options": self.reader_options(),
            "skip_bad_images": self.skip_bad_images,
        }


class SplitOption(Options):
    """Which part of the data."""

    split: str | None = parameter(None, "The part of the data, or all; test where there is one.")


class CaptionsOption(Options):
    """Which captions."""

    captions: str = parameter("all", "Of each image: all, first, first:K, random or random:SEED.")

    @field_validator("captions")
    @classmethod
    def _known(cls, captions: str) -> str:
        from diptych.data.captions import check_caption_choice

        check_caption_choice(captions)
        return captions


class PartSpec(DataSpec, SplitOption, CaptionsOption):
    """Which part of which data, and which of its captions."""


class LanguageSpec(Options):
    """Which tagger and WordNet read captions."""

    language: str = parameter("auto", "auto, nltk, scenes or none; see diptych data resources.")
    wordnet: Path | None = parameter(None, "A WordNet's folder or file.")
    nltk_data: Path | None = parameter(None, "An NLTK data folder.")

    def open(self, collection: Collection | None) -> Language:
        """Return the language of a collection's captions."""
        from diptych.data.language.open import open_language

        return open_language(
            self.language, wordnet=self.wordnet, nltk_data=self.nltk_data, collection=collection
        )


class OutOption(Options):
    """Where results are written."""

    out: Path | None = parameter(None, "Where to write.", "--out", "-o")


class TargetOption(Options):
    """Where results are written, which has to be named."""

    out: Path = parameter(..., "Where to write.", "--out", "-o")


class SamplesOption(Options):
    """How sure a number is."""

    samples: int = parameter(1000, "Bootstrap resamples for 95 % intervals; 0 for none.", ge=0)


class SeedOption(Options):
    """What random numbers begin with."""

    seed: int = parameter(0, "Of everything random: resamples, swaps, draws.", ge=0)


def run_of(model: str) -> Run | None:
    """The run that was named; None for another source."""
    if not (Path(model) / "run.json").is_file():
        return None
    from diptych.training.run import Run

    run = Run.open(model)
    if not run.best.is_dir():
        raise UsageError(f"{model} has no trained encoder yet", f"go on with: diptych train --resume {model}")
    return run


def encoder_of(model: str) -> tuple[DualEncoder, Run | None]:
    """The encoder of a run (its best) or of any other source, and the run when it is one."""
    from diptych.encoders.dual_encoder import DualEncoder

    run = run_of(model)
    return DualEncoder.load(model), run


def named(source: str, data: DataSpec, split: str | None, sparse: bool = False, **work: Any) -> Named:
    """What was named, with the data it is used on: ``data``, or where that names none the run's own.

    With ``sparse`` it may be a sparse head, or what was embedded with one.
    """
    from diptych.evaluation.sources import Named

    run, other = run_of(source), None
    data.check_used()
    own = None if run is None else run.recipe.data.model_dump(mode="json")
    if data.data is not None:
        other = data.section(None)
    captions = getattr(data, "captions", "all")
    test = "test" if run is None else run.recipe.data.test
    kind = Named
    if any((Path(source) / name).is_file() for name in ("sparse.json", "sparsified_collection.json")):
        if not sparse:
            fix = "name the dense encoder that the head is of"
            raise UsageError(f"{source} makes or holds bags of terms", fix)
        from diptych.sparse import NamedSparse as kind
    return kind(source, other, split, captions, own, test, work)


def encoded_of(
    source: str, data: DataSpec, split: str | None, out: Path | None = None, **how: Any
) -> tuple[EncodedCollection, Origin, Path]:
    """Embeddings of a folder that ``diptych embed`` wrote, or of a run or encoder, made now."""
    return named(source, data, split, **how).encoded(out)


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


def recipe_values(given: list[str] | None, paths: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what ``--set`` says; files and folders by their whole path, so that a run finds them from anywhere.

    Args:
        given: ``KEY=VALUE`` texts.
        paths: keys whose values can be files or folders; those of recipes, when not given.
    """
    from diptych.training.recipe import PATHS

    values = parse_values(given, "--set")
    for key in PATHS if paths is None else paths:
        named = values.get(key)
        # A name such as hf:NAME or sklearn is no path, whatever lies in the folder.
        if isinstance(named, str) and named not in ("auto", "sklearn", "drawn", "lsa"):
            path = Path(named).expanduser()
            values[key] = str(path.resolve()) if path.exists() else named
    return values
