"""Trainings, indexes and sparse heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.api.opening import (
    AnyData,
    AnyEncoder,
    encode,
    kept_in,
    load,
    origin_of,
    part_of,
    read,
    shown,
)
from diptych.core.errors import RecipeError, UsageError
from diptych.data.collection import SPLITS, Collection
from diptych.encoders.dual_encoder import EncoderHeader

if TYPE_CHECKING:
    from torch import Tensor

    from diptych.report.searcher import Searcher
    from diptych.sparse.training import TrainedHead
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run


@shown
def train(
    recipe: Recipe | Path | str,
    data: AnyData = None,
    *,
    loss: Callable[..., Tensor] | str | None = None,
    encoder: AnyEncoder | None = None,
    out: Path | str | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    devices: int = 1,
) -> Run:
    """Train a dual encoder; the same call resumes a training that was interrupted.

    Args:
        recipe: a recipe, a TOML file, or the name of one that comes with the package, such as ``"vsepp"``.
        data: what has the splits ``train`` and ``val``; the recipe's own when not given.
        loss: a loss of :mod:`diptych.losses`, its name in a recipe, or any function of (n, m) scores and
            positives, a boolean tensor of that shape, that returns a scalar tensor.
        encoder: fine-tuned whole instead of a new one: one of :func:`load`, or of two modules
            (:meth:`DualEncoder.wrap`), which have the trained weights afterwards.
        out: the run's folder; ``runs/NAME`` when not given.
        settings: dotted keys of the recipe, e.g. ``{"stages.0.epochs": 5, "batches.size": 64}``.

    Returns:
        The finished run; ``dp.load(run)`` is its best encoder.

    >>> short = {"stages.0.epochs": 1, "batches.size": 16}
    >>> run = dp.train("scenes", data, loss=dp.losses.InfoNCE(0.05), out="runs/infonce", settings=short)
    >>> run.recipe.objective["temperature"]
    0.05
    """
    from diptych.encoders.wrapped import WrappedEncoder
    from diptych.objectives.declaration import declared_as, name_of
    from diptych.training.fine_tune import GIVEN
    from diptych.training.fit import fit
    from diptych.training.recipe import Recipe, collection_of, load_recipe
    from diptych.training.run import Run

    changes = dict(settings or {})
    collection = None if data is None else data if isinstance(data, Collection) else read(data)
    if collection is not None:
        known = (collection.read_as or {}).get("data") or {}
        changes |= {"data.path": known.get("path"), "data.scenes": known.get("scenes")}
        changes |= {"data.reader": known.get("reader"), "data.options": known.get("options") or {}}
    declared = {"name": loss} if isinstance(loss, str) else declared_as(loss)
    if declared is not None:
        changes["objective"] = declared
    tuned = None if encoder is None else load(encoder)
    if tuned is not None:
        changes |= {"features": None, "fine_tune": tuned.loaded_from or f"{GIVEN}{tuned.name}"}
    if isinstance(recipe, Recipe):
        if changes:
            raise UsageError("settings of a recipe that is an object", "recipe.model_copy(update=…)")
        made = recipe
    else:
        made = load_recipe(recipe, changes)
    folder = Path(out) if out is not None else Path("runs") / made.name
    if (folder / Run.MARKER).is_file():
        run = Run.open(folder)
        if run.recipe != made:
            raise UsageError(f"{folder} holds a run of another recipe", "choose another folder with out")
    else:
        run = Run.prepare(folder, made)
    objective: Any = None if declared is not None else loss
    whole = collection_of(made.data) if collection is None else collection.divided()
    if run.finished:  # a recipe does not say what was given in memory
        data_now = whole.split(made.data.train).text_fingerprint
        request = {"data": data_now, "objective": None if objective is None else name_of(objective)}
        if tuned is not None and tuned.fingerprint != EncoderHeader.open(run.best).fingerprint:
            request["fine_tune"] = tuned.fingerprint
        run.check(request, whole=False)
    else:
        fit(run, whole, objective=objective, encoder=tuned, devices=devices, accelerator=device)
    if isinstance(tuned, WrappedEncoder):
        tuned.load_weights(run.best)
    return run


@shown
def build_index(
    encoder: AnyEncoder,
    data: AnyData,
    engine: str | None = None,
    *,
    of: str = "images",
    split: str | None = None,
    out: Path | str | None = None,
    **options: Any,
) -> Searcher:
    """Encode a collection and index its images or captions.

    Args:
        engine: a name of ``diptych info engines``; exact search when not given.
        of: ``"images"`` or ``"texts"``.
        split: the part; without it ``test`` where there are several, and ``all`` for everything.
        out: a folder that the index is saved in.
        options: of the engine, e.g. ``ef_construction=200``.

    Returns:
        What ``search`` (a sentence, an image, a row) and ``add`` are called on.

    >>> index = dp.build_index("runs/x", data, engine="exact", out="index")
    >>> len(index.search("a red square", k=5))
    5
    """
    from diptych.report.searcher import Searcher
    from diptych.service.indexing import index_encoded

    if of not in ("images", "texts"):
        raise UsageError(f"of is {of!r}", "one of 'images', 'texts'")
    opened, part = load(encoder), part_of(data, split)
    built = index_encoded(encode(opened, part, "all"), of, engine, part, options)
    if (origin := origin_of(opened, part)) is not None:
        built.about["origin"] = asdict(origin)
    if out is not None:
        built.save(out)
    return Searcher(built, opened, collection=part)


def open_index(folder: Path | str, encoder: AnyEncoder | None = None) -> Searcher:
    """Open a saved index with the encoder of its queries: the one that it was built with, or another.

    >>> index = dp.build_index("runs/x", data, out="index")
    >>> dp.open_index("index").search("a red square", k=3)[0].name == index.search("a red square")[0].name
    True
    """
    from diptych.index import open_index as open_folder
    from diptych.report.searcher import Searcher, searcher_of

    index = open_folder(folder)
    if encoder is None and "origin" in index.about:
        return searcher_of(index, Path(folder), None, ())
    return Searcher(index, None if encoder is None else load(encoder))


@shown
def sparsify(
    encoder: AnyEncoder, data: AnyData, out: Path | str | None = None, device: str = "auto", **settings: Any
) -> TrainedHead:
    """Train a head that turns an encoder's dense embeddings into weights of terms; no labels are needed.

    Args:
        data: what the head learns from: its ``train`` split; where it names none, splits by a hash of names.
        settings: sections of the head's options, e.g. ``loss={"eta": 1e-3}``, ``training={"epochs": 10}``.

    Returns:
        The head, measured on the last of its splits (``test`` as a rule):
        ``terms_of("two dogs")``, ``encoder`` (of images and texts), tables.

    >>> quick = {"training": {"epochs": 1, "batch_size": 16}, "vocabulary": {"size": 60}}
    >>> head = dp.sparsify("runs/x", data, out="head", **quick)
    >>> len(head.terms_of("a green cross", k=2))
    2
    """
    from diptych.sparse.options import SparsifyOptions
    from diptych.sparse.training import train_head_on

    opened, whole = load(encoder), data if isinstance(data, Collection) else read(data)
    if "train" not in whole.split_sizes:
        whole = whole.divided()
    if "train" not in whole.split_sizes:
        found = ", ".join(whole.split_sizes)
        raise UsageError(f"{whole.name} has no split 'train' to learn from, only {found}", "read all of it")
    splits = [name for name in SPLITS if name in whole.split_sizes]
    parts = {}
    for name in splits:
        part = whole.split(name)
        parts[name] = (encode(opened, part, "all"), part)
    options = SparsifyOptions.read(settings, "sparsify", RecipeError)
    folder = kept_in(out, "heads", opened.fingerprint, whole.text_fingerprint, options.model_dump_json())
    origin = origin_of(opened, whole)
    how: dict[str, Any] = {"accelerator": device, "encoder": opened, "origin": origin}
    return train_head_on(parts, options, folder, SPLITS, **how)
