"""Suggest category paths for products: calibrate, measure what confidence is worth, rank whole paths.

Whole paths compete: P(path) ∝ exp(s/T) · Π p^w, where s is the similarity of product and the path's last category, and
each level from the root on contributes p, the soft-max of s/T of its category among all of that level, or among its
siblings. T, w and which of the two are those that validation products bear out best. Temperature scaling: Guo et al.,
On Calibration of Modern Neural Networks, ICML 2017; products of experts: Hinton, Neural Computation 2002.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.metrics.runs import blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Candidates = Literal["specific", "all"]
"""``specific``: categories without children, and those that products are sorted into; ``all``: every one."""

Against = Literal["level", "siblings"]

_SCORES = 1 << 21  # scores held at once
_CALIBRATED = 1 << 22  # scores kept while the temperature is looked for: 32 MB
_TEMPERATURES = (1e-4, 1e2)
_WEIGHTS = (0.25, 0.5, 1.0)
BINS = 15

VERDICTS = {
    "whole": "no category of its own; a whole path is sure enough",
    "in part": "no category of its own; the beginning of a path is sure enough",
    "uncertain": "not even the most general category is sure enough",
    "nothing known": "has nothing that the model reads: nothing is suggested",
    "agrees": "what is sure enough lies on a path of its own",
    "refines": "goes on below its own category",
    "disagrees": "what is sure enough leads elsewhere than its own categories",
}
REVIEWED = ("in part", "uncertain", "nothing known", "disagrees")
"""Verdicts that a person has to look at."""


def candidate_nodes(catalogue: Catalogue, kind: Candidates = "specific") -> np.ndarray:
    """(c,) int64 nodes that a product can be filled into, ascending."""
    tree = catalogue.tree
    can = np.full(len(tree), kind == "all") | tree.is_leaf
    can[catalogue.places] = True
    if not can.any():
        raise DataError(f"{catalogue.name}: the tree has no categories", "give a taxonomy")
    return np.flatnonzero(can)


Filled = dict[str, Any]
"""A suggestion for one product, JSON-able; probabilities have six digits, as far as products of float32 rows agree.

``id``, ``title``, ``verdict`` (of VERDICTS), ``own`` (texts of its own categories), ``path`` (the whole path as far as
the confidence reaches the threshold), ``code`` and ``confidence`` of its last category, ``levels`` (name, confidence,
code of each level of the whole path), ``alternatives`` (category, probability, code, likeliest first).
"""

Overlap = tuple[int, int, int]
"""Sizes |P ∩ T|, |P| and |T| of a product, see :func:`hierarchical_f1`."""


def cells_of(one: Filled) -> dict[str, str]:
    """Return a suggestion as a row of a table, by column."""
    levels, others = one["levels"], one["alternatives"]
    named = (f"{other['category']} ({other['probability']:.6f})" for other in others)
    return {
        **{name: one[name] for name in ("id", "title", "verdict")},
        "category": SEPARATOR.join(one["path"]),
        "code": one["code"] or "",
        "confidence": f"{one['confidence']:.6f}",
        "own": "; ".join(one["own"]),
        "whole_path": SEPARATOR.join(level["name"] for level in levels),
        "whole_code": (levels[-1]["code"] or "") if levels else "",
        "levels": " ".join(f"{level['confidence']:.6f}" for level in levels),
        "alternatives": "; ".join(named),
    }


COLUMNS = ["id", "title", "verdict", "category", "code", "confidence", "own"]
COLUMNS += ["whole_path", "whole_code", "levels", "alternatives"]


def hierarchical_f1(overlaps: Iterable[Overlap]) -> dict[str, float]:
    """Return hierarchical precision, recall and F1, micro-averaged over products.

    With P the categories on a product's suggested path and T those on its own, ancestors included: precision is
    Σ|P ∩ T| / Σ|P|, recall Σ|P ∩ T| / Σ|T|, F1 their harmonic mean. Of several own paths T is the one with the most
    categories of P, of these the shortest. Source: Kiritchenko, Matwin and Famili, Functional Annotation of Genes
    Using Hierarchical Text Categorization, BioLINK 2005.
    """
    shared, suggested, own = np.array([(0, 0, 0), *overlaps]).sum(axis=0).tolist()
    sizes = {"precision": suggested, "recall": own, "f1": (suggested + own) / 2}
    return {name: shared / size if size else 0.0 for name, size in sizes.items()}


def _overlap(tree: CategoryTree, path: np.ndarray, own: np.ndarray) -> Overlap:
    common = (tree.lineage[own][:, : len(path)] == path).sum(axis=1)  # equal nodes have equal ancestors
    best = int(np.lexsort((tree.depth[own], -common))[0])
    return int(common[best]), len(path), int(tree.depth[own[best]])


class FilledBlock(NamedTuple):
    """Suggestions for b products, as arrays."""

    products: np.ndarray  # (b,) rows of the catalogue
    path: np.ndarray  # (b, deepest) int64 nodes of the whole path, -1 behind its end
    confidence: np.ndarray  # (b, deepest) float64 probability of each and all below it, 0 behind the end
    kept: np.ndarray  # (b,) how many of them are sure enough
    best: np.ndarray  # (b, alternatives) int64 likeliest candidates
    share: np.ndarray  # (b, alternatives) their probabilities


@dataclass(frozen=True, eq=False)
class Filler:
    """Everything that a suggestion depends on besides the product."""

    tree: CategoryTree
    candidates: np.ndarray  # (c,) int64 nodes that a product can be filled into, ascending
    rows: np.ndarray  # (nodes, d) float32 rows of all of the tree's categories
    temperature: float = 1.0  # T, by which scores are divided
    weight: float = 0.0  # w, of what each level of a path contributes
    against: Against = "level"  # the categories that each level's soft-max is over
    threshold: float = 0.5  # a path is cut where its confidence falls below it
    alternatives: int = 3  # how many of the likeliest categories to name

    @cached_property
    def below(self) -> csr_array:
        """(c, nodes): 1 where a candidate is a node or below it."""
        from scipy.sparse import csr_array

        lineage = self.tree.lineage[self.candidates]
        row, level = np.nonzero(lineage >= 0)
        entries = np.ones(len(row)), (row, lineage[row, level])
        return csr_array(entries, shape=(len(lineage), len(self.tree)))

    def logits(self, scores: np.ndarray) -> np.ndarray:
        """(b, c) logits of whole paths, from (b, nodes) scores of categories."""
        scaled = scores / self.temperature
        own: np.ndarray = scaled[:, self.candidates]
        if not self.weight:
            return own
        groups = self.tree.depth if self.against == "level" else self.tree.parent
        order = np.argsort(groups, kind="stable")
        begins = np.flatnonzero(np.diff(groups[order], prepend=-2))
        totals = np.logaddexp.reduceat(scaled[:, order], begins, axis=1)
        scaled[:, order] -= np.repeat(totals, np.diff(begins, append=len(order)), axis=1)
        own = own + self.weight * (self.below @ scaled.T).T
        return own

    def score_blocks(self, products: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows of products and their (b, nodes) float64 scores: bounded whatever the number of products."""
        for here in blocks(len(rows), _SCORES // max(1, len(self.tree))):
            scores = np.asarray(products[rows[here]] @ self.rows.T, dtype=np.float64)
            if not np.isfinite(scores).all():
                bad = int(rows[here][~np.isfinite(scores).all(axis=1)][0])
                raise NumericalError(f"the scores of product row {bad} are not finite", "make the rows again")
            yield rows[here], scores

    def blocks(self, products: np.ndarray, rows: np.ndarray) -> Iterator[FilledBlock]:
        """Yield suggestions for the products ``rows`` of (n, d) float32 ``products``, a block at a time."""
        from scipy.special import softmax

        for some, scores in self.score_blocks(products, rows):
            shares = softmax(self.logits(scores), axis=1)
            masses = np.minimum(shares @ self.below, 1.0)  # sums of shares, rounded
            best = np.argsort(-shares, axis=1, kind="stable")[:, : max(1, self.alternatives)]
            path = self.tree.lineage[self.candidates[best[:, 0]]]
            confidence = np.where(path >= 0, np.take_along_axis(masses, np.maximum(path, 0), axis=1), 0.0)
            kept = np.cumprod((confidence >= self.threshold) & (path >= 0), axis=1).sum(axis=1)
            named = best[:, : self.alternatives]
            share = np.take_along_axis(shares, named, axis=1)
            yield FilledBlock(some, path, confidence, kept, self.candidates[named], share)

    def fill(
        self, products: np.ndarray, catalogue: Catalogue, known: np.ndarray | None = None
    ) -> Iterator[tuple[Filled, Overlap | None]]:
        """Yield suggestions for (n, d) float32 rows of a catalogue's products, each with its overlap.

        Nothing is suggested for products that are not ``known``, (n,) booleans: those without anything that their rows
        were made of, which are all the same.
        """
        tree, code = self.tree, self.tree.codes.get
        if catalogue.tree.fingerprint != tree.fingerprint or len(products) != len(catalogue):
            problem = f"{len(products):,} rows for {len(catalogue):,} products, of {len(catalogue.tree):,} categories"
            fix = "give rows of these products, and read them with the model's tree"
            raise MismatchError(f"{problem}, which are not the model's {len(tree):,}", fix)
        for block in self.blocks(products, np.arange(len(catalogue))):
            for product, path, confidence, kept, best, share in zip(*block, strict=True):
                own, is_known = catalogue.places_of(product), known is None or bool(known[product])
                path, kept = path[path >= 0] if is_known else path[:0], int(kept) if is_known else 0
                overlap = _overlap(tree, path[:kept], own) if len(own) else None
                levels = [
                    {
                        "name": tree.paths[node][-1],
                        "confidence": round(value, 6),
                        "code": code(tree.paths[node]),
                    }
                    for node, value in zip(path.tolist(), confidence.tolist(), strict=False)
                ]
                others = [
                    {"category": tree.text(node), "probability": round(p, 6), "code": code(tree.paths[node])}
                    for node, p in zip(best.tolist(), share.tolist(), strict=True)
                ]
                last = levels[kept - 1] if kept else {"code": None, "confidence": 0.0}
                filled = {
                    "id": catalogue.ids[product],
                    "title": catalogue.titles[product],
                    "verdict": _verdict(len(path), kept, overlap),
                    "own": [tree.text(node) for node in own.tolist()],
                    "path": list(tree.paths[path[kept - 1]]) if kept else [],
                    "code": last["code"],
                    "confidence": last["confidence"],
                    "levels": levels,
                    "alternatives": others if is_known else [],
                }
                yield filled, overlap


def _verdict(levels: int, kept: int, overlap: Overlap | None) -> str:
    if not kept:
        return "uncertain" if levels else "nothing known"
    if overlap is None:
        return "whole" if kept == levels else "in part"
    common, _, depth = overlap
    return "agrees" if common == kept else "refines" if common == depth else "disagrees"


@dataclass(frozen=True)
class Calibration:
    """Temperature and weight of the levels, and what they were found on."""

    temperature: float
    weight: float
    against: Against
    products: int
    loss: float  # their mean negative log-likelihood, nats
    loss_at_one: float  # the same at temperature 1
    chance: float  # the same of a uniform guess


def calibrate(filler: Filler, products: np.ndarray, catalogue: Catalogue, *, seed: int = 0) -> Calibration:
    """Find temperature and weight of least negative log-likelihood on products whose category is known.

    ``products`` are (n, d) float32 rows of ``catalogue``'s products, such as those for validation. Of very many some
    are drawn, the same ones for the same seed and ids.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    owner = np.repeat(np.arange(len(catalogue)), np.diff(catalogue.place_start))
    owner, places = (part[np.isin(catalogue.places, filler.candidates)] for part in (owner, catalogue.places))
    known = np.unique(owner)
    if not len(known):
        problem = f"none of {len(catalogue):,} products has one of {len(filler.candidates):,} categories"
        fix = "give validation products with categories"
        raise DataError(f"{catalogue.name}: {problem}: nothing to calibrate on", fix)
    most = max(1, _CALIBRATED // len(filler.tree))
    draws = draw_uniform(seed, keys_of([catalogue.ids[row] for row in known.tolist()]))
    known = known[np.sort(np.argsort(draws, kind="stable")[:most])]
    kept = np.isin(owner, known)
    right = np.zeros((len(known), len(filler.candidates)), dtype=bool)
    right[np.searchsorted(known, owner[kept]), np.searchsorted(filler.candidates, places[kept])] = True
    scores = np.concatenate([part for _, part in filler.score_blocks(products, known)])

    def loss(log_temperature: float, given: Filler) -> float:
        """Return the mean of minus the logarithm of what a product's own categories get together."""
        tried, total = replace(given, temperature=float(np.exp(log_temperature))), 0.0
        for here in blocks(len(scores), _SCORES // scores.shape[1]):
            logits = tried.logits(scores[here])
            own = logsumexp(np.where(right[here], logits, -np.inf), axis=1)
            total += float((logsumexp(logits, axis=1) - own).sum())
        return total / len(scores)

    found: list[tuple[float, float, Filler]] = []
    bounds, options = tuple(np.log(_TEMPERATURES)), {"xatol": 1e-3}
    for against, weight in [("level", 0.0), *itertools.product(get_args(Against), _WEIGHTS)]:
        tried = replace(filler, weight=weight, against=against)
        least = minimize_scalar(loss, args=(tried,), bounds=bounds, method="bounded", options=options)
        found.append((float(least.fun), float(np.exp(least.x)), tried))
    value, temperature, best = min(found, key=lambda one: one[0])
    chance = float(-np.log(right.mean(axis=1)).mean())
    return Calibration(temperature, best.weight, best.against, len(known), value, loss(0.0, best), chance)


def reliability_of(filler: Filler, products: np.ndarray, catalogue: Catalogue) -> dict[str, Any]:
    """Measure suggestions for products with a category, best of products that no training has seen; JSON-able.

    A level counts where the product's own path reaches it: of a product that is no further sorted than
    "Men > Clothing" it is unknown what is right below. Of several own paths any counts; the ``whole`` path is right
    where it ends in a category of the product's. ``kept`` counts products with at least one level at the threshold.
    """
    tree, rows = filler.tree, np.flatnonzero(catalogue.place >= 0)
    deepest, kept = tree.lineage.shape[1], 0
    seen: list[list[tuple[float, bool]]] = [[] for _ in range(deepest + 1)]  # by level, 0 for the whole path
    overlaps = []
    for block in filler.blocks(products, rows):
        kept += int((block.kept > 0).sum())
        for product, path, confidence in zip(*block[:3], strict=True):
            own, path = catalogue.places_of(product), path[path >= 0]
            for level, node in enumerate(path[: tree.depth[own].max()].tolist()):
                seen[level + 1].append((confidence[level], bool((tree.lineage[own, level] == node).any())))
            seen[0].append((confidence[len(path) - 1], bool((own == path[-1]).any())))
            overlaps.append(_overlap(tree, path, own))
    whole, *levels = (_level(level, *np.array(one).reshape(-1, 2).T) for level, one in enumerate(seen))
    return {
        "products": len(rows),
        "levels": [one for one in levels if one["products"]],
        "whole": whole,
        "hierarchical": hierarchical_f1(overlaps),
        "threshold": filler.threshold,
        "kept": kept,
    }


def _level(level: int, confidence: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    error, bins = expected_calibration_error(confidence, right)
    n = max(1, len(right))
    shares = {"confidence": float(confidence.sum() / n), "accuracy": float(right.sum() / n)}
    return {"level": level, "products": len(right), **shares, "error": error, "bins": bins}


def expected_calibration_error(
    confidence: np.ndarray, right: np.ndarray, bins: int = BINS
) -> tuple[float, tuple[tuple[int, float, float], ...]]:
    """Return the mean over products of how far a bin's accuracy is from its mean confidence, and the bins.

    Source: Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    many = np.bincount(place, minlength=bins)
    mean, share = (np.bincount(place, of, bins) / np.maximum(many, 1) for of in (confidence, right))
    error = float((many * np.abs(mean - share)).sum() / max(1, len(right)))
    return error, tuple(zip(many.tolist(), mean.tolist(), share.tolist(), strict=True))
