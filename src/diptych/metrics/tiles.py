"""Counting: for every positive, how many negatives score above it and how many tie with it.

The tile is a block of images by a block of texts; for image queries the thresholds run down its rows, for text
queries along its columns. Positives are taken out of the tile first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.metrics.ground_truth import DIRECTIONS, Direction, Positives
from diptych.metrics.runs import blocks
from diptych.metrics.sources import ScoreSource

_WORD = 8
# A tile of which more than this share lies inside the rounding band is computed again in float64.
_NEAR_SHARE = 1 / 64
# Up to this share of a tile, looking at single scores is quicker than comparing the whole tile again.
_FEW_SHARE = 1 / 64
_CAREFUL_SCORES = 250_000  # scores computed carefully at once: some 40 bytes each
_BYTE_LANES = 8
_MOST_ADDENDS = 255  # so many ones fit into one byte


def count_rows(mask: np.ndarray) -> np.ndarray:
    """Count per row, a multiple of eight bytes wide: 15 times faster than ``np.count_nonzero(mask, axis=1)``."""
    words = mask.view(np.uint64)
    counts = np.zeros(len(mask), dtype=np.int64)
    for begin in range(0, words.shape[1], _MOST_ADDENDS):
        sums = np.add.reduce(words[:, begin : begin + _MOST_ADDENDS], axis=1)
        counts += sums.view(np.uint8).reshape(len(mask), _BYTE_LANES).sum(axis=1, dtype=np.int64)
    return counts


def count_columns(mask: np.ndarray) -> np.ndarray:
    counts = np.zeros(mask.shape[1], dtype=np.int64)
    for begin in range(0, len(mask), _MOST_ADDENDS):
        rows = mask[begin : begin + _MOST_ADDENDS].view(np.uint8)
        counts += np.add.reduce(rows, axis=0, dtype=np.uint8)
    return counts


@dataclass(frozen=True, eq=False)
class Layer:
    """The j-th best positive of every query that has one."""

    queries: np.ndarray  # (q,) ascending
    entries: np.ndarray  # (q,) where each query's counts are kept in the counter

    def within(self, begin: int, end: int) -> Layer:
        low, high = np.searchsorted(self.queries, [begin, end])
        return Layer(self.queries[low:high], self.entries[low:high])


class Counter:
    """Counts per positive of one direction, best positive first within each query."""

    def __init__(self, positives: Positives, scores: np.ndarray, every: bool, counted: bool = True) -> None:
        queries = positives.queries
        order = np.lexsort((-positives.rows, -scores, queries))
        self.positives, self.every = positives, every
        self.rows, self.scores = positives.rows[order], scores[order]
        # (3, entries): negatives that score more, that score the same, and those of these later in the gallery
        self.counts: np.ndarray = np.zeros((3, len(order)), dtype=np.int64)
        deepest = int(positives.counts.max(initial=0))
        self.layers = []
        for depth in range((deepest if every else min(1, deepest)) if counted else 0):
            queries = np.flatnonzero(positives.counts > depth)
            self.layers.append(Layer(queries, positives.start[queries] + depth))


# what one tile adds to one direction's counter: distinct entries, and their counts
Counts = tuple[Direction, np.ndarray, np.ndarray]


class TileCounter:
    """Counts tiles of one source; every worker has its own, for the buffers it holds."""

    def __init__(
        self, source: ScoreSource, counters: dict[Direction, Counter], rows: int, columns: int
    ) -> None:
        self._source = source
        self._counters = counters
        # Float32 numbers that no exact score of a positive can be distinguished from, the lower and the upper end.
        self._thresholds: dict[Direction, tuple[np.ndarray, np.ndarray]] = {}
        for name in DIRECTIONS:
            counter, band = counters[name], source.band(name)
            if band is None:
                continue
            width = band[counter.positives.queries]  # the counter's order differs only within a query
            with np.errstate(over="ignore"):
                low, high = ((counter.scores + end).astype(np.float32) for end in (-width, width))
            infinity = np.float32(np.inf)
            self._thresholds[name] = np.nextafter(low, -infinity), np.nextafter(high, infinity)
        self._fast = len(self._thresholds) == len(DIRECTIONS)
        padded = -(-columns // _WORD) * _WORD
        self._scores = np.empty(rows * columns if self._fast else 0, dtype=np.float32)
        self._masks = np.zeros((2, rows * padded), dtype=bool)

    def count(self, images: slice, texts: slice) -> list[Counts]:
        counts = self._count_fast(images, texts) if self._fast else None
        if counts is None:
            step = _CAREFUL_SCORES // (images.stop - images.start)
            counts = [
                part
                for some in blocks(texts.stop, step, texts.start)
                for part in self._count_careful(images, some)
            ]
        return counts

    def _mask(self, which: int, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """A boolean matrix padded with False to whole words, and its part without the padding."""
        padded = -(-shape[1] // _WORD) * _WORD
        whole = self._masks[which, : shape[0] * padded].reshape(shape[0], padded)
        whole[:, shape[1] :] = False
        return whole, whole[:, : shape[1]]

    def _without_positives(self, tile: np.ndarray, images: slice, texts: slice) -> np.ndarray:
        truth = self._counters["i2t"].positives
        begin, end = truth.start[images.start], truth.start[images.stop]
        rows = np.repeat(np.arange(len(tile)), truth.counts[images])
        columns = truth.rows[begin:end] - texts.start
        inside = (columns >= 0) & (columns < tile.shape[1])
        tile[rows[inside], columns[inside]] = -np.inf
        return tile

    def _parts(
        self, tile: np.ndarray, images: slice, texts: slice
    ) -> list[tuple[Direction, Layer, np.ndarray]]:
        parts: list[tuple[Direction, Layer, np.ndarray]] = []
        for name in DIRECTIONS:
            here = images if name == "i2t" else texts
            for layer in self._counters[name].layers:
                some = layer.within(here.start, here.stop)
                if not len(some.queries):
                    continue
                part = tile
                if len(some.queries) < here.stop - here.start:
                    local = some.queries - here.start
                    part = tile[local] if name == "i2t" else tile[:, local]
                parts.append((name, some, part))
        return parts

    def _count_fast(self, images: slice, texts: slice) -> list[Counts] | None:
        shape = (images.stop - images.start, texts.stop - texts.start)
        tile = self._scores[: shape[0] * shape[1]].reshape(shape)
        self._source.fast(images, texts, tile)
        self._without_positives(tile, images, texts)
        counts: list[Counts] = []
        for name, layer, part in self._parts(tile, images, texts):
            above, row, column = self._compare(name, layer, part)
            if len(row) > max(_NEAR_SHARE * part.size, 64):
                return None
            counts.append((name, layer.entries, above * [[1], [0], [0]]))
            if len(row):
                counts.append(self._decide(name, layer, images, texts, row, column))
        return counts

    def _compare(
        self, name: Direction, layer: Layer, part: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how many items certainly score above each query's positive, and where this is uncertain."""
        low, high = (ends[layer.entries] for ends in self._thresholds[name])
        whole, mask = self._mask(0, part.shape)
        np.greater_equal(part, _along(name, low), out=mask)
        not_below = _count(name, whole, part.shape)
        if not_below.sum() <= _FEW_SHARE * part.size:  # a trained model: look at these few one by one
            row, column = np.divmod(np.flatnonzero(whole), whole.shape[1])
            query = row if name == "i2t" else column
            near = part[row, column] <= high[query]
            return not_below - np.bincount(query[near], minlength=len(high)), row[near], column[near]
        above_whole, above = self._mask(1, part.shape)
        np.greater(part, _along(name, high), out=above)
        whole ^= above_whole
        row, column = np.divmod(np.flatnonzero(whole), whole.shape[1])
        return _count(name, above_whole, part.shape), row, column

    def _decide(
        self, name: Direction, layer: Layer, images: slice, texts: slice, row: np.ndarray, column: np.ndarray
    ) -> Counts:
        counter = self._counters[name]
        local = row if name == "i2t" else column
        image = layer.queries[local] if name == "i2t" else images.start + row
        text = texts.start + column if name == "i2t" else layer.queries[local]
        gallery = text if name == "i2t" else image
        scores = self._source.pairs(image, text)
        entry = layer.entries[local]
        tied = scores == counter.scores[entry]
        later = tied & (gallery > counter.rows[entry])

        def per_query(mask: np.ndarray) -> np.ndarray:
            return np.bincount(local[mask], minlength=len(layer.queries))

        masks = scores > counter.scores[entry], tied, later
        return name, layer.entries, np.stack([per_query(mask) for mask in masks])

    def _near(
        self, images: slice, texts: slice, tile: np.ndarray, image_band: np.ndarray, text_band: np.ndarray
    ) -> np.ndarray:
        """Return which scores lie within the bands of a positive's score, in either direction."""
        near = np.zeros(tile.shape, dtype=bool)
        for name, layer, part in self._parts(tile, images, texts):
            here, band = (images, image_band) if name == "i2t" else (texts, text_band)
            local = layer.queries - here.start
            scores = self._counters[name].scores[layer.entries]
            inside = part >= _along(name, np.nextafter(scores - band[local], -np.inf))
            inside &= part <= _along(name, np.nextafter(scores + band[local], np.inf))
            if name == "i2t":
                near[local] |= inside
            else:
                near[:, local] |= inside
        return near

    def _count_careful(self, images: slice, texts: slice) -> list[Counts]:
        tile = self._source.careful(images, texts, lambda *given: self._near(images, texts, *given))
        self._without_positives(tile, images, texts)
        counts = []
        for name, layer, part in self._parts(tile, images, texts):
            counter = self._counters[name]
            scores = _along(name, counter.scores[layer.entries])
            whole, mask = self._mask(0, part.shape)
            tied_whole, tied_mask = self._mask(1, part.shape)
            np.greater(part, scores, out=mask)
            np.equal(part, scores, out=tied_mask)
            above = _count(name, whole, part.shape)
            tied = _count(name, tied_whole, part.shape)
            later = tied
            if tied.any():
                here, other = (texts, "t2i") if name == "i2t" else (images, "i2t")
                place = _along(other, np.arange(here.start, here.stop))
                np.greater(place, _along(name, counter.rows[layer.entries]), out=mask)
                whole &= tied_whole
                later = _count(name, whole, part.shape)
            counts.append((name, layer.entries, np.stack([above, tied, later])))
        return counts


def _along(direction: str, values: np.ndarray) -> np.ndarray:
    return values[:, None] if direction == "i2t" else values[None, :]


def _count(direction: Direction, mask: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return count_rows(mask) if direction == "i2t" else count_columns(mask)[: shape[1]]
