"""Axes: what a protocol leaves open, and the choices there are, each default first.

A choice sets fields of :class:`Settings`, which is everything that a variant of the protocol is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.core.registry import Registry
from diptych.evaluation.printed.target import SUM_PARTS, Target, cell_parts
from diptych.metrics.ground_truth import DIRECTIONS, GroundTruth

if TYPE_CHECKING:
    from diptych.evaluation.variants.recompute import Scored

Depth = int | Literal["everything"]  # how many candidates of each query are ranked
Sources = Mapping[str, "Scored"]  # test sets by label, the one that is evaluated by default first

DEPTHS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)  # numbers of candidates that are tried, as far as they go
FIRST_CAPTION = "first caption"
_THOUSAND, _FOLDS, _LEAST = 1_000, 5, 50  # a fold has at least 50 images


@dataclass(frozen=True)
class Settings:
    """One variant; the default of every field but the first is the default protocol."""

    source: str  # label of the embeddings
    captions: str = ""  # which texts stay, by a name of :data:`KEPT`; empty for all
    partition: str = "full"  # how the images are cut into galleries
    relevance: str = ""  # :data:`FIRST_CAPTION` where only an image's first caption is relevant to it
    depth: Depth = "everything"  # of the best by contrastive score
    matched: bool = False  # whether the matching score ranks the candidates, or the contrastive score
    shrinks: bool = False  # whether fewer stored candidates will do in a smaller gallery
    # what becomes of the others; see :mod:`diptych.evaluation.reranking`. Empty for ``published`` where a
    # matching score ranks some, which no published evaluation does otherwise, and ``miss`` for a ranking that
    # is cut, and for all candidates that are stored
    unranked: str = ""
    ties: str = ""  # empty for ``compat`` where what is not ranked ties as published, else ``expected``
    counting: str = ""  # how R@K counts a query's hits: empty for any-of-k, else by a share
    over_hits: bool = False  # whether mAP@k is divided by the positives that are found
    columns: tuple[tuple[str, str], ...] = ()  # cells, and of which other ones they print the values
    rule: str = "round"  # what is done with further digits, ``round`` or ``truncate``

    @property
    def view(self) -> Settings:
        """Return what is ranked: source, texts, galleries and relevance."""
        return Settings(self.source, self.captions, self.partition, self.relevance)

    @property
    def unranked_rule(self) -> str:
        return self.unranked or ("published" if self.matched and not self.shrinks else "miss")

    @property
    def tie_rule(self) -> str:
        if self.ties:
            return self.ties
        return "compat" if self.depth != "everything" and self.unranked_rule == "published" else "expected"


@dataclass(frozen=True)
class Choice:
    """One way to settle an axis."""

    name: str  # short, e.g. ``2``; printed behind the axis's name
    words: str  # what it means, to stand behind a colon
    fields: Mapping[str, Any] = field(default_factory=dict)  # of :class:`Settings`
    # whether it can make a difference, given all other choices
    applies: Callable[[Settings], bool] = lambda settings: True


_Choices = Callable[[Sources, Target], Iterable[Choice]]


@dataclass(frozen=True)
class Axis:
    name: str  # as it is printed, e.g. ``k_test``
    description: str  # one line of what is left open
    choices: _Choices  # the default first


AXES: Registry[Axis] = Registry("axis of protocols", "diptych.evaluation.variants.axes")


def _axis(name: str, description: str) -> Callable[[_Choices], Axis]:
    return lambda choices: AXES.add(Axis(name, description, choices))


def _place_within_image(truth: GroundTruth) -> np.ndarray:
    """Return (n_texts,) which caption of its image each text is, from 0; -1 for one of no image."""
    home = truth.text_image
    order = np.argsort(home, kind="stable")
    sorted_home = home[order]
    place = np.empty(len(home), dtype=np.int64)
    place[order] = np.arange(len(home)) - np.searchsorted(sorted_home, sorted_home)
    place[home < 0] = -1
    return place


def _first(truth: GroundTruth, keys: np.ndarray, count: int) -> np.ndarray:
    place = _place_within_image(truth)
    return np.flatnonzero((place >= 0) & (place < count))


def _random(truth: GroundTruth, keys: np.ndarray, seed: int) -> np.ndarray:
    """Draw as ``Collection.random_captions`` does: of each image the caption with the least number."""
    draws = draw_uniform(seed, keys[truth.text_image], _place_within_image(truth))
    order = np.lexsort((draws, truth.text_image))
    home = truth.text_image[order]
    first = np.append(True, home[1:] != home[:-1])[: len(home)] & (home >= 0)
    return np.sort(order[first])


_RANDOM = {f"random, seed {seed}": partial(_random, seed=seed) for seed in (0, 1, 2)}  # one may fit by luck
KEPT = {"first five": partial(_first, count=5), "first": partial(_first, count=1), **_RANDOM}
"""From a ground truth and a number for every image to the rows of the texts that stay, ascending."""


@_axis("captions", "which captions of each image are queries and gallery: all, the first, one at random")
def _captions(sources: Sources, target: Target) -> Iterator[Choice]:
    homes = [source.truth.text_image for source in sources.values()]
    most = max(int(np.bincount(home[home >= 0], minlength=1).max()) for home in homes)
    yield Choice("all", "every caption of an image")
    words = {"first five": "the first five captions of each image"}
    words["first"] = "only the first caption of each image"
    for name in KEPT:
        if most > (5 if name == "first five" else 1):
            drawn = "one caption of each image, drawn at random"
            yield Choice(name, words.get(name, drawn), {"captions": name})


@_axis("columns", "whether R@1, R@5, R@10 or the directions were exchanged in print")
def _columns(sources: Sources, target: Target) -> Iterator[Choice]:
    yield Choice("own", "every value in its own column")
    full = [way for way in DIRECTIONS if all(f"{way} {part}" in target.cells for part in SUM_PARTS)]
    for ways, by in product([*([way] for way in full), *([full] if len(full) > 1 else [])], (1, 2)):
        turned, sides = (*SUM_PARTS[by:], *SUM_PARTS[:by]), " and ".join(ways)
        columns = tuple(
            (f"{way} {part}", f"{way} {other}")
            for way in ways
            for part, other in zip(SUM_PARTS, turned, strict=True)
        )
        order = ", ".join(turned)
        words = f"under R@1, R@5, R@10 of {sides} stand {order}"
        yield Choice(f"{sides} rotated to {order}", words, {"columns": columns})
    kinds = {*SUM_PARTS, *(cell_parts(name)[1] for name in target.cells)} - {"rsum"}
    swapped = tuple(
        (f"{a} {kind}", f"{b} {kind}") for a, b in (DIRECTIONS, DIRECTIONS[::-1]) for kind in sorted(kinds)
    )
    words = "what is printed as i2t is t2i, and the reverse"
    yield Choice("directions swapped", words, {"columns": swapped})


def first_caption_relevant(truth: GroundTruth) -> GroundTruth:
    """Keep only the first of an image's captions relevant to it; captions query their image as before."""
    positives = truth.i2t
    own = truth.text_image[positives.rows] == positives.queries
    first = own & (_place_within_image(truth)[positives.rows] == 0)
    return GroundTruth.from_directions(
        (positives.queries[first], positives.rows[first]),
        (truth.t2i.rows, truth.t2i.queries),
        truth.n_images,
        truth.n_texts,
        text_image=truth.text_image,
        evaluated={name: np.flatnonzero(mask) for name, mask in truth.evaluated.items()},
    )


@_axis("counting", "what R@K counts where a query has several positives: any of them, their share, the first")
def _counting(sources: Sources, target: Target) -> Iterator[Choice]:
    def several(settings: Settings) -> bool:
        return settings.captions in ("", "first five")

    yield Choice("any of k", "a query with one positive found is a hit")
    truths = [source.truth for source in sources.values()]
    if any(truth.positives(way).counts.max(initial=0) > 1 for truth in truths for way in DIRECTIONS):
        for name, words in (
            ("share of all", "R@K is the share of a query's positives that are found"),
            ("share of possible", "R@K is positives found over min(K, positives)"),
        ):
            yield Choice(name, words, {"counting": name}, several)
        words = "of an image's captions only the first counts, all others stay in the gallery"
        yield Choice(FIRST_CAPTION, words, {"relevance": FIRST_CAPTION}, several)


@_axis("digits", "whether printed numbers are rounded or cut off; it decides only on agreement to the digit")
def _digits(sources: Sources, target: Target) -> Iterator[Choice]:
    yield Choice("rounded", "printed numbers are rounded")
    yield Choice("cut off", "digits behind the printed ones are cut off", {"rule": "truncate"})


@_axis("galleries", "one gallery, or folds of it whose values are averaged (COCO 1K)")
def _galleries(sources: Sources, target: Target) -> Iterator[Choice]:
    sizes = [source.truth.n_images for source in sources.values()]
    counts = {n // _THOUSAND for n in sizes if n > _THOUSAND and n % _THOUSAND == 0}
    counts |= {_FOLDS for n in sizes if n % _FOLDS == 0 and n // _FOLDS >= _LEAST}
    yield Choice("full", "the whole test set is one gallery")
    for count in sorted(counts):
        each = " or ".join(f"{size:,}" for size in sorted({n // count for n in sizes if n % count == 0}))
        words = f"{count} galleries of {each} images in their order, averaged"
        yield Choice(f"folds({count})", words, {"partition": f"folds({count})"})


def _candidates(depth: Depth, matched: bool, stored: bool = False) -> Choice:
    fields: dict[str, Any] = {"depth": depth, "matched": matched, "shrinks": stored}
    if depth == "everything":
        name, score = ("everything", "matching") if matched else ("none", "contrastive")
        return Choice(name, f"the {score} score ranks the whole gallery", fields)
    some = "only the best candidate" if depth == 1 else f"only the {depth} best candidates"
    verb, beyond, end = "is" if depth == 1 else "are", "", ""
    if cutoffs := [f"R@{cutoff}" for cutoff in (5, 10) if cutoff > depth]:
        beyond = (
            f", so that {' and '.join(cutoffs)} {'are' if len(cutoffs) > 1 else 'is'} R@{depth} and chance"
        )
    if stored:
        words = f"all {depth} stored candidates of each query are re-ranked"
        end = "; in a smaller gallery as many as every query has there"
    elif matched:
        words = f"{some} of each query {verb} re-ranked, all others tie at -100 as in published evaluations"
    else:
        words = f"{some} of each query {verb} ranked, all others are missed"
    return Choice(str(depth), f"{words}{beyond}{end}", fields)


@_axis("k_test", "how many candidates of each query are ranked, and whether a matching score ranks them")
def _k_test(sources: Sources, target: Target) -> Iterator[Choice]:
    source = next(iter(sources.values()))
    most, gallery = source.most_matched, min(source.truth.n_images, source.truth.n_texts)
    if most == 0:
        # A ranking cut behind the last cut-off that is printed is the whole ranking.
        kinds = [cell_parts(name)[1].rpartition("@")[2] for name in target.cells]
        most = min(max([10, *(int(kind) for kind in kinds if kind.isdigit())]), gallery)
    elif most is None:
        most = gallery
        yield _candidates("everything", True)
    else:
        yield _candidates(most, True, stored=True)
    yield _candidates("everything", False)
    for depth in DEPTHS:
        if depth < most:
            yield _candidates(depth, source.most_matched != 0)


@_axis("mAP", "whether an average precision is divided by all positives or by those that were found")
def _average_precision(sources: Sources, target: Target) -> Iterator[Choice]:
    yield Choice("over positives", "mAP@k is divided by all positives that could be among the first k")
    if any(cell_parts(name)[1].startswith("mAP@") for name in target.cells):
        words = "mAP@k is divided by the positives that are found among the first k, as published code does"
        yield Choice("over hits", words, {"over_hits": True})


@_axis("source", "which embeddings of the same model: split, text cut, prompt, as named with --also")
def _source(sources: Sources, target: Target) -> Iterator[Choice]:
    for label, source in sources.items():
        words = f"embeddings of {source.truth.n_images:,} images and {source.truth.n_texts:,} captions"
        yield Choice(label, words, {"source": label})


@_axis("ties", "what stands where when scores are equal")
def _ties(sources: Sources, target: Target) -> Iterator[Choice]:
    def differs(settings: Settings) -> bool:
        return settings.ties != replace(settings, ties="").tie_rule

    yield Choice("expected", "every order of equal scores is equally likely")
    for rule, first in (
        ("compat", "later gallery rows come"),
        ("pessimistic", "the negatives come"),
        ("optimistic", "the positives come"),
    ):
        yield Choice(rule, f"of equal scores {first} first", {"ties": rule}, differs)


@_axis(
    "unranked",
    "what becomes of items that are no candidates: missed, tied at -100 as published, or after them",
)
def _unranked(sources: Sources, target: Target) -> Iterator[Choice]:
    def differs(settings: Settings) -> bool:
        usual = replace(settings, unranked="").unranked_rule
        return settings.depth != "everything" and settings.unranked != usual

    def two_scores(settings: Settings) -> bool:
        # The contrastive order after candidates in that order is the whole ranking.
        return settings.depth != "everything" and settings.matched

    yield Choice("usual", "as k_test says")
    for rule, words, applies in (
        ("miss", "is found by no cut-off", differs),
        ("published", "ties at -100, later gallery rows first", differs),
        ("contrastive", "follows in the order of the contrastive score", two_scores),
    ):
        yield Choice(rule, f"what was not ranked {words}", {"unranked": rule}, applies)
