"""From what a user names on the command line to encoders, collections and embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.core.errors import UsageError
from diptych.core.options import parse_values
from diptych.data.source import DataSpec

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import EncodedCollection, Origin
    from diptych.evaluation.sources import Named
    from diptych.training.run import Run


def run_of(model: str) -> Run | None:
    if not (Path(model) / "run.json").is_file():
        return None
    from diptych.training.run import Run

    run = Run.open(model)
    if not run.best.is_dir():
        raise UsageError(f"{model} has no trained encoder yet", f"resume it: diptych train --resume {model}")
    return run


def encoder_of(model: str) -> tuple[DualEncoder, Run | None]:
    """The encoder of a run (its best) or of any other source, and the run when it is one."""
    from diptych.encoders.dual_encoder import DualEncoder

    run = run_of(model)
    return DualEncoder.load(model), run


def named(source: str, data: DataSpec, split: str | None, sparse: bool = False, **work: Any) -> Named:
    """Return what was named, with the data it is used on: ``data``, or where that names none the run's own.

    With ``sparse`` it may be a sparse head, or what was embedded with one.
    """
    from diptych.evaluation.sources import Named

    run, kind = run_of(source), Named
    data.check_used()
    own = None if run is None else run.recipe.data.model_dump(mode="json")
    other = None if data.data is None else data.section()
    if any((Path(source) / name).is_file() for name in ("sparse.json", "sparsified_collection.json")):
        if not sparse:
            raise UsageError(
                f"{source} makes or holds bags of terms", "name the dense encoder that the head is of"
            )
        from diptych.sparse.sparsified import NamedSparse as kind
    captions = getattr(data, "captions", "all")
    return kind(source, other, split, captions, own, "test" if own is None else own["test"], work)


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


def recipe_values(given: list[str] | None, paths: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what ``--set`` says; files and folders by their whole path, so that a run finds them from anywhere.

    Args:
        given: ``KEY=VALUE`` texts.
        paths: keys whose values can be files or folders; those of recipes, when not given.
    """
    from diptych.training.recipe import PATHS, whole_paths

    return whole_paths(parse_values(given, "--set"), PATHS if paths is None else paths)
