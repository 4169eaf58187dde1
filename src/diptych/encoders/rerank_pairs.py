"""The pairs that the candidates of both directions ask for, their scores, and re-ranking of arrays in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.encoders.matching import MatchingEncoder, PairInputs, finite_scores
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.topk import top_k


@dataclass(frozen=True, eq=False)
class PairBlock:
    """The pairs of neighbouring pictures.

    Attributes:
        first: the first picture's row.
        images: (p,) rows of pictures, not decreasing.
        texts: (p,) rows of texts, ascending within a picture.
        i2t: (pictures, k) which pair each candidate of these pictures is.
        t2i_cells: (c,) cells of the texts' candidates, counted along their rows, that hold these pictures.
        t2i: (c,) which pair each of those cells is.
    """

    first: int
    images: np.ndarray
    texts: np.ndarray
    i2t: np.ndarray
    t2i_cells: np.ndarray
    t2i: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


class PairPlan:
    """All pairs in blocks of ``pictures`` neighbouring pictures.

    Args:
        i2t: (n_images, k) rows of texts, possibly memory-mapped.
        t2i: (n_texts, k') rows of images.
    """

    def __init__(self, i2t: np.ndarray, t2i: np.ndarray, pictures: int) -> None:
        self._i2t, self.pictures, self._width = i2t, pictures, t2i.shape[1]
        self._n_texts = max(1, len(t2i))
        flat = np.asarray(t2i).reshape(-1)
        self._cells = np.argsort(flat, kind="stable")  # sorted by picture
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=len(i2t)))])

    def __len__(self) -> int:
        """How many blocks."""
        return -(-len(self._i2t) // self.pictures)

    def block(self, number: int) -> PairBlock:
        """The pairs of one block."""
        begin = number * self.pictures
        end = min(begin + self.pictures, len(self._i2t))
        mine = np.asarray(self._i2t[begin:end])
        asked = np.arange(begin, end)[:, None] * self._n_texts + mine
        cells = self._cells[self._starts[begin] : self._starts[end]]
        images = np.repeat(np.arange(begin, end), np.diff(self._starts[begin : end + 1]))
        keys, which = np.unique(
            np.concatenate([asked.reshape(-1), images * self._n_texts + cells // self._width]),
            return_inverse=True,
        )
        rows, texts = np.divmod(keys, self._n_texts)
        return PairBlock(
            first=begin,
            images=rows,
            texts=texts,
            i2t=which[: mine.size].reshape(mine.shape),
            t2i_cells=cells,
            t2i=which[mine.size :],
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """(blocks,) pairs of each block."""
        return np.array([len(self.block(number)) for number in range(len(self))], dtype=np.int64)


def match_pairs(
    head: MatchingEncoder, tokens: PairInputs, texts: PairInputs, block: PairBlock, here: slice
) -> np.ndarray:
    """The head's scores of some pairs of a block."""
    pictures = block.images[here] - block.first
    low, high = int(pictures[0]), int(pictures[-1]) + 1  # sorted: a slice, which copies nothing
    images = {name: values[low:high] for name, values in tokens.items()}
    read = {name: np.asarray(values[block.texts[here]]) for name, values in texts.items()}
    scores = head.match_rows(images, pictures - low, read)
    if scores.shape != block.images[here].shape:
        raise MismatchError(
            f"the matching head gave scores of shape {scores.shape} for {len(block.images[here])} pairs",
            "match has to give one number per pair",
        )
    return finite_scores(scores)


def rerank_prepared(
    encoder: MatchingEncoder,
    image_rows: np.ndarray,
    text_rows: np.ndarray,
    images: PairInputs,
    texts: PairInputs,
    k: int,
    *,
    batch: int = 64,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head."""
    if batch < 1:
        raise UsageError(f"batch is {batch}, it must be at least 1")
    for what, rows, inputs in (("images", image_rows, images), ("texts", text_rows, texts)):
        counts = sorted({len(values) for values in inputs.values()})
        if counts != [len(rows)]:
            raise MismatchError(
                f"{len(rows):,} rows of {what}, and inputs of {', '.join(map(str, counts)) or 'nothing'}",
                "the head needs the inputs of the same items, in the same order",
            )
    chosen = {"i2t": top_k(image_rows, text_rows, k), "t2i": top_k(text_rows, image_rows, k)}
    plan = PairPlan(chosen["i2t"][0], chosen["t2i"][0], pictures=len(image_rows))
    block = plan.block(0)
    scores = np.concatenate(
        [
            match_pairs(encoder, images, texts, block, slice(begin, begin + batch))
            for begin in range(0, len(block), batch)
        ]
    )
    matching = {"i2t": scores[block.i2t], "t2i": np.empty(chosen["t2i"][0].shape, dtype=np.float32)}
    matching["t2i"].reshape(-1)[block.t2i_cells] = scores[block.t2i]
    i2t, t2i = (
        Candidates(items, contrastive.astype(np.float32), matching[name])
        for name, (items, contrastive) in chosen.items()
    )
    return Reranked(i2t, t2i, encoder.adds_contrastive)
