"""The front door: a function for each thing that the package does, over encoders and collections in memory.

Every function takes an encoder as :func:`load` does (an object, a run, a folder, a name) and data as :func:`read`
does (a collection, a path, a table). What is computed on the way is kept: with ``out`` there, else in the cache, under
fingerprints of its content, so that it is never taken for something else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.files import cache_root, safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Tabular
from diptych.data.collection import SPLITS, Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import ORIGIN_FILE, EncodedCollection, Origin
from diptych.evaluation.result import Result
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import DEFAULT_MEASURES, Names

if TYPE_CHECKING:
    from torch import Tensor

    from diptych.analysis.cocos_report import CocosReport
    from diptych.analysis.information import Audit
    from diptych.evaluation.comparison import Comparison
    from diptych.evaluation.stress import StressResult
    from diptych.index.searcher import Searcher
    from diptych.sparse.sparsified import SparseEncoder
    from diptych.sparse.training import TrainedHead
    from diptych.studies.compare import Comparison as StudyComparison
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run

P = ParamSpec("P")
T = TypeVar("T")

AnyEncoder: TypeAlias = "DualEncoder | SparseEncoder | TrainedHead | Run | Path | str"
"""An encoder, a run (its best encoder), or what :meth:`DualEncoder.load` loads."""
AnyData: TypeAlias = "Collection | Path | str | Any"
"""A collection, the path of a dataset, ``"scenes"``, a DataFrame, a Hugging Face dataset, or a list of pairs."""
Rows: TypeAlias = "np.ndarray | Tensor | Sequence[Sequence[float]] | Path | str"
"""Embeddings: an array, a tensor, or the path of an ``.npy`` file."""


def _drawn(result: Tabular) -> str:
    from diptych.report.notebook import drawn

    return drawn(result)


Tabular.drawn = staticmethod(_drawn)


@contextmanager
def _progress() -> Iterator[None]:
    """Show progress in a notebook and on a terminal; nothing is printed where output is kept."""
    from diptych.core.context import report_to, reporting
    from diptych.report.progress import NotebookBars, in_notebook, terminal_bars

    if reporting() or not (in_notebook() or sys.stderr.isatty()):
        yield
        return
    with report_to(NotebookBars() if in_notebook() else terminal_bars()):
        yield


def _shown(function: Callable[P, T]) -> Callable[P, T]:
    """Show the progress of a function's work to whoever waits for it."""

    @wraps(function)
    def shown(*args: P.args, **kwargs: P.kwargs) -> T:
        with _progress():
            return function(*args, **kwargs)

    return shown


def load(source: AnyEncoder, *, device: str | None = None) -> Any:
    """Load an encoder; one that is an object already is returned as it is.

    Args:
        source: a run or its folder, a saved encoder's folder, a folder of a sparse head, or a name such as
            ``"hf:openai/clip-vit-base-patch32"``; ``diptych info encoders`` lists the forms.
        device: a torch device; the GPU where there is one, else the CPU, when not given.

    Returns:
        A :class:`DualEncoder`; of a sparse head's folder a :class:`SparseEncoder`.

    >>> encoder = dp.load("runs/x")
    >>> encoder.encode_texts("a red square").shape == (1, encoder.width)
    True
    """
    from diptych.sparse.sparsified import SparseEncoder
    from diptych.sparse.training import TrainedHead
    from diptych.training.run import Run

    if isinstance(source, TrainedHead):
        return source.encoder
    if isinstance(source, DualEncoder | SparseEncoder):
        return source
    name = source.folder if isinstance(source, Run) else source
    if (Path(name) / "sparse.json").is_file():
        return SparseEncoder.load(name, device=device)
    return DualEncoder.load(name, device=device)


def read(
    data: AnyData,
    split: str | None = None,
    *,
    reader: str | None = None,
    captions: str = "all",
    **options: Any,
) -> Collection:
    """Read a dataset; nothing is decoded until it is used.

    Args:
        data: the path of a folder or file in a known format; ``"scenes"`` for generated scenes; a pandas or polars
            DataFrame, or a list of dicts, with an image and a caption column; a Hugging Face dataset; or a collection.
        split: a part, such as ``"test"``; everything when not given.
        reader: the format's name, where it is not recognised.
        captions: of each image ``all``, ``first``, ``first:K``, ``random`` or ``random:SEED``.
        options: of the reader, e.g. ``images="folder/of/images"``; of scenes how many, e.g. ``n_train=400``.

    >>> dp.read("scenes", split="test", n_train=8, n_val=4, n_test=4).n_images
    4
    """
    from diptych.data.captions import choose_captions
    from diptych.data.readers import read_collection
    from diptych.encoders.embeddings import read_data

    known: dict[str, Any] = {}
    if isinstance(data, Collection):
        whole, known = data, dict(data.read_as or {})
    elif isinstance(data, str) and data == "scenes" and reader is None and not Path(data).exists():
        known = {"data": {"scenes": options}, "split": None, "captions": "all"}
        whole = read_data(known["data"])
    elif isinstance(data, Path | str):
        known = {"data": _section(data, reader, options), "split": None, "captions": "all"}
        whole = read_data(known["data"])
    else:
        is_hub = type(data).__module__.split(".")[0] == "datasets"
        whole = read_collection(data, reader or ("huggingface" if is_hub else None), **options)
    part = whole if split in (None, "all") else whole.split(str(split))
    found = choose_captions(part, captions)
    if not known:
        return found
    changes = {"split": split} if split not in (None, "all") else {}
    changes |= {} if captions == "all" else {"captions": captions}
    return replace(found, read_as={**known, **changes})


def _section(
    path: Path | str, reader: str | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a recipe's data section of a path."""
    place = str(Path(path).resolve()) if Path(path).exists() else str(path)
    return {"path": place, "reader": reader, "options": dict(options or {}), "skip_bad_images": False}


def _part(data: AnyData, split: str | None) -> Collection:
    """Return a split of what is given; without a name ``test`` where there are several, and else everything."""
    whole = data if isinstance(data, Collection) else read(data)
    sizes = whole.split_sizes
    if split is None and len(sizes) > 1 and "test" in sizes:
        split = "test"
    return whole if split in (None, "all") else read(whole, split)


def _split_of(data: Collection) -> str | None:
    sizes = list(data.split_sizes)
    return sizes[0] if len(sizes) == 1 else None


def _origin(encoder: DualEncoder, data: Collection) -> Origin | None:
    """Return how both can be found again by name; None where one of them is in memory alone."""
    if data.read_as is None or not encoder.loaded_from:
        return None
    return Origin(encoder.loaded_from, **data.read_as, centric=data.centric)


def _kept(out: Path | str | None, kind: str, *content: str) -> Path:
    """Return where results go: ``out``, or a folder of the cache that is named by what they are of."""
    return cache_root() / kind / fingerprint(*content) if out is None else Path(out)


@_shown
def encode(
    encoder: AnyEncoder,
    data: AnyData,
    split: str | None = None,
    *,
    out: Path | str | None = None,
    **work: Any,
) -> EncodedCollection:
    """Encode images and captions to embeddings on disk, or open what is there when it is the same.

    Args:
        split: the part; without it ``test`` where there are several, and ``all`` for everything.
        work: ``processes`` that share the work, and their ``accelerator``.

    Returns:
        ``images`` and ``texts`` with their ``rows`` (n, d) float32 and ``ids``, memory-mapped, and ``caption_image``.

    >>> embeddings = dp.encode("runs/x", data)
    >>> embeddings.images.rows.shape == (len(embeddings.images.ids), embeddings.images.width)
    True
    """
    from diptych.encoders.encode import encode_collection
    from diptych.sparse.sparsified import SparseEncoder, sparsify_collection

    opened, part = load(encoder), _part(data, split)
    if isinstance(opened, SparseEncoder):
        dense = encode(opened.encoder, part, "all", **work)
        folder = _kept(out, "sparse-embeddings", opened.fingerprint, part.text_fingerprint)
        return sparsify_collection(opened.sparsifier, dense, list(part.captions), folder)
    folder = _kept(out, "embeddings", opened.fingerprint, part.text_fingerprint)
    found = encode_collection(opened, part, folder, _split_of(part), **work)
    if (origin := _origin(opened, part)) is not None:
        write_json(folder / ORIGIN_FILE, asdict(origin))
    return found


@overload
def evaluate(
    encoder: AnyEncoder,
    data: AnyData,
    measures: Names = ...,
    *,
    split: str | None = ...,
    ground_truth: GroundTruth | None = ...,
    samples: int = ...,
    out: Path | str | None = ...,
    **options: Any,
) -> Result: ...


@overload
def evaluate(
    encoder: Rows,
    data: Rows | None = ...,
    measures: Names = ...,
    *,
    ground_truth: GroundTruth | None = ...,
    text_image: Sequence[int] | np.ndarray | None = ...,
    samples: int = ...,
    out: Path | str | None = ...,
    **options: Any,
) -> Result: ...


@_shown
def evaluate(
    encoder: Any,
    data: Any = None,
    measures: Names = DEFAULT_MEASURES,
    *,
    split: str | None = None,
    ground_truth: GroundTruth | None = None,
    text_image: Any = None,
    samples: int = 1000,
    out: Path | str | None = None,
    **options: Any,
) -> Result:
    """Measure retrieval in both directions, with chance levels, intervals and protocol.

    Args:
        encoder: an encoder; or (n, d) embeddings of images, dense or sparse; or, with ``data=None``, an (n, m)
            matrix of scores, or a folder of embeddings.
        data: a collection or dataset; or (m, d) embeddings of texts.
        measures: names such as ``"R@5"``, or measures of :mod:`diptych.measures`; one alone need not be in a list.
        split: the part of the data; without it ``test`` where there are several, and ``all`` for everything.
        ground_truth: which texts are relevant to which images, instead of the collection's pairs.
        text_image: the image row of each text, for embeddings that are given; image i and text i when neither is.
        samples: bootstrap resamples for 95 % intervals; 0 for none.
        out: a folder for the result and its TREC files.
        options: as of :func:`diptych.evaluation.evaluate`, e.g. ``protocol="coco-1k"``, ``ties="pessimistic"``.

    >>> dp.evaluate("runs/x", data, "R@1").protocol.n_images
    16
    >>> dp.evaluate(np.eye(4), np.eye(4)).rsum
    600.0
    """
    from diptych.evaluation.evaluate import evaluate as evaluate_rows
    from diptych.evaluation.evaluate_encoder import evaluate_encoded
    from diptych.metrics.bootstrap import Bootstrap

    if isinstance(encoder, EncodedCollection):
        encoded: EncodedCollection | None = encoder
    elif isinstance(encoder, str | Path) and EncodedCollection.is_at(encoder):
        encoded = EncodedCollection.open(encoder)
    elif _are_rows(encoder):
        encoded = None
    else:
        encoded = encode(encoder, data, split)
    if encoded is not None:
        if text_image is not None:
            raise UsageError(
                "text_image is of embeddings that are given", "leave it out, or give ground_truth"
            )
        how = {"ground_truth": ground_truth, "samples": samples, **options}
        return evaluate_encoded(encoded, out, measures, **how)
    how = {"text_image": text_image, "bootstrap": Bootstrap(samples), **options}
    result = evaluate_rows(encoder, data, ground_truth, measures, **how)
    if out is not None:
        result.save(out)
    return result


def _are_rows(given: Any) -> bool:
    """Return whether these are embeddings or scores, and no encoder or its name."""
    if isinstance(given, str | Path):
        return Path(given).suffix == ".npy"
    return hasattr(given, "shape") or isinstance(given, Sequence)


def compare(*results: Result | Path | str | Mapping[str, Any], **options: Any) -> Comparison:
    """Compare evaluations of one test set with the first: differences, intervals, corrected p-values.

    Args:
        results: results, folders of evaluated runs or of several seeds; or one mapping of names to them.
        options: as of :func:`diptych.evaluation.compare`, e.g. ``measures=["R@1", "rsum"]``.

    >>> found = dp.evaluate("runs/x", data)
    >>> dp.compare({"one": found, "other": found}, measures=["rsum"]).difference("other", "rsum").p
    1.0
    """
    from diptych.evaluation.significance import compare as compare_results
    from diptych.training.evaluations import evaluations_of

    named: dict[str, Any] = {}
    for number, one in enumerate(results, 1):
        if isinstance(one, Mapping):
            named |= one
        else:
            named[Path(one).name if isinstance(one, str | Path) else f"run {number}"] = one
    opened = {key: evaluations_of(one) if isinstance(one, str | Path) else one for key, one in named.items()}
    return compare_results(opened, **options)


@_shown
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
    from diptych.objectives.declaration import declared_as
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
        changes |= {"model": None, "features": None, "fine_tune": tuned.loaded_from or f"given:{tuned.name}"}
    if isinstance(recipe, Recipe):
        if changes:
            raise UsageError("settings of a recipe that is an object", "recipe.model_copy(update=…)")
        made = recipe
    else:
        made = load_recipe(recipe, {key: value for key, value in changes.items() if key != "model"})
    folder = Path(out) if out is not None else Path("runs") / made.name
    if (folder / Run.MARKER).is_file():
        run = Run.open(folder)
        if run.recipe != made:
            raise UsageError(f"{folder} holds a run of another recipe", "choose another folder with out")
    else:
        run = Run.prepare(folder, made)
    objective: Any = None if declared is not None else loss
    whole = collection_of(made.data) if collection is None else collection.divided()
    if not run.finished:
        fit(run, whole, objective=objective, encoder=tuned, devices=devices, accelerator=device)
    if isinstance(tuned, WrappedEncoder):
        tuned.load_weights(run.best)
    return run


@_shown
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
    from diptych.index import build_index as build
    from diptych.index.searcher import Searcher
    from diptych.index.storage import CollectionCaptions

    opened, part = load(encoder), _part(data, split)
    encoded = encode(opened, part, "all")
    sides = {"images": encoded.images, "texts": encoded.texts}
    if of not in sides:
        raise UsageError(f"of is {of!r}", "one of 'images', 'texts'")
    items, (others,) = sides.pop(of), sides.values()
    built = build(items, engine, sample=others.rows[:1000] if len(others) else None, **options)
    if (origin := _origin(getattr(opened, "encoder", opened), part)) is not None:
        built.about["origin"] = asdict(origin)
    built.captions = CollectionCaptions(part, built.about["kind"])
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
    from diptych.index.searcher import Searcher
    from diptych.sparse.searcher import searcher_of

    index = open_folder(folder)
    if encoder is None and "origin" in index.about:
        return searcher_of(index, Path(folder), None, ())
    return Searcher(index, None if encoder is None else load(encoder))


@_shown
def sparsify(
    encoder: AnyEncoder, data: AnyData, out: Path | str | None = None, device: str = "auto", **settings: Any
) -> TrainedHead:
    """Train a head that turns an encoder's dense embeddings into weights of terms; no labels are needed.

    Args:
        data: what the head learns from: its ``train`` split, or all of it where it names no splits.
        settings: sections of the head's options, e.g. ``loss={"eta": 1e-3}``, ``training={"epochs": 10}``.

    Returns:
        The head, measured on the test split: ``terms_of("two dogs")``, ``encoder`` (of images and texts), tables.

    >>> quick = {"training": {"epochs": 1, "batch_size": 16}, "vocabulary": {"size": 60}}
    >>> head = dp.sparsify("runs/x", data, out="head", **quick)
    >>> len(head.terms_of("a green cross", k=2))
    2
    """
    from diptych.core.errors import RecipeError
    from diptych.sparse.options import SparsifyOptions
    from diptych.sparse.training import train_head_on

    opened, whole = load(encoder), data if isinstance(data, Collection) else read(data)
    if "train" not in whole.split_sizes:
        whole = whole.divided()
    splits = [name for name in SPLITS if name in whole.split_sizes] or list(whole.split_sizes)[:1]
    parts = {}
    for name in splits:
        part = whole.split(name)
        parts[name] = (encode(opened, part, "all"), part)
    options = SparsifyOptions.read(settings, "sparsify", RecipeError)
    folder = _kept(out, "heads", opened.fingerprint, whole.text_fingerprint, options.model_dump_json())
    origin = _origin(opened, whole)
    how: dict[str, Any] = {"accelerator": device, "encoder": opened, "origin": origin}
    return train_head_on(parts, options, folder, (*splits, *splits[-1:] * 2)[:3], **how)


@_shown
def stress(
    encoder: AnyEncoder,
    data: AnyData,
    perturbations: Sequence[Any] | str = "all",
    *,
    split: str | None = None,
    out: Path | str | None = None,
    seeds: int | None = None,
    **options: Any,
) -> StressResult:
    """Change captions and images as people do, and measure what each change costs.

    Args:
        perturbations: names or groups (``"typos"``, ``"thesis"``), or objects of :mod:`diptych.perturbations`.
        seeds: how many draws of each; 3 when not given.
        options: as of :func:`diptych.evaluation.stress.stress`.

    >>> found = dp.stress("runs/x", data, ["character-swap"], seeds=1, samples=0, flips=10)
    >>> found.table(1).caption
    'Relative change in % of the clean value'
    """
    from diptych.analysis.perturbations import Perturbation, choose_perturbations
    from diptych.data.language.open import open_language
    from diptych.evaluation.stress import stress as stress_encoder

    opened, part = load(encoder), _part(data, split)
    given = [perturbations] if isinstance(perturbations, str | Perturbation) else list(perturbations)
    objects = [one for one in given if isinstance(one, Perturbation)]
    names = [one for one in given if isinstance(one, str)]
    chosen = objects + (choose_perturbations(names) if names else [])
    folder = _kept(
        out, "stress", opened.fingerprint, part.text_fingerprint, *sorted(one.name for one in chosen)
    )
    options.setdefault("language", open_language(collection=part))
    draws = None if seeds is None else range(seeds)
    return stress_encoder(opened, part, folder, perturbations=chosen, seeds=draws, **options)


@_shown
def audit(
    encoder: AnyEncoder, data: AnyData = None, *, out: Path | str | None = None, **options: Any
) -> Audit:
    """Measure how much of what images and captions say an encoder's embeddings hold, and of shortcuts.

    Args:
        encoder: a run, whose own data and shortcuts are audited, or an encoder.
        data: with the splits ``train``, ``val`` and ``test``; a run's own when not given.
        options: as of :func:`diptych.evaluation.auditing.audit_encoder`, e.g. ``probes=("linear",)``.

    >>> found = dp.audit("runs/x", probes=("linear",), samples=0)
    >>> 0 <= found.held("without", "image", "shared", "linear").percent <= 100
    True
    """
    from diptych.evaluation.auditing import audit_encoder
    from diptych.training.evaluations import audit_run
    from diptych.training.run import Run

    whole = None if data is None else data if isinstance(data, Collection) else read(data)
    is_run = isinstance(encoder, Run) or (isinstance(encoder, str | Path) and _is_run(encoder))
    if is_run:
        return audit_run(encoder, whole, None if out is None else Path(out), **options)  # type: ignore[arg-type]
    if whole is None:
        raise UsageError("no data to audit the encoder on", "give a collection with train, val and test")
    opened = load(encoder)
    folder = _kept(out, "audits", opened.fingerprint, whole.text_fingerprint)
    return audit_encoder(opened, whole.divided(), folder, **options)


def _is_run(source: Path | str) -> bool:
    return (Path(source) / "run.json").is_file()


@_shown
def gradient_counts(
    encoder: AnyEncoder, data: AnyData = None, loss: Any = None, **options: Any
) -> CocosReport:
    """Count contributing samples (COCOS): which candidates of a batch move a query's gradient.

    Args:
        encoder: a run, whose own data and loss are counted when they are not given, or an encoder.
        data: of which batches are drawn.
        loss: the name of a loss, or a loss.
        options: ``epsilon``, ``unit``, ``compat``, ``batch_size``, ``plan``, ``seed``.

    Source: Bleeker and de Rijke, ECIR 2022, section 5.

    >>> dp.gradient_counts("runs/x", batch_size=16).table().texts[0][0]
    'C^q'
    """
    from diptych.analysis.cocos_report import CocosOptions
    from diptych.training.evaluations import count_contributing
    from diptych.training.recipe import collection_of
    from diptych.training.run import Run

    run = encoder if isinstance(encoder, Run) else None
    if isinstance(encoder, str | Path) and _is_run(encoder):
        run = Run.open(encoder)
    if data is None and run is None:
        raise UsageError("no data to draw batches of", "give a collection")
    if data is None:
        assert run is not None
        part = collection_of(run.recipe.data).split(run.recipe.data.train)
    else:
        part = data if isinstance(data, Collection) else read(data)
    given = None if loss is None or isinstance(loss, str) else loss
    if isinstance(loss, str):
        options["objective"] = loss
    counting = CocosOptions.read(options, "gradient_counts")
    return count_contributing(run, counting, lambda: encode(encoder, part, "all"), given)


@_shown
def run_study(
    name: str,
    data: AnyData = None,
    *,
    quick: bool = False,
    out: Path | str | None = None,
    rows: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> StudyComparison:
    """Run a table of a paper, and hold what is measured against what is printed.

    Args:
        name: a study of ``diptych study list``, e.g. ``"ltd.table-1"``.
        data: the path of the dataset; with ``quick`` none: generated data.
        rows: names or the paper's numbers of some rows.
        settings: dotted keys for the recipes of all rows.

    Returns:
        Printed and measured cells with their verdicts, and the paper's claims with theirs.

    >>> dp.run_study("intent.table-6.7").study.name
    'intent.table-6.7'
    """
    from diptych.studies import STUDIES, Choices
    from diptych.studies import compare as compare_study
    from diptych.studies.runner import run_study as run

    study = STUDIES.get(name)
    given: dict[str, Any] = {"setting": "quick"} if quick else {}
    if data is not None:
        section = _section(str(data))
        given |= {"collections": ((study.name, section),)} if study.several else {"data": section}
    elif not quick and study.of != "nothing":
        raise UsageError(
            f"no data given for {name}", "give a dataset's path, or quick=True for generated data"
        )
    folder = Path(out) if out is not None else Path("studies") / safe_name(name)
    return compare_study(
        study, run(study, folder, Choices(values=settings or {}, **given), rows=rows, seeds=seeds)
    )


def top_k(queries: Rows, gallery: Rows | None = None, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``k`` best items of every query, best first; of equal scores the lower row first.

    Args:
        queries: (n, d) rows; or, without a gallery, an (n, m) matrix of scores.
        gallery: (m, d) rows, compared by inner product.

    Returns:
        (n, min(k, m)) int64 gallery rows, and their scores, float64.

    >>> dp.top_k(np.array([[0.1, 0.9, 0.5]]), k=2)[0].tolist()
    [[1, 2]]
    """
    from diptych.evaluation.evaluate import array_of, as_float32
    from diptych.metrics.sources import GivenScores
    from diptych.metrics.topk import best_of
    from diptych.metrics.topk import top_k as top_rows

    if gallery is None:
        return best_of(GivenScores(array_of(queries)), "i2t", k)
    return top_rows(as_float32(array_of(queries)), as_float32(array_of(gallery)), k)
