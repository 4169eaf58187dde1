"""Axes: what a protocol leaves open, and the choices there are, each default first; ``axes.toml`` says them in words.

A choice sets fields of :class:`Settings`, which is everything that a variant of the protocol is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.evaluation.printed.target import SUM_PARTS, Target, cell_parts
from diptych.metrics.ground_truth import DIRECTIONS, GroundTruth

if TYPE_CHECKING:
    from diptych.evaluation.variants.recompute import Scored

Depth = int | Literal["everything"]  # how many candidates of each query are ranked
Sources = Mapping[str, "Scored"]  # test sets by label, the one that is evaluated by default first

DEPTHS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)  # numbers of candidates that are tried, as far as they go
_DECLARED: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("axes.toml"))
_THOUSAND, _FOLDS, _LEAST = 1_000, 5, 50  # a fold has at least 50 images


@dataclass(frozen=True)
class Settings:
    """One variant; the default of every field but the first is the default protocol."""

    source: str  # label of the embeddings
    captions: str = ""  # which texts stay, by a name of :data:`KEPT`; empty for all
    partition: str = "full"  # how the images are cut into galleries
    relevance: str = ""  # ``"first caption"`` where only an image's first caption is relevant to it
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
    # whether it can make a difference, given all other choices; not asked of a default
    applies: Callable[[Settings], bool] = lambda settings: True

    @classmethod
    def declared(cls, axis: str, *applies: Callable[[Settings], bool]) -> list[Choice]:
        """Return the choices of an axis that ``axes.toml`` has."""
        choices = _DECLARED[axis]["choices"].items()
        return [cls(name, one["words"], one.get("fields", {}), *applies) for name, one in choices]


_Choices = Callable[[Sources, Target], Iterable[Choice]]


@dataclass(frozen=True)
class Axis:
    name: str  # as it is printed, e.g. ``k_test``
    description: str  # one line of what is left open
    choices: _Choices  # the default first


AXES: Registry[Axis] = Registry("axis of protocols", "diptych.evaluation.variants.axes")


def _axis(name: str) -> Callable[[_Choices], Axis]:
    return lambda choices: AXES.add(Axis(name, _DECLARED[name]["description"], choices))


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


@_axis("captions")
def _captions(sources: Sources, target: Target) -> Iterator[Choice]:
    homes = [source.truth.text_image for source in sources.values()]
    most = max(int(np.bincount(home[home >= 0], minlength=1).max()) for home in homes)
    for choice in Choice.declared("captions"):
        if choice.name == "all" or most > (5 if choice.name == "first five" else 1):
            yield choice


@_axis("columns")
def _columns(sources: Sources, target: Target) -> Iterator[Choice]:
    yield from Choice.declared("columns")
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


@_axis("counting")
def _counting(sources: Sources, target: Target) -> Iterator[Choice]:
    usual, *others = Choice.declared("counting", lambda settings: settings.captions in ("", "first five"))
    yield usual
    truths = [source.truth for source in sources.values()]
    if any(truth.positives(way).counts.max(initial=0) > 1 for truth in truths for way in DIRECTIONS):
        yield from others


@_axis("digits")
def _digits(sources: Sources, target: Target) -> Iterator[Choice]:
    yield from Choice.declared("digits")


@_axis("galleries")
def _galleries(sources: Sources, target: Target) -> Iterator[Choice]:
    sizes = [source.truth.n_images for source in sources.values()]
    counts = {n // _THOUSAND for n in sizes if n > _THOUSAND and n % _THOUSAND == 0}
    counts |= {_FOLDS for n in sizes if n % _FOLDS == 0 and n // _FOLDS >= _LEAST}
    yield from Choice.declared("galleries")
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


@_axis("k_test")
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


@_axis("mAP")
def _average_precision(sources: Sources, target: Target) -> Iterator[Choice]:
    over_positives, over_hits = Choice.declared("mAP")
    yield over_positives
    if any(cell_parts(name)[1].startswith("mAP@") for name in target.cells):
        yield over_hits


@_axis("source")
def _source(sources: Sources, target: Target) -> Iterator[Choice]:
    for label, source in sources.items():
        words = f"embeddings of {source.truth.n_images:,} images and {source.truth.n_texts:,} captions"
        yield Choice(label, words, {"source": label})


@_axis("ties")
def _ties(sources: Sources, target: Target) -> Iterator[Choice]:
    def differs(settings: Settings) -> bool:
        return settings.ties != replace(settings, ties="").tie_rule

    yield from Choice.declared("ties", differs)


@_axis("unranked")
def _unranked(sources: Sources, target: Target) -> Iterator[Choice]:
    def differs(settings: Settings) -> bool:
        if settings.unranked == "contrastive" and not settings.matched:
            return False  # the contrastive order after candidates in that order is the whole ranking
        usual = replace(settings, unranked="").unranked_rule
        return settings.depth != "everything" and settings.unranked != usual

    yield from Choice.declared("unranked", differs)
