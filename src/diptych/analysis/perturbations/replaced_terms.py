"""Words of a caption replaced by words that a WordNet knows: what the synonyms and the kinds of things share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.rewriting import rewritten
from diptych.analysis.perturbations.terms import Term
from diptych.core.draws import Draws


def replaced_terms(
    caption: Caption,
    terms: Sequence[Term],
    alternatives: Callable[[Term], Sequence[str]],
    draws: Draws,
    k: int,
    reasons: tuple[str, str],
) -> str:
    """The caption with ``k`` of its terms, or as many as have alternatives, replaced by one of theirs."""
    if not terms:
        raise Unchanged(reasons[0])
    chosen = {}
    for term in draws.shuffled(terms):  # the first k that can be replaced are any k of those
        others = alternatives(term)
        if others:
            chosen[term.span] = term.inflected(draws.choice(others))
        if len(chosen) == k:
            break
    if not chosen:
        raise Unchanged(reasons[1])
    return rewritten(caption, chosen)
