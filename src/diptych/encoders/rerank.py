"""Re-rank: the rows choose the best candidates of every query, the matching head scores those again.

Both directions are chosen first; a pair that both chose is scored once. Pairs are worked off by pictures,
a block at a time, so that every picture is read and encoded once and memory holds one block's tokens, the
candidates and nothing else. What the head needs of texts lies in memory-mapped files until the end.

Scores are kept block by block: whoever is interrupted and asks again loses one block.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diptych.core.context import check_stop, task
from diptych.core.errors import (
    DataError,
    MismatchError,
    NumericalError,
    StorageError,
    UsageError,
)
from diptych.core.files import create_array, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import map_array, read_json
from diptych.data.collection import Collection
from diptych.data.loading import batched, read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.matching import MatchingEncoder, PairInputs
from diptych.encoders.rerank_pairs import PairBlock, PairPlan, match_pairs
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import DIRECTIONS
from diptych.metrics.sources import similarity as similarity_of

# Where re-ranking keeps what it has: candidates, what the head reads of texts, scores block by block.
#
# ::
#
#     .NAME.work/  work.json          what is being made, written once the candidates are there
#                  i2t_items.npy …    candidates and contrastive scores of both directions
#                  i2t_matching.npy … scores, filled as they come
#                  text_NAME.npy …    what the head reads of texts; texts.json once they are whole
#                  done.json          how many blocks of pictures are done


class Workplace:
    """One re-ranking under way; make one with :meth:`at`."""

    def __init__(self, folder: Path, target: Path | None) -> None:
        self.folder, self.target = folder, target
        self._matching: dict[str, np.ndarray] = {}

    @classmethod
    @contextmanager
    def at(cls, target: Path | str | None, key: str) -> Iterator[Self]:
        """The work for ``target`` that was begun under ``key``, or a new one.

        What was begun for something else is thrown away. A work without a target is gone afterwards; one
        with a target stays until :meth:`finished`, so that it can be taken up again.
        """
        if target is None:
            with tempfile.TemporaryDirectory(prefix="diptych-rerank-") as temporary:
                yield cls(Path(temporary), None)
            return
        target = Path(target)
        strange = target.exists() and not Reranked.is_at(target)
        if strange and (not target.is_dir() or any(target.iterdir())):  # seen before the work, not after it
            raise UsageError(
                f"{target} holds other things (no {Reranked.marker()})", "give a new or empty folder"
            )
        folder = target.with_name(f".{target.name}.work")
        with _writing(folder):
            if folder.exists() and not _is_of(folder, key):
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "key.json", key)
        yield cls(folder, target)

    @property
    def done(self) -> int:
        """How many blocks of pictures are scored."""
        file = self.folder / "done.json"
        return int(read_json(file)) if file.is_file() else 0

    def candidates(self, encoded: EncodedCollection, k: int) -> dict[str, Candidates]:
        """Both directions: the ``k`` best of each query by the rows, with room for their scores."""
        if not (self.folder / "work.json").is_file():
            best = similarity_of(encoded.similarity).best
            for name in DIRECTIONS:
                items, scores = best(encoded.images.rows, encoded.texts.rows, name, k)
                with _writing(self.folder):
                    np.save(self.folder / f"{name}_items.npy", items)
                    np.save(self.folder / f"{name}_contrastive.npy", scores.astype(np.float32))
                    create_array(self.folder / f"{name}_matching.npy", "float32", items.shape)
            write_json(self.folder / "work.json", {"k": k})
        for name in DIRECTIONS:
            self._matching[name] = _mapped(self.folder / f"{name}_matching.npy", "r+")
        return {
            name: Candidates(
                _mapped(self.folder / f"{name}_items.npy"),
                _mapped(self.folder / f"{name}_contrastive.npy"),
                self._matching[name],
            )
            for name in DIRECTIONS
        }

    def texts(self, blocks: Iterable[PairInputs], count: int) -> PairInputs:
        """What the head reads of ``count`` texts, memory-mapped; ``blocks`` are asked for where it is not there."""
        marker = self.folder / "texts.json"
        if not marker.is_file():
            write_json(marker, self._write_texts(blocks, count))
        return {name: _mapped(self.folder / file) for name, file in read_json(marker).items()}

    def _write_texts(self, blocks: Iterable[PairInputs], count: int) -> dict[str, str]:
        arrays: dict[str, np.ndarray] = {}
        said: dict[str, Any] = {}
        files: dict[str, str] = {}
        begin = 0
        for block in blocks:
            sizes = {len(values) for values in block.values()}
            shapes = {name: (values.shape[1:], values.dtype) for name, values in block.items()}
            if len(sizes) != 1 or (said and shapes != said):
                raise MismatchError(
                    f"the head's text inputs are {shapes} for {sorted(sizes)} texts, and were {said or 'unknown'}",
                    "text_inputs has to give arrays of one shape and type, one row per text",
                )
            if not said:
                said = shapes
                files = {name: f"text_{number}.npy" for number, name in enumerate(shapes)}
                with _writing(self.folder):
                    arrays = {
                        name: create_array(self.folder / files[name], kind.str, (count, *shape))
                        for name, (shape, kind) in shapes.items()
                    }
            end = begin + sizes.pop()
            if end > count:
                break
            for name, values in block.items():
                arrays[name][begin:end] = values
            begin = end
        if begin != count:
            raise MismatchError(
                f"the head read {begin:,} of {count:,} texts", "text_inputs: one row per text"
            )
        for array in arrays.values():
            array.flush()  # type: ignore[attr-defined]
        return files

    def keep(self, number: int, block: PairBlock, scores: np.ndarray) -> None:
        """Store the scores of block ``number``, the next one, in the candidates of both directions."""
        rows = slice(block.first, block.first + len(block.i2t))
        self._matching["i2t"][rows] = scores[block.i2t]
        flat = self._matching["t2i"].reshape(-1)
        flat[block.t2i_cells] = scores[block.t2i]
        for matching in self._matching.values():
            matching.flush()  # type: ignore[attr-defined]
        write_json(self.folder / "done.json", number + 1)

    def finished(self, result: Reranked) -> Reranked:
        """Store ``result`` where it was asked for, or copy it into memory; the work is over."""
        if self.target is None:
            i2t, t2i = (
                Candidates(*(np.array(part) for part in (one.items, one.contrastive, one.matching)))
                for one in (result.i2t, result.t2i)
            )
            return Reranked(i2t, t2i, result.adds_contrastive, result.about)
        result.save(self.target)
        shutil.rmtree(self.folder, ignore_errors=True)
        return Reranked.open(self.target)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}",
            "free some space, or check the folder's permissions, and ask again: what was scored is kept",
        ) from error


def _is_of(folder: Path, key: str) -> bool:
    """Whether the work in ``folder`` was begun under ``key``."""
    file = folder / "key.json"
    return file.is_file() and read_json(file) == key


def _mapped(file: Path, mode: Literal["r", "r+"] = "r") -> np.ndarray:
    return map_array(file, fix=f"remove {file.parent} and ask again", mode=mode)


logger = logging.getLogger(__name__)

_PICTURES = 8  # what is lost to an interruption: of COCO at k = 256 some 10,000 pairs
_PAIRS = 64
_TEXT_BLOCK = 1024


def require_matching(encoder: DualEncoder) -> MatchingEncoder:
    """``encoder`` as one with a matching head."""
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
    """The ``k`` best candidates of each query that ``folder`` holds of ``encoded``; None where it does not."""
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
    pictures: int = _PICTURES,
    batch: int = _PAIRS,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head."""
    head = require_matching(encoder)
    for what, number in (("k", k), ("pictures", pictures), ("batch", batch)):
        if number < 1:
            raise UsageError(f"{what} is {number}, it must be at least 1")
    _check_same(encoder, collection, encoded)
    if folder is not None:
        found = stored_candidates(folder, encoded, k)
        if found is not None:
            return found
    about = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"],
        "data": encoded.about["data"],
        "encoder": encoder.fingerprint,
        "name": encoder.describe().get("name", encoder.family),
        "k": k,
    }
    _say_whole(k, collection)
    key = fingerprint(about, pictures, batch, head.adds_contrastive)
    with Workplace.at(folder, key) as work:
        candidates = work.candidates(encoded, k)
        plan = PairPlan(candidates["i2t"].items, candidates["t2i"].items, pictures)
        texts = work.texts(_text_blocks(head, collection), collection.n_captions)
        _score(head, collection, plan, texts, work, batch)
        result = Reranked(candidates["i2t"], candidates["t2i"], head.adds_contrastive, about)
        return work.finished(result)


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
        if len(have) != len(want):
            raise MismatchError(
                f"{len(want):,} {what} were embedded, {collection.name} has {len(have):,}",
                "re-rank the split that was embedded",
            )
        for row, (one, other) in enumerate(zip(have, want, strict=True)):
            if one != other:
                raise MismatchError(
                    f"{what}: row {row} is {one!r} in {collection.name} and {other!r} among the embeddings",
                    "re-rank the split that was embedded",
                )
    if not collection.n_images or not collection.n_captions:
        raise DataError(
            f"{collection.name} has {collection.n_images} pictures and {collection.n_captions} captions",
            "there is nothing to re-rank",
        )


def _say_whole(k: int, collection: Collection) -> None:
    for what, size in (("captions", collection.n_captions), ("pictures", collection.n_images)):
        if k > size:
            logger.info("k = %d, but there are %d %s: all of them are candidates", k, size, what)


def _text_blocks(head: MatchingEncoder, collection: Collection) -> Iterator[PairInputs]:
    with task("reading captions", collection.n_captions, "captions") as bar:
        for begin in range(0, collection.n_captions, _TEXT_BLOCK):
            texts = list(collection.captions[begin : begin + _TEXT_BLOCK])
            yield head.text_inputs(texts)
            bar.advance(len(texts))


def _score(
    head: MatchingEncoder,
    collection: Collection,
    plan: PairPlan,
    texts: PairInputs,
    work: Workplace,
    batch: int,
) -> None:
    """Score the blocks that are not done yet."""
    begin, size = work.done, plan.pictures
    left = read_ahead(collection.item, range(begin * size, collection.n_images))
    done = int(plan.sizes[:begin].sum())
    with task("re-ranking", int(plan.sizes.sum()), "pairs", done) as bar:
        for number, items in enumerate(batched(left, size), begin):
            block = plan.block(number)
            tokens = head.image_inputs(items)
            scores = np.empty(len(block), dtype=np.float32)
            for low in range(0, len(block), batch):
                here = slice(low, low + batch)
                with _named(block, here, collection):
                    scores[here] = match_pairs(head, tokens, texts, block, here)
                bar.advance(len(block.images[here]))
            work.keep(number, block, scores)
            images = min((number + 1) * size, collection.n_images)
            check_stop(f"stopped re-ranking after {images:,} of {collection.n_images:,} images")


@contextmanager
def _named(block: PairBlock, here: slice, collection: Collection) -> Iterator[None]:
    """Say among which pictures and captions a score was not finite."""
    try:
        yield
    except NumericalError as error:
        first = collection.image_ids[int(block.images[here][0])]
        last = collection.image_ids[int(block.images[here][-1])]
        raise NumericalError(
            f"re-ranking pictures {first!r} to {last!r} with their captions: {error.message}",
            error.fix or "the weights are damaged or diverged: load or train them again",
        ) from error
