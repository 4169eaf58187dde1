"""Another word for the same thing: ``man`` → ``adult male``, ``small`` → ``little``.

By default a noun is looked up as a noun and an adjective as an adjective, by the base form, in its usual sense, and
one drawn among those that have a synonym (another lemma of the same synset) is replaced by the first; the form and
the capital stay, and ``a`` and ``an`` follow the new word. What is looked up is told in
:mod:`diptych.analysis.perturbations.terms`.

The published code took the first noun (or adjective) that has any synonym, and the first lemma, of all senses of all
parts of speech, that is not the word: ``pierced`` ears became ``pierce`` ears. Nothing is inflected, and tokens are
joined with blanks, so that a caption is changed even where no word is. Tokens, their tags and the order of lemmas
are NLTK's (:mod:`diptych.analysis.perturbations.published_typos`), so that a capital at the beginning is a name:
``Young`` girls became ``offspring`` girls. It looked words up in Princeton's WordNet 3.0; lemmas of Open English
WordNet differ in places.

Source: thesis §5.4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.published_typos import nltk_tokens
from diptych.analysis.perturbations.replaced_terms import replaced_terms
from diptych.analysis.perturbations.terms import Term, adjectives, lemmas_like, nouns, usual_senses
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, PartOfSpeech, Tagger, WordNet
from diptych.data.language.nltk_tagger import NltkTagger

_PARTS: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")


class SynonymOptions(NoOptions):
    """Options of synonym-noun and synonym-adjective."""

    k: int = Field(default=1, ge=1, description="how many words are replaced")
    senses: int = Field(default=1, ge=1, description="how many of a word's senses, the usual one first")
    choice: Literal["first", "any"] = Field(
        default="first", description="a word's first synonym, or any one of them"
    )


def _declare(part: str, terms: Callable[[Caption], list[Term]], tags: frozenset[str]) -> None:
    reasons = f"no {part} that is known", f"no {part} with a synonym"

    def apply(caption: Caption, draws: Draws, options: SynonymOptions) -> str:
        wordnet = caption.language.need_wordnet(f"synonym-{part}")

        def synonyms(term: Term) -> list[str]:
            found = [
                lemma
                for synset in usual_senses(term, wordnet, options.senses)
                for lemma in lemmas_like(term, synset, wordnet)
            ]
            return found[:1] if options.choice == "first" else found

        return replaced_terms(caption, terms(caption), synonyms, draws, options.k, reasons)

    def published(caption: Caption, seed: int, options: SynonymOptions) -> str:
        if options != SynonymOptions(k=options.k):
            raise UsageError("compat=published with senses or choice", "the published code has none but k")
        tagger = caption.language.need_tagger(f"synonym-{part}")
        wordnet = caption.language.need_wordnet(f"synonym-{part}")
        tokens = nltk_tokens(caption.text)
        left = options.k
        for place, tag in enumerate(_published_tags(tokens, tagger)):
            if tag in tags and left and (synonym := _published_synonym(tokens[place], wordnet)) is not None:
                tokens[place], left = synonym, left - 1
        return " ".join(tokens)

    PERTURBATIONS.add(
        TextPerturbation(
            name=f"synonym-{part}",
            description=f"a synonym of one {part}",
            group="synonyms",
            source="thesis §5.4.1",
            keeps_meaning=True,
            options=SynonymOptions,
            apply=apply,
            needs=frozenset({"tags", "wordnet"}),
            published=published,
            suite=True,
        )
    )


def _published_tags(tokens: list[str], tagger: Tagger) -> list[str]:
    """As ``pos_tag`` gives them: NLTK's tagger, when it is that, reads the tokens as they stand."""
    if not tokens:
        return []
    return (tagger.tag_as_given if isinstance(tagger, NltkTagger) else tagger.tag)([tokens])[0]


def _published_synonym(word: str, wordnet: WordNet) -> str | None:
    """The first lemma of all senses of all parts of speech that is not the word itself."""
    for part in _PARTS:
        for form in wordnet.morphy(word, part):
            for synset in wordnet.senses(form, part):
                for lemma in wordnet.lemmas(synset):
                    if lemma.lower().replace(" ", "_") != word.lower():
                        return lemma
    return None


_declare("noun", nouns, NOUN_TAGS)
_declare("adjective", adjectives, ADJECTIVE_TAGS)
