"""Suggest category paths for products: calibrate, measure what confidence is worth, rank whole paths, write them.

Whole paths compete: P(path) ∝ exp(s/T) · Π p^w, where s is the similarity of product and the path's last category, and
each level from the root on contributes p, the soft-max of s/T of its category among all of that level, or among its
siblings. T, w and which of the two are those that validation products bear out best. Temperature scaling: Guo et al.,
On Calibration of Modern Neural Networks, ICML 2017; products of experts: Hinton, Neural Computation 2002.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import field_validator
from scipy.sparse import csr_array

from diptych.commerce.catalogue import Catalogue, validation_split
from diptych.commerce.category_to_image.results import count_cell, percent
from diptych.commerce.category_to_image.run import CategoryRun, OtherData, PartOptions
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_path, write_json, write_rows
from diptych.core.options import parameter
from diptych.core.table import Cell, Table
from diptych.metrics.runs import blocks

Candidates = Literal["specific", "all"]
Against = Literal["level", "siblings"]

_SCORES = 1 << 21  # scores held at once
_CALIBRATED = 1 << 22  # scores kept while the temperature is looked for: 32 MB
_TEMPERATURES = (1e-4, 1e2)
_WEIGHTS = (0.25, 0.5, 1.0)
_BINS = 15
_NAMED = 3  # likeliest categories
CALIBRATED = ("temperature", "weight", "against")

VERDICTS = {
    "whole": "no category of its own; a whole path is sure enough",
    "in part": "no category of its own; the beginning of a path is sure enough",
    "uncertain": "not even the most general category is sure enough",
    "nothing known": "has nothing that the model reads: nothing is suggested",
    "agrees": "what is sure enough lies on a path of its own",
    "refines": "continues below its own category",
    "disagrees": "what is sure enough leads elsewhere than its own categories",
}
REVIEWED = ("in part", "uncertain", "nothing known", "disagrees")  # a user has to look at them

Filled = dict[str, Any]
"""A suggestion for one product, JSON-able; probabilities have six digits, as far as products of float32 rows agree.

``id``, ``title``, ``verdict`` (of VERDICTS), ``own`` (texts of its own categories), ``path`` (the whole path as far as
the confidence reaches the threshold), ``code`` and ``confidence`` of its last category, ``levels`` (name, confidence,
code of each level of the whole path), ``alternatives`` (category, probability, code, likeliest first).
"""


def candidate_nodes(catalogue: Catalogue, kind: Candidates = "specific") -> np.ndarray:
    """Return (c,) nodes that products can be filled into: leaves and categories that hold products, or all."""
    can = np.full(len(catalogue.tree), kind == "all") | catalogue.tree.is_leaf
    can[catalogue.places] = True
    return np.flatnonzero(can)


Overlap = tuple[int, int, int]


def overlap_of(tree: CategoryTree, node: int, own: np.ndarray) -> Overlap:
    """Return |P ∩ T|, |P| and |T|: categories on the path P to ``node`` (-1: none), the nearest own path T, both."""
    common = tree.common(own, np.full(len(own), node)) if node >= 0 else np.zeros(len(own), dtype=np.int64)
    best = np.lexsort((tree.depth[own], -common))[0]
    return int(common[best]), int(tree.depth[node]) if node >= 0 else 0, int(tree.depth[own[best]])


def hierarchical_f1(overlaps: Iterable[Overlap]) -> dict[str, float]:
    """Return hierarchical precision, recall and F1, micro-averaged over products.

    Precision is Σ|P ∩ T| / Σ|P|, recall Σ|P ∩ T| / Σ|T|, F1 their harmonic mean. Source: Kiritchenko, Matwin and
    Famili, Functional Annotation of Genes Using Hierarchical Text Categorization, BioLINK 2005.
    """
    shared, suggested, own = np.array([(0, 0, 0), *overlaps]).sum(axis=0).tolist()
    sizes = {"precision": suggested, "recall": own, "f1": (suggested + own) / 2}
    return {name: shared / size if size else 0.0 for name, size in sizes.items()}


@dataclass(frozen=True, eq=False)
class Filler:
    """Ranks the paths of a tree for products, from embeddings of one model."""

    tree: CategoryTree
    candidates: np.ndarray  # (c,) int64 nodes, see candidate_nodes
    rows: np.ndarray  # (nodes, d) float32 rows of all categories of the tree
    temperature: float = 1.0  # T, by which similarities are divided
    weight: float = 0.0  # w, of what each level of a path contributes
    against: Against = "level"  # the categories that each level's soft-max is over
    threshold: float = 0.5  # a path is cut where its confidence falls below it

    @cached_property
    def below(self) -> csr_array:
        """(c, nodes): 1 where a candidate is a node or below it."""
        lineage = self.tree.lineage[self.candidates]
        row, level = np.nonzero(lineage >= 0)
        entries = np.ones(len(row)), (row, lineage[row, level])
        return csr_array(entries, shape=(len(lineage), len(self.tree)))

    def logits(self, scores: np.ndarray) -> np.ndarray:
        """(b, c) logits of whole paths, from (b, nodes) scores of categories."""
        scaled = scores / self.temperature
        own: np.ndarray = scaled[:, self.candidates]
        if self.weight:
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
            yield rows[here], np.asarray(products[rows[here]] @ self.rows.T, dtype=np.float64)

    def paths(
        self, products: np.ndarray, rows: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, list[tuple[int, float]]]]:
        """Yield a product, the nodes of its likeliest path with their confidence, likeliest nodes and probabilities."""
        from scipy.special import softmax

        for some, scores in self.score_blocks(products, rows):
            shares = softmax(self.logits(scores), axis=1)
            masses = np.minimum(shares @ self.below, 1.0)  # sums of shares, rounded
            best = np.argsort(-shares, axis=1, kind="stable")[:, :_NAMED]
            for at, mass, share, first in zip(some.tolist(), masses, shares, best, strict=True):
                path, named = self.tree.ancestors(self.candidates[first[0]]), self.candidates[first]
                yield at, path, mass[path], list(zip(named.tolist(), share[first].tolist(), strict=True))

    def fill(
        self, products: np.ndarray, catalogue: Catalogue, known: np.ndarray | None = None
    ) -> Iterator[tuple[Filled, Overlap | None]]:
        """Yield suggestions for (n, d) float32 rows of products, and the overlap with their own paths.

        Nothing is suggested for products that are not ``known``, (n,) booleans: they have nothing that the model reads.
        """
        tree = self.tree

        def entry(key: str, text: str, name: str, value: float, node: int) -> dict[str, Any]:
            return {key: text, name: round(float(value), 6), "code": tree.codes.get(tree.paths[node])}

        for at, path, sure, likeliest in self.paths(products, np.arange(len(catalogue))):
            if known is not None and not known[at]:
                path, sure, likeliest = path[:0], sure[:0], []
            kept = path[sure >= self.threshold].tolist()  # confidence falls along a path
            levels = [
                entry("name", tree.paths[node][-1], "confidence", value, node)
                for node, value in zip(path.tolist(), sure, strict=True)
            ]
            own = catalogue.places_of(at)
            overlap = overlap_of(tree, kept[-1] if kept else -1, own) if len(own) else None
            if not kept:
                verdict = "uncertain" if len(path) else "nothing known"
            elif overlap is None:
                verdict = "whole" if len(kept) == len(path) else "in part"
            else:
                common, _, depth = overlap
                verdict = "agrees" if common == len(kept) else "refines" if common == depth else "disagrees"
            yield (
                {
                    "id": catalogue.ids[at],
                    "title": catalogue.titles[at],
                    "verdict": verdict,
                    "own": [tree.text(node) for node in own.tolist()],
                    "path": list(tree.paths[kept[-1]]) if kept else [],
                    "code": levels[len(kept) - 1]["code"] if kept else None,
                    "confidence": levels[len(kept) - 1]["confidence"] if kept else 0.0,
                    "levels": levels,
                    "alternatives": [
                        entry("category", tree.text(node), "probability", value, node)
                        for node, value in likeliest
                    ],
                },
                overlap,
            )


def calibrate(
    filler: Filler, products: np.ndarray, catalogue: Catalogue, *, seed: int = 0
) -> tuple[Filler, dict[str, Any]]:
    """Return a filler with temperature and weight of least negative log-likelihood, and what they were found on.

    ``products`` are (n, d) float32 rows of ``catalogue``'s products, whose category is known, such as those for
    validation; of very many some are drawn. Losses are means of products in nats, ``chance`` that of a uniform guess.
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
    if len(known) > (most := max(1, _CALIBRATED // len(filler.tree))):
        known = np.sort(np.random.default_rng(seed).choice(known, most, replace=False))
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

    found: list[tuple[float, Filler]] = []
    bounds, options = tuple(np.log(_TEMPERATURES)), {"xatol": 1e-3}
    for against, weight in [("level", 0.0), *product(get_args(Against), _WEIGHTS)]:
        tried = replace(filler, weight=weight, against=against)
        least = minimize_scalar(loss, args=(tried,), bounds=bounds, method="bounded", options=options)
        found.append((float(least.fun), replace(tried, temperature=float(np.exp(least.x)))))
    value, best = min(found, key=lambda one: one[0])
    about = {name: getattr(best, name) for name in CALIBRATED}
    chance = float(-np.log(right.mean(axis=1)).mean())
    return best, {**about, "products": len(known), "loss": value, "chance": chance}


def reliability_of(filler: Filler, products: np.ndarray, catalogue: Catalogue) -> dict[str, Any]:
    """Measure suggestions for products with a category, best of products that no training has seen; JSON-able.

    A level counts where the product's own path reaches it: of a product that is no further sorted than
    "Men > Clothing" it is unknown what is right below. Of several own paths any counts; the whole path is right
    where it ends in a category of the product's. ``kept`` counts products with at least one level at the threshold.
    """
    seen: dict[str, list[tuple[float, bool]]] = {}
    overlaps, kept, rows = [], 0, np.flatnonzero(catalogue.place >= 0)
    for at, path, sure, _ in filler.paths(products, rows):
        own = catalogue.places_of(at)
        overlaps.append(overlap_of(filler.tree, path[-1], own))
        for depth in range(1, min(len(path), filler.tree.depth[own].max()) + 1):
            seen.setdefault(f"level {depth}", []).append((sure[depth - 1], depth <= overlaps[-1][0]))
        seen.setdefault("whole path", []).append((sure[-1], path[-1] in own))
        kept += int(sure[0] >= filler.threshold)
    levels = []
    for level, (confidence, right) in ((one, np.array(seen[one]).T) for one in sorted(seen)):
        shares = {"confidence": float(confidence.mean()), "accuracy": float(right.mean())}
        # Expected calibration error: Naeini et al., Obtaining Well Calibrated Probabilities, AAAI 2015.
        place = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
        error = float(np.abs(np.bincount(place, confidence - right)).sum() / len(right))
        levels.append({"level": level, "products": len(right), **shares, "error": error})
    measured = {"products": len(rows), "levels": levels, "hierarchical": hierarchical_f1(overlaps)}
    return measured | {"threshold": filler.threshold, "kept": kept}


class FillOptions(PartOptions):
    """Options of the suggestions."""

    out: Path | None = parameter(None, "Where to write: a .jsonl or .csv file.", "--out", "-o")
    check: bool = parameter(False, "Also products whose own category is not the one suggested.")
    threshold: float = parameter(0.5, "Confidence below which a path is cut.", ge=0, le=1)
    candidates: Candidates = parameter("specific", "specific: leaves, and categories that hold products.")
    calibrate_on: str | None = parameter(None, "A split of the run's products.", default="validation")

    @field_validator("out")
    @classmethod
    def _known_ending(cls, file: Path | None) -> Path | None:
        if file is not None and file.suffix not in (".jsonl", ".csv"):
            raise UsageError(f"{file} ends in {file.suffix or 'nothing'!r}", "use .jsonl or .csv")
        return file


def calibrated_filler(
    run: CategoryRun, own: Catalogue, options: FillOptions
) -> tuple[Filler, dict[str, Any], str]:
    """Return what suggests categories of a run's products, its calibration, and the split that it was calibrated on."""
    known = options.calibrate_on or validation_split(own) or "val"
    if known == "train" or known not in own.split_sizes:
        problem = (
            f"confidence cannot be calibrated on {known!r} products of the run, which has {own.split_sizes}"
        )
        raise UsageError(problem, "name a split that it was not trained on: --calibrate-on test")
    with run.embeddings(own.split(known)) as embedded:
        filler, calibration = calibrate(_filler_of(run, own, options), embedded.rows, own.split(known))
    return filler, calibration, known


def _filler_of(run: CategoryRun, shop: Catalogue, options: FillOptions) -> Filler:
    nodes, rows = candidate_nodes(shop, options.candidates), run.category_rows(run.texts(shop.tree))
    return Filler(shop.tree, nodes, rows, threshold=options.threshold)


def is_known(run: CategoryRun, shop: Catalogue) -> np.ndarray:
    """Return (n,) which products have something that the model reads."""
    present = run.maker.products(shop).present
    known: np.ndarray = np.logical_or.reduce([present[one] for one in run.options.modalities])
    return known


def fill_catalogue(run: CategoryRun, data: OtherData, options: FillOptions) -> tuple[dict[str, Any], Path]:
    """Suggest categories for the products without one, or with ``check`` for all; return the summary and the file."""
    file = options.out or run.folder / ("checked.jsonl" if options.check else "filled.jsonl")
    whole = data.of(run, own_tree=False)
    own = whole if data.data is None else run.products()
    filler, calibration, known = calibrated_filler(run, own, options)
    reliability = None
    if known != "test" and "test" in own.split_sizes and ((test := own.split("test")).place >= 0).any():
        with run.embeddings(test) as embedded:
            reliability = reliability_of(filler, embedded.rows, test)
    if whole.tree.fingerprint != own.tree.fingerprint:  # the same confidence in scores
        filler = replace(_filler_of(run, whole, options), **{name: calibration[name] for name in CALIBRATED})
    part = whole if options.split in (None, "all") else whole.split(options.split)
    part = part.subset(np.flatnonzero((part.place < 0) | options.check))
    metadata: dict[str, Any] = {
        **data.use(run, options.split, part),
        "candidates": {"kind": options.candidates, "categories": len(filler.candidates)},
        "threshold": options.threshold,
        "calibration": {**calibration, "split": known},
        "reliability": reliability,
        "notes": list(whole.notes),
    }

    def suggested() -> Iterator[tuple[Filled, Overlap | None]]:
        with run.embeddings(part) as embedded:
            yield from filler.fill(embedded.rows, part, is_known(run, part))

    leave_out = ("agrees",) if options.check else ()
    return write_filled(suggested() if len(part) else (), file, metadata, leave_out), file


def fill_shown(summary: Mapping[str, Any], file: Path) -> list[Table | str]:
    found, reliability, counts = summary["calibration"], summary["reliability"], summary["counts"]
    shown: list[Table | str] = []
    if reliability is not None:
        rows = [
            [Cell(head), count_cell(n), percent(sure), percent(right), Cell.number(error, 3)]
            for head, n, sure, right, error in (one.values() for one in reliability["levels"])
        ]
        after = f"{reliability['kept']:,} get at least one level at the threshold of {reliability['threshold']:g}; "
        after += f"hierarchical F1 of whole paths {100 * reliability['hierarchical']['f1']:.1f} %"
        caption = f"What confidence is worth on {reliability['products']:,} test products"
        heads = ("", "products", "% confidence", "% right", "calibration error")
        shown.append(Table(caption, heads, rows, after=after))
    else:
        shown.append("what confidence is worth was not measured: no other products have a category")
    if counts:
        verdicts = [[Cell(one), count_cell(n), Cell(VERDICTS[one], words=True)] for one, n in counts.items()]
        shown.append(Table("Suggestions", ("verdict", "products", "meaning"), verdicts))
    calibrated = (
        "temperature {temperature:.4g}, levels of a path (against {against}) with weight {weight:g}, found "
    )
    calibrated += (
        "on {products:,} products of split {split}: loss {loss:.3f} nats, of a uniform guess {chance:.3f}"
    )
    shown.append(calibrated.format(**found))
    if own := summary.get("hierarchical"):
        line = f"hierarchical F1 of what is suggested for {own['products']:,} products with categories of their own"
        shown.append(f"{line}: {100 * own['f1']:.1f} %")
    if known := summary["trained_on"]:
        line = f"the run was trained on {known:,} of these products and agrees with them too readily"
        shown.append(f"{line}; --split test has others")
    if not summary["products"]:
        return [*shown, "all products have a category: nothing to fill"]
    agreed = sum(counts.get(one, 0) for one in summary["left_out"])
    left = f"; {agreed:,} that agree with their own category left out" if agreed else ""
    review = f"{summary['review']:,} of them need review, as in {file.with_suffix('.review.csv')}"
    return [*shown, f"{summary['products'] - agreed:,} products in {file}{left}", review]


COLUMNS = ["id", "title", "verdict", "category", "code", "confidence", "own"]
COLUMNS += ["whole_path", "whole_code", "levels", "alternatives"]


def _row_of(one: Filled) -> list[str]:
    levels, others = one["levels"], one["alternatives"]
    last = one["code"] or "", f"{one['confidence']:.6f}", "; ".join(one["own"])
    whole = SEPARATOR.join(level["name"] for level in levels), (levels[-1]["code"] or "") if levels else ""
    each = " ".join(f"{level['confidence']:.6f}" for level in levels)
    named = "; ".join(f"{other['category']} ({other['probability']:.6f})" for other in others)
    return [one["id"], one["title"], one["verdict"], SEPARATOR.join(one["path"]), *last, *whole, each, named]


def write_filled(
    filled: Iterable[tuple[Filled, Overlap | None]],
    file: Path,
    metadata: Mapping[str, Any],
    leave_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Write suggestions as they come, those that need review as CSV, and a summary, which is returned."""
    counts, overlaps, summary_file = dict.fromkeys(VERDICTS, 0), [], file.with_suffix(".summary.json")
    how: dict[str, Any] = {"mode": "w", "encoding": "utf-8", "errors": "replace", "newline": ""}
    is_table = file.suffix == ".csv"
    with (
        atomic_path(file) as main,
        atomic_path(file.with_suffix(".review.csv")) as other,
        open(main, **how) as lines,
        open(other, **how) as review,
    ):
        write_rows(review, COLUMNS, ())
        if is_table:
            write_rows(lines, COLUMNS, ())
        for one, overlap in filled:
            counts[one["verdict"]] += 1
            overlaps += [overlap] if overlap else []
            if one["verdict"] in REVIEWED:
                write_rows(review, _row_of(one), ())
            if one["verdict"] not in leave_out:
                row = json.dumps(one, ensure_ascii=False) + "\n"
                write_rows(lines, _row_of(one), ()) if is_table else lines.write(row)
        summary_file.unlink(missing_ok=True)  # killed from here on, no summary is of another file
    summary: dict[str, Any] = {
        "format": 2,
        **metadata,
        "products": sum(counts.values()),
        "counts": {name: count for name, count in counts.items() if count},
        "left_out": list(leave_out),
        "review": sum(counts[verdict] for verdict in REVIEWED),
    }
    if overlaps:
        summary["hierarchical"] = {"products": len(overlaps), **hierarchical_f1(overlaps)}
    write_json(summary_file, summary)
    return summary
