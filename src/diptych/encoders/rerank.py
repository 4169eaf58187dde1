"""Re-rank: the rows choose the best candidates of every query, the matching head scores those again.

Both directions are chosen first; a pair that both chose is scored once. Pairs are worked off by pictures,
a block at a time, so that every picture is read and encoded once and memory holds one block's tokens, the
candidates and nothing else. What the head needs of texts lies in memory-mapped files until the end.

Scores are kept block by block: whoever is interrupted and asks again loses one block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, Interrupted, MismatchError, NumericalError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.data.collection import Collection
from diptych.data.loading import batched, read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import EncodedCollection
from diptych.encoders.matching import MatchingEncoder, PairInputs
from diptych.encoders.rerank_pairs import PairBlock, PairPlan, match_pairs
from diptych.encoders.rerank_work import Workplace
from diptych.evaluation.reranked import MARKER, Reranked

__all__ = ["require_matching", "rerank", "stored_candidates"]

logger = logging.getLogger(__name__)

_PICTURES = 8  # what is lost to an interruption: of COCO at k = 256 some 10,000 pairs
_PAIRS = 64
_TEXT_BLOCK = 1024


def require_matching(encoder: DualEncoder) -> MatchingEncoder:
    """``encoder`` as one with a matching head.

    Raises:
        UsageError: it has none; the message names the families that have one.
    """
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
    """The ``k`` best candidates of each query that ``folder`` holds of ``encoded``; None where it does not.

    Raises:
        StorageError: the folder is damaged, or of another version.
    """
    if not (Path(folder) / MARKER).is_file():
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
    should_stop: Callable[[], bool] = lambda: False,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head.

    Args:
        encoder: a :class:`DualEncoder` that is a :class:`MatchingEncoder` too.
        collection: what was embedded.
        encoded: its rows by the same encoder.
        k: candidates of each query; a gallery that is smaller is taken whole.
        folder: the result is stored there, and found again when nothing has changed; where there is none
            the result is held in memory.
        pictures: how many pictures' tokens are held at once.
        batch: pairs per call of the head.
        should_stop: asked after every block.

    Raises:
        Interrupted: ``should_stop`` said so; with a folder, the same call goes on.
        UsageError: an encoder without a head, or a number below 1.
        MismatchError: another encoder or collection than was embedded, or a head whose inputs change shape.
        ImageError: a picture cannot be read; the message names it.
        NumericalError: a score is NaN or infinite; the message names the pair.
        StorageError: the disk is full or cannot be written; what was scored is kept.
    """
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
        _score(head, collection, plan, texts, work, batch, should_stop)
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
    should_stop: Callable[[], bool],
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
            if should_stop():
                pictures = min((number + 1) * size, collection.n_images)
                raise Interrupted(
                    f"stopped re-ranking after {pictures:,} of {collection.n_images:,} pictures",
                    "the same command goes on",
                )


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
