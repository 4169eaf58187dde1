"""The axes: what a protocol leaves open, and the choices there are, each default first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.evaluation.printed.target import SUM_PARTS, cell_parts
from diptych.evaluation.variants.settings import AXES, Axis, Choice, Depth, Inputs, Keep, Settings, Step
from diptych.metrics.ground_truth import DIRECTIONS, GroundTruth
from diptych.metrics.ranks import TieGroups

DEPTHS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)  # numbers of candidates that are tried, as far as they go
_RANDOM_SEEDS = (0, 1, 2)  # several, so that one that fits by luck can be told
_FIVE = 5
_THOUSAND, _FOLDS, _LEAST = 1_000, 5, 50  # a fold has at least 50 images


def _choice(
    name: str, words: str, applies: Callable[[Settings], bool] = lambda settings: True, **fields: Any
) -> Choice:
    return Choice(name, words, lambda settings: replace(settings, **fields), applies)


def _place_within_image(truth: GroundTruth) -> np.ndarray:
    """Return (n_texts,) which caption of its image each text is, from 0; -1 for one of no image."""
    home = truth.text_image
    order = np.argsort(home, kind="stable")
    sorted_home = home[order]
    first = np.searchsorted(sorted_home, sorted_home)
    place = np.empty(len(home), dtype=np.int64)
    place[order] = np.arange(len(home)) - first
    place[home < 0] = -1
    return place


def _first(truth: GroundTruth, keys: np.ndarray, count: int) -> np.ndarray:
    place = _place_within_image(truth)
    return np.flatnonzero((place >= 0) & (place < count))


def _random(truth: GroundTruth, keys: np.ndarray, seed: int) -> np.ndarray:
    """Draw as ``Collection.random_captions`` does: of each image the caption with the least number."""
    place = _place_within_image(truth)
    draws = draw_uniform(seed, keys[truth.text_image], place)
    order = np.lexsort((draws, truth.text_image))
    home = truth.text_image[order]
    first = np.append(True, home[1:] != home[:-1])[: len(home)] & (home >= 0)
    return np.sort(order[first])


def _captions(inputs: Inputs) -> Sequence[Choice]:
    most = max(
        int(np.bincount(truth.text_image[truth.text_image >= 0], minlength=1).max())
        for truth in (source.truth for source in inputs.sources.values())
    )
    kept: list[tuple[str, str, Keep]] = []
    if most > _FIVE:
        kept.append(("first five", "the first five captions of each image", partial(_first, count=_FIVE)))
    if most > 1:
        words = "one caption of each image, drawn at random"
        kept.append(("first", "the first caption of each image alone", partial(_first, count=1)))
        kept += [(f"random, seed {seed}", words, partial(_random, seed=seed)) for seed in _RANDOM_SEEDS]
    every = _choice("all", "every caption of an image", keep=None)
    return [every, *(_choice(name, words, keep=Step(name, of)) for name, words, of in kept)]


def _rotated(cells: Mapping[str, float], directions: tuple[str, ...], by: int) -> dict[str, float]:
    """Return under R@1, R@5, R@10 the values of the columns ``by`` places further right."""
    found = dict(cells)
    for direction in directions:
        for name, other in zip(SUM_PARTS, (*SUM_PARTS[by:], *SUM_PARTS[:by]), strict=True):
            found[f"{direction} {name}"] = cells[f"{direction} {other}"]
    return found


def _swapped(cells: Mapping[str, float]) -> dict[str, float]:
    other = {"i2t": "t2i", "t2i": "i2t"}
    return {f"{other[name[:3]]}{name[3:]}": value for name, value in cells.items()}


def _columns(inputs: Inputs) -> Sequence[Choice]:
    found = [_choice("own", "every value in its own column", rewrite=None)]
    full = tuple(
        direction
        for direction in DIRECTIONS
        if all(f"{direction} {name}" in inputs.target.cells for name in SUM_PARTS)
    )
    groups = [(direction,) for direction in full] + ([full] if len(full) > 1 else [])
    for directions, by in product(groups, (1, 2)):
        order, sides = ", ".join((*SUM_PARTS[by:], *SUM_PARTS[:by])), " and ".join(directions)
        name, words = f"{sides} rotated to {order}", f"under R@1, R@5, R@10 of {sides} stand {order}"
        rotated = Step(name, partial(_rotated, directions=directions, by=by))
        found.append(_choice(name, words, rewrite=rotated))
    words = "what is printed as i2t is t2i, and the reverse"
    return [*found, _choice("directions swapped", words, rewrite=Step("swapped", _swapped))]


def _shares(groups: TieGroups, cutoff: int, *, possible: bool) -> np.ndarray:
    """Return hits over all positives, or over those that could be among the first ``cutoff``."""
    hits = groups.hits(np.full(groups.n_queries, cutoff))
    shares: np.ndarray = hits / np.clip(groups.relevant, 1, cutoff if possible else None)
    return shares


def _first_of_image(truth: GroundTruth) -> GroundTruth:
    """Keep the first of an image's captions alone relevant to it; captions query their image as before."""
    positives = truth.i2t
    own = truth.text_image[positives.rows] == positives.queries
    first = own & (_place_within_image(truth)[positives.rows] == 0)
    return GroundTruth.from_directions(
        (positives.queries[first], positives.rows[first]),
        (truth.t2i.rows, truth.t2i.queries),
        truth.n_images,
        truth.n_texts,
        text_image=truth.text_image,
        asked={name: np.flatnonzero(mask) for name, mask in truth.asked.items()},
    )


def _several_stay(settings: Settings) -> bool:
    return settings.keep is None or settings.keep.name == "first five"


def _counting(inputs: Inputs) -> Sequence[Choice]:
    any_of_k = _choice("any of k", "a query with one positive found is a hit", counting=None)
    several = any(
        source.truth.positives(name).counts.max(initial=0) > 1
        for source in inputs.sources.values()
        for name in DIRECTIONS
    )
    if not several:
        return [any_of_k]
    counted = [any_of_k]
    for name, words, possible in (
        ("share of all", "R@K is the share of a query's positives that are found", False),
        ("share of possible", "R@K is positives found over min(K, positives)", True),
    ):
        step: Step[Any] = Step(name, partial(_shares, possible=possible))
        counted.append(_choice(name, words, _several_stay, counting=step))
    first = "first caption"
    words = "of an image's captions the first alone counts, all others stay in the gallery"
    return [*counted, _choice(first, words, _several_stay, relevance=Step(first, _first_of_image))]


def _digits(inputs: Inputs) -> Sequence[Choice]:
    return [
        _choice("rounded", "printed numbers are rounded", rule="round"),
        _choice("cut off", "digits behind the printed ones are cut off", rule="truncate"),
    ]


def _galleries(inputs: Inputs) -> Sequence[Choice]:
    sizes = [source.truth.n_images for source in inputs.sources.values()]
    counts = {n // _THOUSAND for n in sizes if n > _THOUSAND and n % _THOUSAND == 0}
    counts |= {_FOLDS for n in sizes if n % _FOLDS == 0 and n // _FOLDS >= _LEAST}
    found = [_choice("full", "the whole test set is one gallery", partition="full")]
    for count in sorted(counts):
        each = " or ".join(f"{size:,}" for size in sorted({n // count for n in sizes if n % count == 0}))
        words = f"{count} galleries of {each} images in their order, averaged"
        found.append(_choice(f"folds({count})", words, partition=f"folds({count})"))
    return found


def _candidates(depth: Depth, matched: bool, stored: bool = False) -> Choice:
    fields: dict[str, Any] = {"depth": depth, "matched": matched, "shrinks": stored}
    if depth == "everything":
        name, score = ("everything", "matching") if matched else ("none", "contrastive")
        return _choice(name, f"the {score} score ranks the whole gallery", **fields)
    cutoffs = [f"R@{cutoff}" for cutoff in (5, 10) if cutoff > depth]
    beyond = ""  # what that makes of the cut-offs that are printed
    if cutoffs:
        beyond = (
            f", so that {' and '.join(cutoffs)} {'are' if len(cutoffs) > 1 else 'is'} R@{depth} and chance"
        )
    some = "only the best candidate" if depth == 1 else f"only the {depth} best candidates"
    verb, end = "is" if depth == 1 else "are", ""
    if stored:
        words = f"all {depth} stored candidates of each query are re-ranked"
        end = "; in a smaller gallery as many as every query has there"
    elif matched:
        words = f"{some} of each query {verb} re-ranked, all others tie at -100 as in published evaluations"
    else:
        words = f"{some} of each query {verb} ranked, all others are missed"
    return _choice(str(depth), f"{words}{beyond}{end}", **fields)


def _k_test(inputs: Inputs) -> Sequence[Choice]:
    source = inputs.sources[inputs.first]
    gallery = min(source.truth.n_images, source.truth.n_texts)
    if source.most_matched == 0:
        # A ranking cut behind the last cut-off that is printed is the whole ranking.
        kinds = [cell_parts(name)[1].rpartition("@")[2] for name in inputs.target.cells]
        deepest = max([10, *(int(kind) for kind in kinds if kind.isdigit())])
        depths = [depth for depth in DEPTHS if depth < min(deepest, gallery)]
        return [_candidates("everything", False), *(_candidates(depth, False) for depth in depths)]
    most = gallery if source.most_matched is None else source.most_matched
    default = _candidates("everything", True)
    if source.most_matched is not None:
        default = _candidates(source.most_matched, True, stored=True)
    few = [_candidates(depth, True) for depth in DEPTHS if depth < most]
    return [default, _candidates("everything", False), *few]


_PLAIN = re.compile(r"mAP@([0-9]+)")


def _average_precision(inputs: Inputs) -> Sequence[Choice]:
    words = "mAP@k is divided by all positives that could be among the first k"
    own = _choice("over positives", words, precision=None)
    if not any(_PLAIN.fullmatch(cell_parts(name)[1]) for name in inputs.target.cells):
        return [own]
    words = "mAP@k is divided by the positives that are found among the first k, as published code does"
    renamed = Step("over hits", partial(_PLAIN.sub, r"mAP-hits@\1"))
    return [own, _choice("over hits", words, precision=renamed)]


def _source(inputs: Inputs) -> Sequence[Choice]:
    found = []
    for label, source in inputs.sources.items():
        truth = source.truth
        words = f"embeddings of {truth.n_images:,} images and {truth.n_texts:,} captions"
        found.append(_choice(label, words, source=label))
    return found


def _differs(settings: Settings) -> bool:
    return settings.ties != replace(settings, ties="").tie_rule


def _ties(inputs: Inputs) -> Sequence[Choice]:
    words = {
        "compat": "of equal scores later gallery rows come first",
        "pessimistic": "of equal scores the negatives come first",
        "optimistic": "of equal scores the positives come first",
    }
    default = _choice("expected", "every order of equal scores is equally likely", ties="")
    return [default, *(_choice(rule, said, _differs, ties=rule) for rule, said in words.items())]


def _rule_differs(settings: Settings) -> bool:
    """Return whether something is unranked by another rule than the one that goes without saying."""
    usual = replace(settings, unranked="").unranked_rule
    return settings.depth != "everything" and settings.unranked != usual


def _two_scores(settings: Settings) -> bool:
    """Return False where the contrastive order after candidates in that order is the whole ranking."""
    return settings.depth != "everything" and settings.matched


def _unranked(inputs: Inputs) -> Sequence[Choice]:
    miss = "what was not ranked is found by no cut-off"
    published = "what was not ranked ties at -100, later gallery rows first"
    contrastive = "what was not ranked follows in the order of the contrastive score"
    return [
        _choice("usual", "as k_test says", unranked=""),
        _choice("miss", miss, _rule_differs, unranked="miss"),
        _choice("published", published, _rule_differs, unranked="published"),
        _choice("contrastive", contrastive, _two_scores, unranked="contrastive"),
    ]


_COUNTING = "what R@K counts where a query has several positives: any of them, their share, the first"
_DIGITS = "whether printed numbers are rounded or cut off; it decides on agreement to the digit alone"
_UNRANKED = "what becomes of items that are no candidates: missed, tied at -100 as published, or after them"
_PRECISION = "whether an average precision is divided by all positives or by those that were found"
_K_TEST = "how many candidates of each query are ranked, and whether a matching score ranks them"
_SOURCE = "which embeddings of the same model: split, text cut, prompt, as named with --also"
_CAPTIONS = "which captions of each image are queries and gallery: all, the first, one at random"

for _axis in (
    Axis("mAP", _PRECISION, _average_precision),
    Axis("captions", _CAPTIONS, _captions),
    Axis("columns", "whether R@1, R@5, R@10 or the directions were exchanged in print", _columns),
    Axis("counting", _COUNTING, _counting),
    Axis("digits", _DIGITS, _digits),
    Axis("galleries", "one gallery, or folds of it whose values are averaged (COCO 1K)", _galleries),
    Axis("k_test", _K_TEST, _k_test),
    Axis("source", _SOURCE, _source),
    Axis("ties", "what stands where when scores are equal", _ties),
    Axis("unranked", _UNRANKED, _unranked),
):
    AXES.add(_axis)
