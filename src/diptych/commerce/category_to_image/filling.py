"""Fill a catalogue with a run: calibrate, measure what confidence is worth, suggest paths, write them.

Whole paths compete: P(path) ∝ exp(s/T) · Π p^w, where s is the similarity of product and the path's last category, and
each level from the root on contributes p, the soft-max of s/T of its category among all of that level, or among its
siblings. T, w and which of the two are those that validation products bear out best. Temperature scaling: Guo et al.,
On Calibration of Modern Neural Networks, ICML 2017; products of experts: Hinton, Neural Computation 2002.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, get_args

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts
from diptych.commerce.catalogue.source import used_part, validation_split
from diptych.commerce.category_to_image.application import (
    OtherData,
    PartOptions,
    count_trained_on,
    known_products,
    own_products,
    rows_for,
)
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.tables import fill_tables
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.core.files import atomic_path, write_json, write_rows
from diptych.core.options import parameter
from diptych.core.table import Table
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


def candidate_nodes(catalogue: Catalogue, kind: Candidates = "specific") -> np.ndarray:
    """(c,) int64 nodes that a product can be filled into, ascending."""
    if kind not in get_args(Candidates):
        raise UsageError(f"candidates {kind!r} are none", "specific or all")
    tree = catalogue.tree
    if not len(tree):
        raise DataError(f"{catalogue.name}: the tree has no categories", "give a taxonomy")
    can = tree.is_leaf.copy() if kind == "specific" else np.ones(len(tree), dtype=bool)
    can[catalogue.places] = True
    return np.flatnonzero(can)


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
REVIEWED: tuple[Verdict, ...] = ("in part", "uncertain", "nothing known", "disagrees")
"""Verdicts that a person has to look at."""


@dataclass(frozen=True)
class Filled:
    """What is suggested for one product; ``path`` is ``whole`` as far as the confidence reaches the threshold."""

    id: str
    title: str
    verdict: Verdict
    own: tuple[str, ...] = ()  # the texts of its own categories, maybe none
    path: tuple[str, ...] = ()
    code: str | None = None  # the taxonomy's own id of the last category of ``path``
    confidence: float = 0.0  # of that category
    levels: Sequence[Mapping[str, Any]] = ()  # name, confidence and code of each level of the whole path
    alternatives: Sequence[Mapping[str, Any]] = ()  # category, probability and code: likeliest first
    overlap: tuple[int, int, int] | None = None  # see :func:`hierarchical_f1`; None without an own category

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able; probabilities have six digits, which is as far as products of float32 rows agree."""
        return {name: value for name, value in asdict(self).items() if name != "overlap"}

    def cells(self) -> list[str]:
        """Return it as a row of a table with :data:`COLUMNS`."""
        others = [f"{one['category']} ({one['probability']:.6f})" for one in self.alternatives]
        return [
            self.id,
            self.title,
            self.verdict,
            SEPARATOR.join(self.path),
            self.code or "",
            f"{self.confidence:.6f}",
            "; ".join(self.own),
            SEPARATOR.join(one["name"] for one in self.levels),
            (self.levels[-1]["code"] or "") if self.levels else "",
            " ".join(f"{one['confidence']:.6f}" for one in self.levels),
            "; ".join(others),
        ]


COLUMNS = ["id", "title", "verdict", "category", "code", "confidence", "own"]
COLUMNS += ["whole_path", "whole_code", "levels", "alternatives"]


def hierarchical_f1(overlaps: Iterable[tuple[int, int, int]]) -> dict[str, float]:
    """Return hierarchical precision, recall and F1, micro-averaged over products.

    With P the categories on a product's suggested path and T those on its own, ancestors included: precision is
    Σ|P ∩ T| / Σ|P|, recall Σ|P ∩ T| / Σ|T|, F1 their harmonic mean. Of several own paths T is the one with the most
    categories of P, of these the shortest. Source: Kiritchenko, Matwin and Famili, Functional Annotation of Genes
    Using Hierarchical Text Categorization, BioLINK 2005; recommended in Silla and Freitas, A Survey of Hierarchical
    Classification across Different Application Domains, DMKD 2011.

    Args:
        overlaps: of each product |P ∩ T|, |P| and |T|.
    """
    shared, suggested, own = np.array([(0, 0, 0), *overlaps]).sum(axis=0).tolist()
    both = suggested + own
    return {
        "precision": shared / suggested if suggested else 0.0,
        "recall": shared / own if own else 0.0,
        "f1": 2 * shared / both if both else 0.0,
    }


def _overlap(tree: CategoryTree, path: np.ndarray, own: np.ndarray) -> tuple[int, int, int]:
    common = (tree.lineage[own][:, : len(path)] == path).sum(axis=1)  # equal nodes have equal ancestors
    best = int(np.lexsort((tree.depth[own], -common))[0])
    return int(common[best]), len(path), int(tree.depth[own[best]])


@dataclass(frozen=True, eq=False)
class FilledBlock:
    """Suggestions for some products, as arrays."""

    products: np.ndarray  # (b,) rows of the catalogue
    path: np.ndarray  # (b, deepest) int64 nodes of the whole path, -1 behind its end
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
        rows: (nodes, d) float32 rows of all of the tree's categories, dense or sparse.
        temperature: T; scores are divided by it.
        weight: w, of what each level of a path contributes.
        against: the categories that each level's soft-max is over.
        threshold: a path is cut where its confidence falls below it.
        alternatives: how many of the likeliest categories to name.
    """

    tree: CategoryTree
    candidates: np.ndarray
    rows: np.ndarray | csr_array
    temperature: float = 1.0
    weight: float = 0.0
    against: Against = "level"
    threshold: float = 0.5
    alternatives: int = 3

    def __post_init__(self) -> None:
        if self.rows.shape[0] != len(self.tree):
            message = f"{len(self.tree):,} categories, {self.rows.shape[0]:,} rows of theirs"
            raise MismatchError(message, "make the rows of these categories")
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"threshold {self.threshold} is no probability", "give one from 0 to 1")
        if self.temperature <= 0 or self.alternatives < 0:
            raise UsageError(
                f"temperature {self.temperature} and {self.alternatives} alternatives",
                "a temperature is above 0, alternatives are 0 or more",
            )

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

    def score_blocks(
        self, products: np.ndarray | csr_array, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows of products and their (b, nodes) float64 scores: bounded whatever the number of products."""
        is_dense, width = isinstance(products, np.ndarray), products.shape[1]
        if is_dense != isinstance(self.rows, np.ndarray) or width != self.rows.shape[1]:
            raise MismatchError(
                f"rows of products of width {width:,} and of categories of {self.rows.shape[1]:,} cannot be compared",
                "make both with one ranker",
            )
        across = self.rows.T if is_dense else self.rows.T.tocsr()  # type: ignore[union-attr]
        for here in blocks(len(rows), _SCORES // max(1, len(self.tree))):
            product = products[rows[here]] @ across
            scores = np.asarray(product if is_dense else product.toarray(), dtype=np.float64)
            if not np.isfinite(scores).all():
                bad = int(rows[here][~np.isfinite(scores).all(axis=1)][0])
                raise NumericalError(f"the scores of product row {bad} are not finite", "make the rows again")
            yield rows[here], scores

    def blocks(self, products: np.ndarray | csr_array, rows: np.ndarray) -> Iterator[FilledBlock]:
        """Yield suggestions for the products ``rows`` of (n, d) float32 ``products``, a block at a time."""
        from scipy.special import softmax

        tree, count = self.tree, min(max(1, self.alternatives), len(self.candidates))
        for some, scores in self.score_blocks(products, rows):
            shares = softmax(self.logits(scores), axis=1)
            masses = np.minimum(shares @ self.below, 1.0)  # sums of shares, rounded
            best = np.argsort(-shares, axis=1, kind="stable")[:, :count]
            path = tree.lineage[self.candidates[best[:, 0]]]
            confidence = np.where(path >= 0, np.take_along_axis(masses, np.maximum(path, 0), axis=1), 0.0)
            sure = (confidence >= self.threshold) & (path >= 0)
            yield FilledBlock(
                products=some,
                path=path,
                confidence=confidence,
                kept=np.cumprod(sure, axis=1).sum(axis=1),
                best=self.candidates[best[:, : self.alternatives]],
                share=np.take_along_axis(shares, best[:, : self.alternatives], axis=1),
            )

    def fill(
        self,
        products: np.ndarray | csr_array,
        catalogue: Catalogue,
        rows: np.ndarray | None = None,
        known: np.ndarray | None = None,
    ) -> Iterator[Filled]:
        """Yield suggestions for the products ``rows`` of a catalogue; without it, for those that have no category.

        Args:
            products: (n, d) float32 rows of the catalogue's products.
            known: (n,) booleans: products that have something that their rows were made of; nothing is suggested for
                others, whose rows are all the same. None: all have.
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
                own = catalogue.places_of(product)
                texts = tuple(self.tree.text(int(node)) for node in own)
                name, title = catalogue.ids[product], catalogue.titles[product]
                if known is None or known[product]:
                    yield self._filled(block, place, own, id=name, title=title, own=texts)
                else:
                    overlap = _overlap(self.tree, own[:0], own) if len(own) else None
                    yield Filled(name, title, "nothing known", texts, overlap=overlap)

    def _filled(self, block: FilledBlock, place: int, places: np.ndarray, **of_product: Any) -> Filled:
        tree, kept, codes = self.tree, int(block.kept[place]), self.tree.codes
        path = block.path[place][block.path[place] >= 0]
        values = [round(value, 6) for value in block.confidence[place].tolist()]
        paths = [tree.paths[node] for node in path.tolist()]
        best = zip(block.best[place].tolist(), block.share[place].tolist(), strict=True)
        sure = paths[kept - 1] if kept else ()
        overlap = _overlap(tree, path[:kept], places) if len(places) else None
        verdict: Verdict = "whole" if kept == len(path) else "in part"
        if not kept:
            verdict = "uncertain"
        elif overlap is not None:
            is_on, (common, _, depth) = overlap[0] == kept, overlap
            verdict = "agrees" if is_on else "refines" if common == depth else "disagrees"
        return Filled(
            **of_product,
            verdict=verdict,
            path=sure,
            code=codes.get(sure),
            confidence=values[kept - 1] if kept else 0.0,
            levels=[
                {"name": one[-1], "confidence": values[at], "code": codes.get(one)}
                for at, one in enumerate(paths)
            ],
            alternatives=[
                {"category": tree.text(node), "probability": round(p, 6), "code": codes.get(tree.paths[node])}
                for node, p in best
            ],
            overlap=overlap,
        )


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


def calibrate(
    filler: Filler, products: np.ndarray | csr_array, catalogue: Catalogue, *, seed: int = 0
) -> Calibration:
    """Find temperature and weight of least negative log-likelihood on products whose category is known.

    Of very many products some are drawn, the same ones for the same seed and ids.

    Args:
        products: (n, d) float32 rows of ``catalogue``'s products, such as those for validation.
    """
    from scipy.optimize import minimize_scalar

    candidates = filler.candidates
    column = np.full(len(catalogue.tree), -1, dtype=np.int64)
    column[candidates] = np.arange(len(candidates))
    owner = np.repeat(np.arange(len(catalogue)), np.diff(catalogue.place_start))
    is_candidate = column[catalogue.places] >= 0
    owner, column = owner[is_candidate], column[catalogue.places][is_candidate]
    known = np.unique(owner)
    if not len(known):
        raise DataError(
            f"{catalogue.name}: none of {len(catalogue):,} products has one of {len(candidates):,} categories: "
            "nothing to calibrate on",
            "give validation products with categories",
        )
    most = max(1, _CALIBRATED // len(filler.tree))
    if len(known) > most:
        draws = draw_uniform(seed, keys_of([catalogue.ids[row] for row in known.tolist()]))
        known = known[np.sort(np.argsort(draws, kind="stable")[:most])]
    kept = np.isin(owner, known)
    right = np.zeros((len(known), len(candidates)), dtype=bool)
    right[np.searchsorted(known, owner[kept]), column[kept]] = True
    scores = np.concatenate([part for _, part in filler.score_blocks(products, known)])

    def loss(log_temperature: float, filler: Filler = filler) -> float:
        return _loss(replace(filler, temperature=float(np.exp(log_temperature))), scores, right)

    found: list[tuple[float, Filler]] = []
    for against, weight in [("level", 0.0), *itertools.product(get_args(Against), _WEIGHTS)]:
        tried = replace(filler, weight=weight, against=against)
        bounds, options = tuple(np.log(_TEMPERATURES)), {"xatol": 1e-3}
        least = minimize_scalar(loss, args=(tried,), bounds=bounds, method="bounded", options=options)
        found.append((float(least.fun), replace(tried, temperature=float(np.exp(least.x)))))
    value, best = min(found, key=lambda one: one[0])
    return Calibration(
        **{name: getattr(best, name) for name in ("temperature", "weight", "against")},
        products=len(known),
        loss=value,
        loss_at_one=loss(0.0, best),
        chance=float(-np.log(right.mean(axis=1)).mean()),
    )


def _loss(filler: Filler, scores: np.ndarray, right: np.ndarray) -> float:
    """Return the mean over products of minus the logarithm of what their own categories get together."""
    from scipy.special import logsumexp

    total = 0.0
    for here in blocks(len(scores), (1 << 20) // scores.shape[1]):
        logits = filler.logits(scores[here])
        own = logsumexp(np.where(right[here], logits, -np.inf), axis=1)
        total += float((logsumexp(logits, axis=1) - own).sum())
    return total / len(scores)


@dataclass(frozen=True)
class LevelReliability:
    """What confidence is worth on one level of suggested paths."""

    level: int  # 1 for the most general; 0 for the whole path
    products: int  # how many have a suggestion and a category of their own there
    confidence: float  # mean confidence
    accuracy: float  # how many are right, as a share
    error: float  # expected calibration error
    bins: tuple[tuple[int, float, float], ...]  # products, mean confidence, accuracy of each bin


@dataclass(frozen=True)
class Reliability:
    """What suggestions are worth for products whose category is known."""

    products: int
    levels: tuple[LevelReliability, ...]  # of each level that has any
    whole: LevelReliability  # of whole paths: right where a path ends in a category of the product's
    hierarchical: Mapping[str, float]  # see :func:`hierarchical_f1`, of whole paths
    threshold: float  # where paths were cut
    # by how many levels were kept: (levels, products, share whose last category is on a path of theirs)
    cut: tuple[tuple[int, int, float], ...]


def reliability_of(filler: Filler, products: np.ndarray | csr_array, catalogue: Catalogue) -> Reliability:
    """Measure suggestions for products with a category, best of products that no training has seen.

    A level counts where the product's own path reaches it: of a product that is no further sorted than
    "Men > Clothing" it is unknown what is right below. Of several own paths any counts.

    Args:
        products: (n, d) float32 rows of the catalogue's products.
    """
    tree, rows = filler.tree, np.flatnonzero(catalogue.place >= 0)
    deepest = tree.lineage.shape[1]
    confidence, kept = np.zeros((len(rows), deepest)), np.zeros(len(rows), dtype=np.int64)
    right, counts = np.zeros((2, len(rows), deepest), dtype=bool)
    ends, is_whole, overlaps = kept.copy(), kept > 0, []
    at = 0
    for block in filler.blocks(products, rows):
        for place, product in enumerate(block.products.tolist()):
            own, path = catalogue.places_of(product), block.path[place]
            confidence[at], kept[at] = block.confidence[place], block.kept[place]
            right[at] = ((tree.lineage[own] == path) & (path >= 0)).any(axis=0)
            counts[at] = (path >= 0) & (np.arange(deepest) < tree.depth[own].max())
            ends[at] = (path >= 0).sum() - 1
            is_whole[at] = path[ends[at]] in own
            overlaps.append(_overlap(tree, path[path >= 0], own))
            at += 1
    levels = [
        _level(one + 1, confidence[counts[:, one], one], right[counts[:, one], one])
        for one in range(deepest)
        if counts[:, one].any()
    ]
    cut = []
    for many in np.unique(kept).tolist():
        judged = (kept == many) & counts[:, many - 1] & (many > 0)
        share = float(right[judged, many - 1].mean()) if judged.any() else 0.0
        cut.append((many, int((kept == many).sum()), share))
    whole = _level(0, confidence[np.arange(len(rows)), ends], is_whole)
    f1 = hierarchical_f1(overlaps)
    return Reliability(len(rows), tuple(levels), whole, f1, filler.threshold, tuple(cut))


def _level(level: int, confidence: np.ndarray, right: np.ndarray) -> LevelReliability:
    error, bins = expected_calibration_error(confidence, right)
    mean, share = (float(one.mean()) if len(one) else 0.0 for one in (confidence, right))
    return LevelReliability(level, len(right), mean, share, error, bins)


def expected_calibration_error(
    confidence: np.ndarray, right: np.ndarray, bins: int = BINS
) -> tuple[float, tuple[tuple[int, float, float], ...]]:
    """Return the mean over products of how far a bin's accuracy is from its mean confidence, and the bins.

    Source: Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.

    Args:
        confidence: (n,) from 0 to 1.
        right: (n,) booleans.
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    many = np.bincount(place, minlength=bins)
    some = np.maximum(many, 1)
    mean = np.bincount(place, confidence, minlength=bins) / some
    share = np.bincount(place, right.astype(np.float64), minlength=bins) / some
    error = float((many * np.abs(mean - share)).sum() / max(1, len(right)))
    return error, tuple(zip(many.tolist(), mean.tolist(), share.tolist(), strict=True))


class FillOptions(PartOptions):
    """What is suggested, and how sure it has to be."""

    check: bool = parameter(False, "Also products whose own category is not the one suggested.")
    threshold: float = parameter(0.5, "Confidence below which a path is cut.", ge=0, le=1)
    alternatives: int = parameter(3, "Likeliest categories to name.", ge=0)
    candidates: Candidates = parameter("specific", "specific: leaves, and categories that hold products.")
    calibrate_on: str | None = parameter(
        None,
        "The split of the run's products that confidence is calibrated on.",
        default="its validation split",
    )


@dataclass(frozen=True)
class FilledCatalogue:
    """What was suggested, and what it is worth."""

    file: Path
    written: Written
    products: int  # how many were looked at
    there: int  # how many there are
    trained_on: int  # how many of them the run was trained on
    calibration: Calibration
    split: str  # what it was calibrated on
    reliability: Reliability | None  # None where there are no other products to measure it on

    def tables(self) -> list[Table]:
        """Return what confidence is worth, and the verdicts."""
        return fill_tables(self.written.counts, self.reliability)

    def lines(self) -> list[str]:
        """Return the calibration, what a reader of the suggestions should know, and where they are."""
        found, written = self.calibration, self.written
        notes = [
            f"temperature {found.temperature:.4g}, levels of a path (against {found.against}) with weight "
            f"{found.weight:g}, found on {found.products:,} products of split {self.split}: loss {found.loss:.3f} "
            f"nats, a uniform guess has {found.chance:.3f}"
        ]
        if self.reliability is None:
            notes.append(
                "what confidence is worth was not measured: there are no other products to test it on"
            )
        else:
            f1 = self.reliability.hierarchical["f1"]
            notes.append(f"hierarchical F1 of whole paths of test products: {100 * f1:.1f} %")
        if written.compared:
            precision, recall, f1 = (
                100 * written.hierarchical[name] for name in ("precision", "recall", "f1")
            )
            notes.append(
                f"hierarchical F1 of what is suggested for {written.compared:,} products with categories of their "
                f"own: {f1:.1f} % (precision {precision:.1f}, recall {recall:.1f})"
            )
        if self.trained_on:
            notes.append(
                f"the run was trained on {self.trained_on:,} of these products and agrees with them too readily; "
                "--split test has others"
            )
        if not self.products:
            return [*notes, f"all {self.there:,} products have a category: nothing to fill"]
        if agreed := self.products - written.products:
            notes.append(f"{agreed:,} that agree with their own category left out")
        notes.append(f"{written.products:,} products in {self.file}")
        return [*notes, f"{written.reviewed:,} of them need a person, as in {review_path(self.file)}"]


def fill_catalogue(run: CategoryRun, data: OtherData, options: FillOptions) -> FilledCatalogue:
    """Suggest categories for the products without one, or with ``check`` for all, and write them to a file."""
    check, is_own = options.check, data.data is None
    file = options.out or run.folder / ("checked.jsonl" if check else "filled.jsonl")
    check_ending(file)
    whole, source = data.catalogue(run, own_tree=False)
    own, catalogue = whole if is_own else own_products(run), used_part(whole, options.split)
    split = _calibration_split(own, options.calibrate_on)
    filler = _filler(run, own, options)
    with rows_for(run, own.split(split), file) as rows:
        calibration = calibrate(filler, rows, own.split(split))
    found = {name: getattr(calibration, name) for name in ("temperature", "weight", "against")}
    filler, reliability = replace(filler, **found), None
    test = own.split("test") if split != "test" and "test" in own.split_sizes else None
    if test is not None and bool((test.place >= 0).any()):
        with rows_for(run, test, file) as rows:
            reliability = reliability_of(filler, rows, test)
    if is_other := catalogue.tree.fingerprint != own.tree.fingerprint:  # the same confidence in scores
        filler = replace(_filler(run, catalogue, options), **found)
    part = catalogue.subset(np.arange(len(catalogue)) if check else np.flatnonzero(catalogue.place < 0))
    trained_on = count_trained_on(run, part, own=is_own)
    metadata: dict[str, Any] = {
        "run": str(run.folder.resolve()),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        "data": source,
        "split": options.split,
        "trained_on": trained_on,
        "candidates": {"kind": options.candidates, "categories": len(filler.candidates)},
        "threshold": options.threshold,
        "calibration": {**asdict(calibration), "split": split},
        "reliability": None if reliability is None else asdict(reliability),
        "measured on": "the run's own tree" if is_other else "the same tree",
        "notes": list(catalogue.notes),
    }
    leave_out: tuple[Verdict, ...] = ("agrees",) if check else ()
    if not len(part):
        written = write_filled([], file, metadata)
    else:
        with rows_for(run, part, file) as rows:
            filled = filler.fill(rows, part, np.arange(len(part)), known_products(run, part))
            written = write_filled(filled, file, metadata, leave_out=leave_out)
    sizes = len(part), len(catalogue), trained_on
    return FilledCatalogue(file, written, *sizes, calibration, split, reliability)


def _calibration_split(own: Catalogue, named: str | None) -> str:
    name = named or validation_split(own)
    if name is None or name not in own.split_sizes:
        raise UsageError(
            f"the run has no {named or 'validation'} products to calibrate on, only {', '.join(own.split_sizes)}",
            "name others that it was not trained on: --calibrate-on test",
        )
    if name == "train":
        raise UsageError(
            "calibrated on products that it was trained on, a model is overconfident",
            "calibrate on others: --calibrate-on test",
        )
    return name


def _filler(run: CategoryRun, catalogue: Catalogue, options: FillOptions) -> Filler:
    """Return the filler for the catalogue's tree, not calibrated."""
    nodes, tree = candidate_nodes(catalogue, options.candidates), catalogue.tree
    texts = category_texts(tree, range(len(tree)), run.options.query)
    rows = run.model.category_rows(run.category_features(texts))
    return Filler(tree, nodes, rows, threshold=options.threshold, alternatives=options.alternatives)


def check_ending(file: Path | str) -> None:
    """Raise a UsageError where suggestions cannot be written to such a file."""
    if Path(file).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"{file} ends in {Path(file).suffix or 'nothing'!r}", "use .jsonl or .csv")


def summary_path(file: Path | str) -> Path:
    """Return where the summary of ``file`` is."""
    return Path(file).with_suffix(".summary.json")


def review_path(file: Path | str) -> Path:
    """Return where the products of ``file`` are that need a person."""
    return Path(file).with_suffix(".review.csv")


@dataclass(frozen=True)
class Written:
    """How many suggestions were written."""

    counts: Mapping[str, int]  # products per verdict, left out or not
    products: int  # in the file
    reviewed: int  # of them in the list that needs a person
    compared: int  # products with a category of their own
    hierarchical: Mapping[str, float]  # see :func:`hierarchical_f1`, of paths as far as they are sure enough


@contextmanager
def _written(file: Path) -> Iterator[TextIO]:
    """Open a file that takes its name when the block succeeds."""
    with (
        atomic_path(file) as temporary,
        open(temporary, "w", encoding="utf-8", errors="replace", newline="") as handle,
    ):
        yield handle


def write_filled(
    filled: Iterable[Filled],
    file: Path | str,
    metadata: dict[str, Any],
    *,
    leave_out: tuple[Verdict, ...] = (),
) -> Written:
    """Write suggestions as they come, those that need a person as CSV, and a summary; each whole or not at all."""
    file = Path(file)
    check_ending(file)
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    overlaps: list[tuple[int, int, int]] = []
    with _written(file) as lines, _written(review_path(file)) as review:
        write_rows(review, COLUMNS, ())
        if file.suffix == ".csv":
            write_rows(lines, COLUMNS, ())
        for one in filled:
            counts[one.verdict] += 1
            if one.overlap is not None:
                overlaps.append(one.overlap)
            if one.verdict in REVIEWED:
                write_rows(review, one.cells(), ())
            if one.verdict in leave_out:
                continue
            if file.suffix == ".csv":
                write_rows(lines, one.cells(), ())
            else:
                lines.write(json.dumps(one.to_dict(), ensure_ascii=False) + "\n")
        summary_path(file).unlink(missing_ok=True)  # killed from here on, no summary is of another file
    there = {name: count for name, count in counts.items() if count}
    left = sum(counts[verdict] for verdict in leave_out)
    size = sum(counts.values())
    reviewed = sum(counts[verdict] for verdict in REVIEWED)
    written = Written(there, size - left, reviewed, len(overlaps), hierarchical_f1(overlaps))
    summary = {"products": size, "counts": there, "left_out": list(leave_out), "review": reviewed}
    if overlaps:
        summary["hierarchical"] = {"products": len(overlaps), **written.hierarchical}
    write_json(summary_path(file), {"format": 1, **metadata, **summary})
    return written
