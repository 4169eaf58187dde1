"""k_test: how many candidates of each query were ranked, and by which score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.evaluation.printed.target import cell_parts
from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Depth, Settings

DEPTHS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)
"""Numbers of candidates that are tried, as far as there are so many."""


def _set(settings: Settings, depth: Depth, matched: bool, shrinks: bool) -> Settings:
    return replace(settings, depth=depth, matched=matched, shrinks=shrinks)


def _choice(depth: Depth, matched: bool, stored: bool = False) -> Choice:
    apply = partial(_set, depth=depth, matched=matched, shrinks=stored)
    if depth == "everything":
        if matched:
            return Choice("everything", "the matching score ranks the whole gallery", apply)
        return Choice("none", "the contrastive score ranks the whole gallery", apply)
    some = "only the best candidate" if depth == 1 else f"only the {depth} best candidates"
    verb = "is" if depth == 1 else "are"
    if stored:
        words = f"all {depth} stored candidates of each query are re-ranked{_beyond(depth)}"
        return Choice(str(depth), f"{words}; in a smaller gallery as many as every query has there", apply)
    if matched:
        words = f"{some} of each query {verb} re-ranked, all others tie at -100 as in published evaluations"
    else:
        words = f"{some} of each query {verb} ranked, all others are missed"
    return Choice(str(depth), f"{words}{_beyond(depth)}", apply)


def _beyond(depth: int) -> str:
    """What that makes of the cut-offs that are printed."""
    cutoffs = [f"R@{cutoff}" for cutoff in (5, 10) if cutoff > depth]
    if not cutoffs:
        return ""
    return f", so that {' and '.join(cutoffs)} {'are' if len(cutoffs) > 1 else 'is'} R@{depth} and chance"


def _choices(inputs: Inputs) -> Sequence[Choice]:
    source = inputs.sources[inputs.first]
    gallery = min(source.truth.n_images, source.truth.n_texts)
    if source.most_matched == 0:
        # A ranking cut behind the last cut-off that is printed is the whole ranking.
        cutoffs = [
            int(kind.rpartition("@")[2])
            for _, kind in map(cell_parts, inputs.target.cells)
            if kind.rpartition("@")[2].isdigit()
        ]
        deepest = max([10, *cutoffs])
        depths = [depth for depth in DEPTHS if depth < min(deepest, gallery)]
        return [_choice("everything", False), *(_choice(depth, False) for depth in depths)]
    most = gallery if source.most_matched is None else source.most_matched
    depths = [depth for depth in DEPTHS if depth < most]
    if source.most_matched is None:
        default = _choice("everything", True)
    else:
        default = _choice(source.most_matched, True, stored=True)
    return [default, _choice("everything", False), *(_choice(depth, True) for depth in depths)]


K_TEST = AXES.add(
    Axis(
        name="k_test",
        description="how many candidates of each query are ranked, and whether a matching score ranks them",
        choices=_choices,
    )
)
