"""A kind of a thing, instead of the thing: ``a dog`` → ``a poodle``.

A noun in its usual sense becomes the first word of a synset right below, which the picture may or may not show; of
the things of that kind it mostly does not. People are left alone: the kinds of a man or a woman in a WordNet are what
no picture shows (``bachelor``), or insults.
"""

from __future__ import annotations

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.replaced_terms import replaced_terms
from diptych.analysis.perturbations.terms import Term, lemmas_like, nouns, usual_senses
from diptych.core.draws import Draws
from diptych.data.language import WordNet

_REASONS = "no noun that is known", "no noun with a hyponym"
_PEOPLE = frozenset({"person", "people", "social group"})


class HyponymOptions(NoOptions):
    """Options of hyponym-noun."""

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    people: bool = Field(default=False, description="people too")


def _apply(caption: Caption, draws: Draws, options: HyponymOptions) -> str:
    wordnet = caption.language.need_wordnet("hyponym-noun")

    def hyponyms(term: Term) -> list[str]:
        return [
            lemma
            for synset in usual_senses(term, wordnet, 1)
            if options.people or not _are_people(synset, wordnet)
            for below in wordnet.hyponyms(synset)
            for lemma in lemmas_like(term, below, wordnet)[:1]
        ]

    return replaced_terms(caption, nouns(caption), hyponyms, draws, options.k, _REASONS)


def _are_people(synset: str, wordnet: WordNet) -> bool:
    """Whether a synset is of people, or of groups of them."""
    seen, left = {synset}, [synset]
    while left:
        one = left.pop()
        if not _PEOPLE.isdisjoint(wordnet.lemmas(one)):
            return True
        above = [other for other in wordnet.hypernyms(one) if other not in seen]
        seen.update(above)
        left += above
    return False


PERTURBATIONS.add(
    TextPerturbation(
        name="hyponym-noun",
        description="a kind of a thing: a dog, a poodle",
        group="meaning",
        source="thesis §5.7, future work",
        keeps_meaning=False,
        options=HyponymOptions,
        apply=_apply,
        needs=frozenset({"tags", "wordnet"}),
    )
)
