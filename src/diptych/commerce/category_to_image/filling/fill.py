"""Fill: a category for every product, as far down its path as the model is sure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree
from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.core.files import atomic_path, write_csv, write_json

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Candidates = Literal["specific", "all"]
"""``specific``: categories that a product can be sorted into as its most specific one: those without children, and
those that products of the shop are sorted into; ``all``: every node of the tree."""


def candidate_nodes(catalogue: Catalogue, kind: Candidates = "specific") -> np.ndarray:
    """(c,) int64 nodes, ascending."""
    if kind not in ("specific", "all"):
        raise UsageError(f"candidates {kind!r} are none", "specific or all")
    tree = catalogue.tree
    if not len(tree):
        raise DataError(f"{catalogue.name}: the tree has no categories", "give a taxonomy")
    can = tree.is_leaf.copy() if kind == "specific" else np.ones(len(tree), dtype=bool)
    can[catalogue.places] = True
    return np.flatnonzero(can)


def masses_of(tree: CategoryTree, candidates: np.ndarray) -> csr_array:
    """(c, len(tree)) float64: 1 where a candidate is a node or below it; probabilities times it are those of nodes."""
    from scipy.sparse import csr_array

    lineage = tree.lineage[candidates]
    row, level = np.nonzero(lineage >= 0)
    columns = lineage[row, level]
    return csr_array((np.ones(len(row)), (row, columns)), shape=(len(candidates), len(tree)))


def descend(tree: CategoryTree, masses: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The way down from the roots, at each node to the child that holds most; it ends where the node itself holds more.

    Args:
        masses: (n, len(tree)) probabilities of each node and all below it.
        own: (n, len(tree)) probabilities of each node itself, 0 where it is no candidate.

    Returns:
        (n, deepest) int64 nodes, -1 behind the end. Of equal children the first in the tree.
    """
    n, deepest = len(masses), int(tree.depth.max(initial=1))
    path = np.full((n, deepest), -1, dtype=np.int64)
    current = np.full(n, -1, dtype=np.int64)
    going = np.ones(n, dtype=bool)
    for level in range(1, deepest + 1):
        here = np.flatnonzero(tree.depth == level)
        children = tree.parent[here][None, :] == current[going][:, None]
        held = np.where(children, masses[np.ix_(going, here)], -1.0)
        best = held.argmax(axis=1)
        most = held[np.arange(len(best)), best]
        stays = np.zeros(len(best)) - 1.0
        below = current[going] >= 0
        stays[below] = own[np.flatnonzero(going)[below], current[going][below]]
        goes = (most > stays) & (most >= 0)
        rows = np.flatnonzero(going)
        path[rows[goes], level - 1] = here[best[goes]]
        current[rows[goes]] = here[best[goes]]
        going[rows[~goes]] = False
        if not going.any():
            break
    return path


_SCORES = 1 << 21
"""Scores held at once."""


def score_blocks(
    products: np.ndarray | csr_array, categories: np.ndarray | csr_array, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows of products, (b, c) float64 scores) one after another: bounded whatever the number of products.

    Args:
        products: (n, d) float32 rows, dense or sparse, possibly memory-mapped.
        categories: (c, d) float32 rows of the same kind.
    """
    if isinstance(products, np.ndarray) != isinstance(categories, np.ndarray) or (
        products.shape[1] != categories.shape[1]
    ):
        raise MismatchError(
            f"rows of products of width {products.shape[1]:,} and of categories of {categories.shape[1]:,} "
            "cannot be compared",
            "make both with one ranker",
        )
    step = max(1, _SCORES // max(1, categories.shape[0]))
    across = categories.T if isinstance(categories, np.ndarray) else categories.T.tocsr()
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        product = products[some] @ across
        scores = np.asarray(
            product if isinstance(product, np.ndarray) else product.toarray(), dtype=np.float64
        )
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            raise NumericalError(
                f"the scores of product row {int(some[bad[0]])} are not finite", "make the rows again"
            )
        yield some, scores


def probabilities(scores: np.ndarray, temperature: float) -> np.ndarray:
    """(n, c) float64 soft-max of ``scores / temperature`` along each row."""
    scaled = scores / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


Verdict = Literal["whole", "in part", "uncertain", "nothing known", "agrees", "refines", "disagrees"]
VERDICTS: dict[Verdict, str] = {
    "whole": "no category of its own; a whole path is sure enough",
    "in part": "no category of its own; the beginning of a path is sure enough",
    "uncertain": "not even the most general category is sure enough",
    "nothing known": "has nothing that the model reads: nothing is suggested",
    "agrees": "what is sure enough lies on a path of its own",
    "refines": "goes on below its own category",
    "disagrees": "what is sure enough leads elsewhere than its own categories",
}
"""What a suggestion says of a product."""


@dataclass(frozen=True)
class Filled:
    """What is suggested for one product.

    Attributes:
        id: the product's.
        title: the product's.
        own: the texts of its own categories, maybe none.
        path: names from the root as far as the confidence reaches the threshold, maybe none.
        confidence: of the last of them, 0 where there is none.
        levels: (name, confidence) of the whole way down.
        alternatives: (path as text, probability) of the likeliest categories, likeliest first.
        verdict: one of :data:`VERDICTS`.
    """

    id: str
    title: str
    own: tuple[str, ...]
    path: tuple[str, ...]
    confidence: float
    levels: tuple[tuple[str, float], ...]
    alternatives: tuple[tuple[str, float], ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; probabilities to six digits, which is as far as products of float32 rows agree."""
        return {
            "id": self.id,
            "title": self.title,
            "own": list(self.own),
            "path": list(self.path),
            "confidence": round(self.confidence, 6),
            "levels": [{"name": name, "confidence": round(value, 6)} for name, value in self.levels],
            "alternatives": [
                {"category": text, "probability": round(value, 6)} for text, value in self.alternatives
            ],
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False)
class FilledBlock:
    """Suggestions for some products, as arrays."""

    products: np.ndarray  # (b,) rows of the catalogue
    path: np.ndarray  # (b, deepest) int64 nodes of the way down, -1 behind its end
    confidence: (
        np.ndarray
    )  # (b, deepest) float64 probability of each of them and all below it, 0 behind the end
    kept: np.ndarray  # (b,) how many of them are sure enough
    best: np.ndarray  # (b, alternatives) int64 likeliest candidates
    share: np.ndarray  # (b, alternatives) their probabilities


@dataclass(frozen=True, eq=False)
class Filler:
    """Everything that a suggestion depends on besides the product.

    Attributes:
        tree: the categories.
        candidates: (c,) int64 nodes that a product can be filled into, ascending.
        categories: (c, d) float32 rows of theirs, dense or sparse.
        temperature: see :mod:`.calibration`.
        threshold: a path is cut where its confidence falls below it.
        alternatives: how many of the likeliest categories to name.
    """

    tree: CategoryTree
    candidates: np.ndarray
    categories: np.ndarray | csr_array
    temperature: float
    threshold: float = 0.5
    alternatives: int = 3

    def __post_init__(self) -> None:
        if self.categories.shape[0] != len(self.candidates):
            raise MismatchError(
                f"{len(self.candidates):,} categories to choose from, {self.categories.shape[0]:,} rows of theirs",
                "make the rows of these categories",
            )
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"threshold {self.threshold} is no probability", "give one from 0 to 1")
        if self.temperature <= 0 or self.alternatives < 0:
            raise UsageError(
                f"temperature {self.temperature} and {self.alternatives} alternatives",
                "a temperature is above 0, alternatives are 0 or more",
            )

    def blocks(self, products: np.ndarray | csr_array, rows: np.ndarray) -> Iterator[FilledBlock]:
        """Suggestions for the products ``rows``, a block at a time.

        Args:
            products: (n, d) float32 rows, possibly memory-mapped.
        """
        below = masses_of(self.tree, self.candidates)
        count = min(self.alternatives, len(self.candidates))
        for some, scores in score_blocks(products, self.categories, rows):
            shares = probabilities(scores, self.temperature)
            masses = np.minimum(shares @ below, 1.0)  # sums of shares, rounded
            own = np.zeros_like(masses)
            own[:, self.candidates] = shares
            path = descend(self.tree, masses, own)
            confidence = np.where(path >= 0, np.take_along_axis(masses, np.maximum(path, 0), axis=1), 0.0)
            sure = (confidence >= self.threshold) & (path >= 0)
            best = np.argsort(-shares, axis=1, kind="stable")[:, :count]
            yield FilledBlock(
                products=some,
                path=path,
                confidence=confidence,
                kept=np.cumprod(sure, axis=1).sum(axis=1),
                best=self.candidates[best],
                share=np.take_along_axis(shares, best, axis=1),
            )

    def fill(
        self,
        products: np.ndarray | csr_array,
        catalogue: Catalogue,
        rows: np.ndarray | None = None,
        known: np.ndarray | None = None,
    ) -> Iterator[Filled]:
        """Suggestions for the products ``rows`` of a catalogue; without it, for those that have no category.

        Args:
            products: (n, d) float32 rows of the catalogue's products.
            known: (n,) booleans: products that have something that their rows were made of; nothing is suggested for
                others, whose rows all say the same. None: all have.
        """
        if products.shape[0] != len(catalogue):
            raise MismatchError(f"{products.shape[0]:,} rows for {len(catalogue):,} products")
        if catalogue.tree.fingerprint != self.tree.fingerprint:
            raise MismatchError(
                f"the catalogue's tree has {len(catalogue.tree):,} categories, the model's {len(self.tree):,}, "
                "and they are not the same",
                "read the products with the model's tree",
            )
        wanted = np.flatnonzero(catalogue.place < 0) if rows is None else np.asarray(rows, dtype=np.int64)
        for block in self.blocks(products, wanted):
            for place, product in enumerate(block.products.tolist()):
                if known is None or known[product]:
                    yield self._one(block, place, catalogue, product)
                else:
                    yield self._nothing(catalogue, product)

    def _nothing(self, catalogue: Catalogue, product: int) -> Filled:
        own = tuple(self.tree.text(int(node)) for node in catalogue.places_of(product))
        name, title = catalogue.ids[product], catalogue.titles[product]
        return Filled(name, title, own, (), 0.0, (), (), "nothing known")

    def _one(self, block: FilledBlock, place: int, catalogue: Catalogue, product: int) -> Filled:
        tree, kept = self.tree, int(block.kept[place])
        path = block.path[place]
        nodes = path[path >= 0].tolist()
        values = block.confidence[place].tolist()
        own = catalogue.places_of(product)
        return Filled(
            id=catalogue.ids[product],
            title=catalogue.titles[product],
            own=tuple(tree.text(int(node)) for node in own),
            path=tree.paths[nodes[kept - 1]] if kept else (),
            confidence=values[kept - 1] if kept else 0.0,
            levels=tuple((tree.paths[node][-1], value) for node, value in zip(nodes, values, strict=False)),
            alternatives=tuple(
                (tree.text(int(node)), float(value))
                for node, value in zip(block.best[place], block.share[place], strict=True)
            ),
            verdict=_verdict(tree, nodes, kept, own),
        )


def _verdict(tree: CategoryTree, nodes: list[int], kept: int, own: np.ndarray) -> Verdict:
    if not kept:
        return "uncertain"
    if not len(own):
        return "whole" if kept == len(nodes) else "in part"
    last = np.full(len(own), nodes[kept - 1])
    common = tree.common(last, own)
    if (common == kept).any():
        return "agrees"
    return "refines" if (common == tree.depth[own]).any() else "disagrees"


COLUMNS = ("id", "title", "verdict", "category", "confidence", "own", "whole_path", "levels", "alternatives")
"""Of a table: ``category`` as far as it is sure enough; confidences of levels and of alternatives are in order."""


def check_ending(file: Path | str) -> None:
    """See that suggestions can be written to such a file."""
    if Path(file).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"{file} ends in {Path(file).suffix or 'nothing'!r}", "use .jsonl or .csv")


def summary_path(file: Path | str) -> Path:
    """Where the summary of ``file`` is."""
    return Path(file).with_suffix(".summary.json")


def write_filled(
    filled: Iterable[Filled], file: Path | str, about: dict[str, Any], *, leave_out: tuple[str, ...] = ()
) -> dict[str, int]:
    """Write suggestions as they come, and a summary beside them; both whole or not at all."""
    file = Path(file)
    check_ending(file)
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)

    def kept() -> Iterator[Filled]:
        for one in filled:
            counts[one.verdict] += 1
            if one.verdict not in leave_out:
                yield one
        summary_path(file).unlink(missing_ok=True)  # killed from here on, no summary is of another file

    if file.suffix == ".csv":
        write_csv(file, COLUMNS, map(_cells, kept()))
    else:
        with (
            atomic_path(file) as temporary,
            open(temporary, "w", encoding="utf-8", errors="replace", newline="") as handle,
        ):
            for one in kept():
                handle.write(json.dumps(one.to_dict(), ensure_ascii=False) + "\n")
    counted = {name: count for name, count in counts.items() if count}
    write_json(
        summary_path(file),
        {
            "format": 1,
            **about,
            "products": sum(counts.values()),
            "counts": counted,
            "left_out": list(leave_out),
        },
    )
    return counted


def _cells(one: Filled) -> list[str]:
    return [
        one.id,
        one.title,
        one.verdict,
        SEPARATOR.join(one.path),
        f"{one.confidence:.6f}",
        "; ".join(one.own),
        SEPARATOR.join(name for name, _ in one.levels),
        " ".join(f"{value:.6f}" for _, value in one.levels),
        "; ".join(f"{text} ({value:.6f})" for text, value in one.alternatives),
    ]
