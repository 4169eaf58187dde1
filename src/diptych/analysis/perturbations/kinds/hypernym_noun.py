"""What a thing is a kind of, instead of the thing: ``a poodle`` → ``a dog``.

A noun in its usual sense becomes the first word of a synset right above; the caption stays true, and says less.
Synsets too near the root (``organism``, ``abstraction``) say nothing that people type, and are passed over:
``depth`` is the longest way to the root that one has to have at least.
"""

from __future__ import annotations

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.replaced_terms import replaced_terms
from diptych.analysis.perturbations.terms import Term, lemmas_like, nouns, usual_senses
from diptych.core.draws import Draws

_REASONS = "no noun that is known", "no noun with a hypernym that is deep enough"


class HypernymOptions(NoOptions):
    """Options of hypernym-noun."""

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    depth: int = Field(
        default=6, ge=0, description="how deep a hypernym has to lie, by its longest way to a root"
    )


def _apply(caption: Caption, draws: Draws, options: HypernymOptions) -> str:
    wordnet = caption.language.need_wordnet("hypernym-noun")

    def hypernyms(term: Term) -> list[str]:
        return [
            lemma
            for synset in usual_senses(term, wordnet, 1)
            for above in wordnet.hypernyms(synset)
            if wordnet.depth(above)[1] >= options.depth
            for lemma in lemmas_like(term, above, wordnet)[:1]
        ]

    return replaced_terms(caption, nouns(caption), hypernyms, draws, options.k, _REASONS)


PERTURBATIONS.add(
    TextPerturbation(
        name="hypernym-noun",
        description="what a thing is a kind of: a poodle, a dog",
        group="synonyms",
        source="thesis §5.7, future work",
        keeps_meaning=True,
        options=HypernymOptions,
        apply=_apply,
        needs=frozenset({"tags", "wordnet"}),
    )
)
