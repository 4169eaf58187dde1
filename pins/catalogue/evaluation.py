"""Evaluation of embeddings: every measure, tie rule and protocol, with intervals and chance, on made-up arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pins import adapters
from pins.numbers import digest
from pins.registry import add, pin
from pins.world import World

IMAGES, WIDTH, CAPTIONS = 40, 16, 3
MEASURES = (
    *("R@1", "R@5", "R@10", "rsum", "MRR", "MRR@10", "P@5", "R-cap@10", "R-precision", "medr", "medr-floor"),
    *("meanr", "mAP", "mAP@10", "mAP@R", "mAP-cutoff@10", "mAP-hits@10", "mAP-positives@10"),
    *("nDCG@10", "nDCG-exponential@10", "DCG_CM@10", "nDCG_CM@10", "DCG_CM-published@10"),
)
RULES = ("expected", "pessimistic", "optimistic", "compat")
FEW = ("R@1", "R@5", "R@10", "rsum", "mAP@10", "medr", "MRR")
CAPTION_IMAGE = np.repeat(np.arange(IMAGES), CAPTIONS)


def continuous(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows without ties: captions are their images with noise."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((IMAGES, WIDTH))
    texts = images[CAPTION_IMAGE] + 1.5 * rng.standard_normal((len(CAPTION_IMAGE), WIDTH))
    return unit(images), unit(texts)


def tied(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with four entries of ±1/2, of length exactly 1: inner products are quarters, with many ties."""
    rng = np.random.default_rng(seed)
    images = np.zeros((IMAGES, 8), np.float32)
    for row in images:
        row[rng.choice(8, 4, replace=False)] = rng.choice([-0.5, 0.5], 4)
    images[7] = images[3]
    texts = images[CAPTION_IMAGE].copy()
    for row in texts[rng.random(len(texts)) < 0.7]:
        row[row != 0] *= rng.choice([-1, 1], 4)
    for place in np.flatnonzero(rng.random(len(texts)) < 0.6):
        row = texts[place]
        row[row != 0] *= rng.choice([-1, 1, 1], 4)
    return images, texts


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, float32; lengths in double precision, so that they do not depend on a reduction's order."""
    lengths = np.sqrt(np.cumsum(rows.astype(np.float64) ** 2, axis=1)[:, -1:])
    return (rows / lengths).astype(np.float32)


def further_pairs() -> list[tuple[int, int]]:
    """Relevant pairs besides an image and its own captions."""
    rng = np.random.default_rng(5)
    return [(int(rng.integers(IMAGES)), int(rng.integers(IMAGES * CAPTIONS))) for _ in range(30)]


def numbers(result: Any, *, each: bool = True) -> dict[str, Any]:
    """The scores of a result, and a digest of each measure's values per query."""
    found: dict[str, Any] = {"scores": adapters.scores_of(result)}
    if each:
        found["per query"] = {name: digest(values)[:8] for name, values in adapters.per_query(result).items()}
    return found


def _rule(rule: str) -> Any:
    def measure(world: World) -> Any:
        own = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES)
        more = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES, further_pairs())
        options = {"ties": rule, "samples": 200}
        return {
            "ties": numbers(adapters.evaluated(*tied(), own, MEASURES, **options)),
            "ties, four folds": numbers(
                adapters.evaluated(*tied(), own, MEASURES, protocol="folds(4)", **options), each=False
            ),
            "ties, several positives": numbers(
                adapters.evaluated(*tied(), more, MEASURES, **options), each=False
            ),
            "no ties": numbers(adapters.evaluated(*continuous(), own, MEASURES, **options)),
        }

    return measure


for rule in RULES:
    add(f"evaluation.ties-{rule}", _rule(rule), fast=True)


@pin("evaluation.complete", fast=True)
def complete(world: World) -> Any:
    """Nothing is there that the other pins leave out."""
    pinned = {name if "@" not in name or name == "mAP@R" else name.split("@")[0] + "@k" for name in MEASURES}
    return {
        "measures without a pin": sorted(adapters.measure_names() - pinned),
        "tie rules without a pin": sorted(set(adapters.tie_rules()) - set(RULES)),
    }


@pin("evaluation.similarities", fast=True)
def similarities(world: World) -> Any:
    """Order embeddings, given scores, sparse rows, another model's relevance."""
    truth = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES)
    images, texts = continuous()
    other_images, other_texts = continuous(1)
    gains = ("DCG_CM@10", "nDCG_CM@10", "DCG_CM-published@10")
    scores = np.round(np.random.default_rng(3).standard_normal((IMAGES, len(texts))), 1).astype(np.float32)
    bags = [csr_array(np.where(rows > 0.2, rows, 0)) for rows in (images, texts)]
    return {
        "order": numbers(
            adapters.evaluated(np.abs(images), np.abs(texts), truth, FEW, similarity="order", samples=100)
        ),
        "given scores": numbers(adapters.evaluated_scores(scores, truth, FEW)),
        "sparse": numbers(adapters.evaluated_sparse(bags[0], bags[1], truth, FEW)),
        "relevance of another model": numbers(
            adapters.evaluated(
                images, texts, truth, gains, relevance=(other_images, other_texts), samples=100
            )
        ),
    }


@pin("evaluation.reranked", fast=True)
def reranked(world: World) -> Any:
    """Two stages: what becomes of positives that were not scored, for several numbers of candidates."""
    images, texts = continuous()
    truth = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES)
    rng = np.random.default_rng(4)
    sides = []
    for queries, gallery in ((images, texts), (texts, images)):
        scores = queries @ gallery.T
        items = np.argsort(-scores, axis=1, kind="stable")[:, :8]
        first = np.take_along_axis(scores, items, axis=1).astype(np.float32)
        matching = np.round(first + 0.3 * rng.standard_normal(first.shape), 1).astype(np.float32)
        sides.append((items.astype(np.int64), first, matching))
    found = {}
    for unranked in ("miss", "contrastive", "published"):
        for k in (2, 8):
            result = adapters.evaluated_reranked(
                sides[0], sides[1], images, texts, truth, FEW, k=k, unranked=unranked
            )
            found[f"{unranked}, {k} candidates"] = numbers(result, each=False)
    return found


@pin("evaluation.compare", fast=True)
def compare(world: World) -> Any:
    """Two models and their seeds compared, by both tests and every correction."""
    truth = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES)
    results = [
        adapters.evaluated(*continuous(seed), truth, ("R@1", "R@5", "R@10", "rsum", "medr"))
        for seed in range(4)
    ]
    given = {"one": results[0], "other": results[1], "third": results[2]}
    found: dict[str, Any] = {
        f"{test}, {correction}": adapters.compared(
            given, test=test, correction=correction, samples=200, flips=500
        )
        for test in ("randomisation", "t")
        for correction in ("bonferroni", "holm", "none")
    }
    found["seeds"] = adapters.compared({"one": results[:2], "other": results[2:]}, samples=200, flips=500)
    return found


@pin("evaluation.protocol")
def protocol(world: World) -> Any:
    """Which choice of protocol explains printed numbers: first captions only, ties, another counting."""
    truth = adapters.ground_truth(CAPTION_IMAGE.tolist(), IMAGES)
    images, texts = tied()
    first = adapters.evaluated(
        images, texts[::CAPTIONS], adapters.ground_truth(list(range(IMAGES)), IMAGES), FEW, ties="compat"
    )
    scores = adapters.scores_of(first)
    target = {name: f"{100 * scores[name][0]:.1f}" for name in ("i2t R@1", "i2t R@5", "t2i R@1", "t2i R@10")}
    return {"target": target, **adapters.explored(images, texts, truth, target)}


@pin("evaluation.coco")
def coco(world: World) -> Any:
    """The two protocols of COCO on 5,000 images and 25,000 captions."""
    rng = np.random.default_rng(0)
    images = unit(rng.standard_normal((5000, 8)))
    homes = np.repeat(np.arange(5000), 5)
    texts = unit(images[homes] + 0.5 * rng.standard_normal((25000, 8)))
    truth = adapters.ground_truth(homes.tolist(), 5000)
    return {
        protocol: numbers(adapters.evaluated(images, texts, truth, FEW, protocol=protocol, samples=50))
        for protocol in ("coco-1k", "coco-5k")
    }
