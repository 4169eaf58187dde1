"""Encoders and data: loaded, read and encoded; progress of everything that takes time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from diptych.core.context import report_to, reporting
from diptych.core.errors import UsageError
from diptych.core.files import cache_root, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Tabular
from diptych.data.captions import choose_captions
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import ORIGIN_FILE, EncodedCollection, Origin, read_data

if TYPE_CHECKING:
    from torch import Tensor

    from diptych.sparse.sparsified import SparseEncoder
    from diptych.sparse.training import TrainedHead
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
    from diptych.report.progress import NotebookBars, in_notebook, terminal_bars

    if reporting() or not (in_notebook() or sys.stderr.isatty()):
        yield
        return
    with report_to(NotebookBars() if in_notebook() else terminal_bars()):
        yield


def shown(function: Callable[P, T]) -> Callable[P, T]:
    """Show the progress of a function's work to whoever waits for it."""

    @wraps(function)
    def visible(*args: P.args, **kwargs: P.kwargs) -> T:
        with _progress():
            return function(*args, **kwargs)

    return visible


def load(source: AnyEncoder, *, device: str | None = None) -> Any:
    """Load an encoder; one that is an object already is returned as it is.

    Args:
        source: a run or its folder, a saved encoder's folder, a folder of a sparse head, or a name such as
            ``"hf:openai/clip-vit-base-patch32"``; ``diptych info encoders`` lists the forms.
        device: a torch device; the GPU where there is one, else the CPU, when not given.

    Returns:
        A :class:`DualEncoder`; of a sparse head a :class:`SparseEncoder`.

    >>> encoder = dp.load("runs/x")
    >>> encoder.encode_texts("a red square").shape == (1, encoder.width)
    True
    """
    if isinstance(source, DualEncoder):
        return source
    if not isinstance(source, str | Path):
        from diptych.sparse.sparsified import SparseEncoder
        from diptych.sparse.training import TrainedHead

        if isinstance(source, TrainedHead | SparseEncoder):
            return source.encoder if isinstance(source, TrainedHead) else source
        from diptych.training.run import Run

        if not isinstance(source, Run):
            text = f"a {type(source).__name__!r} object is no encoder"
            raise UsageError(text, "give a run, a folder, a name, or DualEncoder.wrap(images, texts)")
        source = source.folder
    if (Path(source) / "sparse.json").is_file():
        from diptych.sparse.sparsified import SparseEncoder

        return SparseEncoder.load(source, device=device)
    return DualEncoder.load(source, device=device)


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

    known: dict[str, Any] = {}
    if isinstance(data, Collection):
        if reader is not None or options:
            given = ", ".join(options) or "reader"
            raise UsageError(f"{given} is of what is read, and a collection was read", "leave it out")
        whole, known = data, dict(data.read_as or {})
    elif isinstance(data, str) and data == "scenes" and reader is None and not Path(data).exists():
        known = {"data": {"scenes": options}, "split": None, "captions": "all"}
        whole = read_data(known["data"])
    elif isinstance(data, Path | str):
        if data == "scenes" and any(name.startswith("n_") for name in options):
            raise UsageError("a folder scenes is here, which is read instead of generated ones", "rename it")
        known = {"data": section_of(data, reader, options), "split": None, "captions": "all"}
        whole = read_data(known["data"])
    else:
        is_hub = type(data).__module__.split(".")[0] == "datasets"
        whole = read_collection(data, reader or ("huggingface" if is_hub else None), **options)
    part = whole if split in (None, "all") else whole.split(str(split))
    found = choose_captions(part, captions)
    if not known:
        return found
    if captions != "all" != known["captions"]:
        return found.with_read_as(None)  # a choice among chosen captions cannot be read again
    changes = {"split": split} if split not in (None, "all") else {}
    changes |= {} if captions == "all" else {"captions": captions}
    return found.with_read_as({**known, **changes})


def section_of(
    path: Path | str, reader: str | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a recipe's data section of a path."""
    place = str(Path(path).resolve()) if Path(path).exists() else str(path)
    return {"path": place, "reader": reader, "options": dict(options or {}), "skip_bad_images": False}


def part_of(data: AnyData, split: str | None) -> Collection:
    """Return a split of what is given; without a name ``test`` where there are several, and else everything."""
    whole = data if isinstance(data, Collection) else read(data)
    sizes = whole.split_sizes
    if split is None and len(sizes) > 1 and "test" in sizes:
        split = "test"
    return whole if split in (None, "all") else read(whole, split)


def _split_of(data: Collection) -> str | None:
    sizes = list(data.split_sizes)
    return sizes[0] if len(sizes) == 1 else None


def origin_of(encoder: DualEncoder | SparseEncoder, data: Collection) -> Origin | None:
    """Return how both can be found again by name; None where one of them is in memory alone."""
    if data.read_as is None or not encoder.loaded_from:
        return None
    return Origin(encoder.loaded_from, **data.read_as, centric=data.centric)


def kept_in(out: Path | str | None, kind: str, *content: str) -> Path:
    """Return where results go: ``out``, or a folder of the cache that is named by what they are of."""
    return cache_root() / kind / fingerprint(*content) if out is None else Path(out)


@shown
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

    opened, part = load(encoder), part_of(data, split)
    if isinstance(opened, SparseEncoder):
        dense = encode(opened.encoder, part, "all", **work)
        folder = kept_in(out, "sparse-embeddings", opened.fingerprint, part.text_fingerprint)
        found: EncodedCollection = sparsify_collection(opened.sparsifier, dense, list(part.captions), folder)
    else:
        folder = kept_in(out, "embeddings", opened.fingerprint, part.text_fingerprint)
        found = encode_collection(opened, part, folder, _split_of(part), **work)
    if (origin := origin_of(opened, part)) is not None:
        write_json(folder / ORIGIN_FILE, asdict(origin))
    return found
