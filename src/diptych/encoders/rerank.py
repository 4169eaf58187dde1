"""Re-rank: the rows choose the best candidates of every query, the matching head scores those again.

Pairs are scored by images, a block at a time, so that every image is read once and memory holds one block's tokens,
the candidates and their scores::

    .NAME.work/  key.json        what is made; a folder of another key is begun anew
                 i2t/ t2i/       candidates and contrastive scores of each direction
                 texts/          what the head reads of texts
                 scores.npy      of all pairs, filled block by block; a kill loses one block
                 done.json       how many blocks of images are done
"""

import logging
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diptych.core.context import check_stop, task
from diptych.core.errors import MismatchError, NumericalError, UsageError
from diptych.core.files import atomic_folder, check_replaceable, create_array, storage_errors, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import map_array, read_json
from diptych.data.collection import Collection
from diptych.data.loading import batched, read_ahead
from diptych.data.row_store import KEPT
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import DIRECTIONS, Direction
from diptych.metrics.sources import similarity as similarity_of
from diptych.metrics.topk import top_k

logger: logging.Logger = logging.getLogger(__name__)

_PICTURES = 8  # what is lost to an interruption: of COCO at k = 256 some 10,000 pairs
_PAIRS = 64
_TEXT_BLOCK = 1024

# What the head reads, by name: arrays with the item first, every item's part of the same shape and type.
PairInputs = dict[str, np.ndarray]


class MatchingEncoder(ABC):
    """The matching head of a :class:`~diptych.encoders.dual_encoder.DualEncoder`."""

    adds_contrastive: ClassVar[bool]  # whether the final score is matching + contrastive (BLIP)

    @abstractmethod
    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        """Return what the head reads of images: the image encoder's output tokens."""

    @abstractmethod
    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        """Return what the head reads of texts: the text encoder's states, or token ids, and their mask."""

    @abstractmethod
    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        """Score image i with text i: (n,) float32, the head's raw output for "they belong together"."""

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        """Score image ``rows[i]``, which do not decrease, with text i; a head may read each image only once for it."""
        return self.match({name: values[rows] for name, values in images.items()}, texts)


def finite_scores(scores: np.ndarray) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise NumericalError(
            f"the matching score of pair {int(bad[0])} is {scores[bad[0]]}",
            "the weights are corrupt or diverged, or its inputs are: load or make them again",
        )
    return np.ascontiguousarray(scores)


# Of each direction, (queries, k) rows of the gallery and their contrastive scores.
Chosen = Mapping[Direction, tuple[np.ndarray, np.ndarray]]


def pair_keys(chosen: Chosen) -> np.ndarray:
    """Return (p,) int64, ascending: image · texts + text of every pair, each once."""
    return np.unique(np.concatenate([_keys_of(chosen, name).reshape(-1) for name in chosen]))


def _keys_of(chosen: Chosen, direction: Direction) -> np.ndarray:
    items, n_texts = np.asarray(chosen[direction][0], dtype=np.int64), len(chosen["t2i"][0])
    queries = np.arange(len(items))[:, None]
    return queries * n_texts + items if direction == "i2t" else items * n_texts + queries


def reranked(
    chosen: Chosen, keys: np.ndarray, scores: np.ndarray, adds_contrastive: bool, about: Mapping[str, object]
) -> Reranked:
    """Return the candidates with the scores of their pairs."""
    sides = {
        name: Candidates(items, contrastive, scores[np.searchsorted(keys, _keys_of(chosen, name))])
        for name, (items, contrastive) in chosen.items()
    }
    return Reranked(sides["i2t"], sides["t2i"], adds_contrastive, about)


def _matched(
    head: MatchingEncoder, images: PairInputs, rows: np.ndarray, texts: PairInputs, read: np.ndarray
) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), _PAIRS):
        mine, here = rows[begin : begin + _PAIRS], read[begin : begin + _PAIRS]
        low, high = int(mine[0]), int(mine[-1]) + 1  # sorted: a slice, which copies nothing
        scores = head.match_rows(
            {name: values[low:high] for name, values in images.items()},
            mine - low,
            {name: np.asarray(values[here]) for name, values in texts.items()},
        )
        yield finite_scores(scores)


def rerank_prepared(
    encoder: MatchingEncoder,
    image_rows: np.ndarray,
    text_rows: np.ndarray,
    images: PairInputs,
    texts: PairInputs,
    k: int,
) -> Reranked:
    """Do what :func:`rerank` does with rows and inputs of the head that are in memory."""
    for what, rows, inputs in (("images", image_rows, images), ("texts", text_rows, texts)):
        counts = sorted({len(values) for values in inputs.values()})
        if counts != [len(rows)]:
            raise MismatchError(
                f"{len(rows):,} rows of {what}, and inputs of {', '.join(map(str, counts)) or 'nothing'}",
                "the head needs the inputs of the same items, in the same order",
            )
    found: Chosen = {"i2t": top_k(image_rows, text_rows, k), "t2i": top_k(text_rows, image_rows, k)}
    chosen: Chosen = {name: (items, scores.astype(np.float32)) for name, (items, scores) in found.items()}
    keys = pair_keys(chosen)
    rows, read = np.divmod(keys, len(text_rows))
    scores = np.concatenate(list(_matched(encoder, images, rows, texts, read)))
    return reranked(chosen, keys, scores, encoder.adds_contrastive, {})


def require_matching(encoder: DualEncoder) -> MatchingEncoder:
    if isinstance(encoder, MatchingEncoder):
        return encoder
    from diptych.encoders.family import FAMILIES

    known = ", ".join(family.name for family in FAMILIES if family.matches)
    raise UsageError(
        f"{encoder.describe().get('name', encoder.family)} is an encoder of the family {encoder.family!r}, "
        "which has no matching head: there is nothing to re-rank with",
        f"leave re-ranking out, or use a model of a family with a head: {known}",
    )


def stored_candidates(folder: Path | str, encoded: EncodedCollection, k: int) -> Reranked | None:
    """Return the ``k`` best candidates of each query that ``folder`` holds of ``encoded``; None where it does not."""
    if not Reranked.is_at(folder):
        return None
    found = Reranked.open(folder)
    made = {"encoder": encoded.images.encoder, "data": encoded.about["data"]}
    sizes = (found.n_images, found.n_texts) == (len(encoded.images), len(encoded.texts))
    deep_enough = found.i2t.k >= min(k, found.n_texts) and found.t2i.k >= min(k, found.n_images)
    if not sizes or not deep_enough or any(found.about.get(key) != value for key, value in made.items()):
        return None
    return found.first(k)


def rerank(
    encoder: DualEncoder,
    collection: Collection,
    encoded: EncodedCollection,
    k: int,
    *,
    folder: Path | str | None = None,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head.

    Of an interrupted call with the same ``folder``, what was done is used.
    """
    head = require_matching(encoder)
    if k < 1:
        raise UsageError(f"k is {k}, it must be at least 1")
    _check_same(encoder, collection, encoded)
    found = None if folder is None else stored_candidates(folder, encoded, k)
    if found is not None:
        return found
    for what, size in (("captions", collection.n_captions), ("images", collection.n_images)):
        if k > size:
            logger.info("k = %d, but there are %d %s: all of them are candidates", k, size, what)
    about = {
        **{name: encoded.about[name] for name in ("dataset", "split", "data")},
        "encoder": encoder.fingerprint,
        "name": encoder.describe().get("name", encoder.family),
        "k": k,
    }
    with _workplace(folder, fingerprint(about, _PICTURES, _PAIRS, head.adds_contrastive)) as work:
        result = _reranked(head, collection, encoded, work, about)
        if folder is not None:
            result.save(folder)
    return result if folder is None else Reranked.open(folder)


def _check_same(encoder: DualEncoder, collection: Collection, encoded: EncodedCollection) -> None:
    if encoder.fingerprint != encoded.images.encoder:
        raise MismatchError(
            f"the embeddings are of encoder {encoded.images.encoder}, re-ranking with {encoder.fingerprint}",
            "re-rank with the encoder that embedded, or embed again",
        )
    for what, have, want in (
        ("pictures", collection.image_ids, encoded.images.ids),
        ("captions", collection.caption_ids, encoded.texts.ids),
    ):
        if list(have) != list(want):
            pairs = enumerate(zip(have, want, strict=False))
            row = next((row for row, (one, other) in pairs if one != other), min(len(have), len(want)))
            raise MismatchError(
                f"{len(want):,} {what} were embedded, {collection.name} has {len(have):,}, others from row {row} on",
                "re-rank the split that was embedded",
            )


@contextmanager
def _workplace(target: Path | str | None, key: str) -> Iterator[Path]:
    """Yield the folder of the work that was begun under ``key``, or a new one; removed when the block succeeds."""
    if target is None:
        with tempfile.TemporaryDirectory(prefix="diptych-rerank-") as temporary:
            yield Path(temporary)
        return
    target = Path(target)
    check_replaceable(target, Reranked.marker())
    folder = target.with_name(f".{target.name}.work")
    file = folder / "key.json"
    if not file.is_file() or read_json(file) != key:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(file, key)
    with storage_errors(folder, KEPT):
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _once(folder: Path, write: Callable[[Path], None]) -> dict[str, np.ndarray]:
    """Return the arrays that ``write`` puts into a folder, memory-mapped; it is called once."""
    if not folder.is_dir():
        with atomic_folder(folder) as temporary:
            write(temporary)
    fix = f"remove {folder.parent} and run this again"
    return {file.stem: map_array(file, fix=fix) for file in folder.glob("*.npy")}


def _reranked(
    head: MatchingEncoder,
    collection: Collection,
    encoded: EncodedCollection,
    work: Path,
    about: dict[str, Any],
) -> Reranked:
    def write_candidates(name: Direction, folder: Path) -> None:
        best = similarity_of(encoded.similarity).best
        items, scores = best(encoded.images.rows, encoded.texts.rows, name, about["k"])
        np.save(folder / "items.npy", items)
        np.save(folder / "contrastive.npy", scores.astype(np.float32))

    def write_texts(folder: Path) -> None:
        arrays: dict[str, np.ndarray] = {}
        with task("reading captions", collection.n_captions, "captions") as bar:
            for begin in range(0, collection.n_captions, _TEXT_BLOCK):
                texts = list(collection.captions[begin : begin + _TEXT_BLOCK])
                for name, values in head.text_inputs(texts).items():
                    if name not in arrays:
                        shape = (collection.n_captions, *values.shape[1:])
                        arrays[name] = create_array(folder / f"{name}.npy", values.dtype.str, shape)
                    arrays[name][begin : begin + len(texts)] = values
                bar.advance(len(texts))

    chosen: dict[Direction, tuple[np.ndarray, np.ndarray]] = {}
    for name in DIRECTIONS:
        stored = _once(work / name, partial(write_candidates, name))
        chosen[name] = np.array(stored["items"]), np.array(stored["contrastive"])
    texts = _once(work / "texts", write_texts)
    keys = pair_keys(chosen)
    if not (work / "scores.npy").is_file():
        create_array(work / "scores.npy", "float32", keys.shape)
    scores = map_array(work / "scores.npy", mode="r+")
    begun = int(read_json(work / "done.json")) if (work / "done.json").is_file() else 0
    starts = np.searchsorted(keys, np.arange(collection.n_images + 1) * collection.n_captions)
    left = read_ahead(collection.item, range(begun * _PICTURES, collection.n_images))
    shown = int(starts[min(begun * _PICTURES, collection.n_images)])
    with task("re-ranking", len(keys), "pairs", shown) as bar:
        for number, items in enumerate(batched(left, _PICTURES), begun):
            first = number * _PICTURES
            last = first + len(items) - 1
            begin, end = int(starts[first]), int(starts[last + 1])
            rows, read = np.divmod(keys[begin:end], collection.n_captions)
            try:
                for found in _matched(head, head.image_inputs(items), rows - first, texts, read):
                    scores[begin : begin + len(found)] = found
                    begin += len(found)
                    bar.advance(len(found))
            except NumericalError as error:
                names = collection.image_ids
                raise NumericalError(
                    f"re-ranking images {names[first]!r} to {names[last]!r} with their captions: {error.message}",
                    error.fix,
                ) from error
            scores.flush()  # type: ignore[attr-defined]
            write_json(work / "done.json", number + 1)
            check_stop(f"stopped re-ranking after {last + 1:,} of {collection.n_images:,} images")
    return reranked(chosen, keys, scores, head.adds_contrastive, about)
