"""Other words of a WordNet: synonyms, hypernyms and hyponyms of a caption's nouns and adjectives; and a distraction.

A noun is looked up as a noun and an adjective as an adjective, by the base form, in its usual sense; form and capital
stay, and ``a`` and ``an`` follow the new word (:mod:`diptych.analysis.perturbations.terms`).

Of synonyms (thesis §5.4.1; ``man`` → ``adult male``), the published code took the first noun (or adjective) that has
any, and the first lemma, of all senses of all parts of speech, that is not the word: ``pierced`` ears became
``pierce`` ears. Nothing is inflected, and tokens are joined with blanks, so that a caption is changed even where no
word is. Tokens, their tags and the order of lemmas are NLTK's, so that a capital at the beginning is a name:
``Young`` girls became ``offspring`` girls. It looked words up in Princeton's WordNet 3.0; lemmas of Open English
WordNet differ in places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import (
    PERTURBATIONS,
    NoOptions,
    TextPerturbation,
    registering,
)
from diptych.analysis.perturbations.published import nltk_tokens, published_form
from diptych.analysis.perturbations.terms import (
    Term,
    adjectives,
    lemmas_like,
    nouns,
    replaced_terms,
    usual_senses,
)
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, PartOfSpeech, Tagger, WordNet
from diptych.data.language.nltk_tagger import NltkTagger

_PARTS: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")
_NEEDS = frozenset({"tags", "wordnet"})
_PEOPLE = frozenset({"person", "people", "social group"})
_LAST = " \t\r\n\u00a0\u3000.!?…。！？؟।"


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
##### src/diptych/analysis/perturbations/kinds/typing_errors.py


class HypernymOptions(NoOptions):
    """How many nouns become what they are a kind of, and how deep that has to lie.

    Synsets too near the root (``organism``, ``abstraction``) say nothing that people type, and are passed over.
    """

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    depth: int = Field(
        default=6, ge=0, description="how deep a hypernym has to lie, by its longest way to a root"
    )


@registering(
    TextPerturbation,
    name="hypernym-noun",
    description="what a thing is a kind of: a poodle, a dog",
    group="synonyms",
    source="thesis §5.7, future work",
    keeps_meaning=True,
    options=HypernymOptions,
    needs=_NEEDS,
)
def _hypernym(caption: Caption, draws: Draws, options: HypernymOptions) -> str:
    wordnet = caption.language.need_wordnet("hypernym-noun")

    def hypernyms(term: Term) -> list[str]:
        return [
            lemma
            for synset in usual_senses(term, wordnet, 1)
            for above in wordnet.hypernyms(synset)
            if wordnet.depth(above)[1] >= options.depth
            for lemma in lemmas_like(term, above, wordnet)[:1]
        ]

    reasons = "no noun that is known", "no noun with a hypernym that is deep enough"
    return replaced_terms(caption, nouns(caption), hypernyms, draws, options.k, reasons)


class HyponymOptions(NoOptions):
    """How many nouns become a kind of themselves, which the image may or may not show.

    People are left alone: the kinds of a man or a woman in a WordNet are what no image shows, or insults.
    """

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    people: bool = Field(default=False, description="people too")


@registering(
    TextPerturbation,
    name="hyponym-noun",
    description="a kind of a thing: a dog, a poodle",
    group="meaning",
    source="thesis §5.7, future work",
    keeps_meaning=False,
    options=HyponymOptions,
    needs=_NEEDS,
)
def _hyponym(caption: Caption, draws: Draws, options: HyponymOptions) -> str:
    wordnet = caption.language.need_wordnet("hyponym-noun")

    def hyponyms(term: Term) -> list[str]:
        return [
            lemma
            for synset in usual_senses(term, wordnet, 1)
            if options.people or not _are_people(synset, wordnet)
            for below in wordnet.hyponyms(synset)
            for lemma in lemmas_like(term, below, wordnet)[:1]
        ]

    reasons = "no noun that is known", "no noun with a hyponym"
    return replaced_terms(caption, nouns(caption), hyponyms, draws, options.k, reasons)


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


def _declare_distraction(name: str, statement: str, printed: str) -> None:
    """Declare a statement at the end that says nothing of the image, English whatever the caption's language.

    It comes before the caption's last full stop, exclamation or question mark. The published code took full stops
    off both ends, put the statement behind all else, with a full stop, and wrote the first "and true it true".
    """

    def apply(caption: Caption, draws: Draws, options: NoOptions) -> str:
        said = caption.text.rstrip(_LAST)
        if not said.strip():
            raise Unchanged("nothing is said")
        return f"{said} {statement}{caption.text[len(said) :]}"

    PERTURBATIONS.add(
        TextPerturbation(
            name=name,
            description=f'"{statement}" at the end',
            group="distraction",
            source="thesis §5.4.1",
            keeps_meaning=True,
            apply=apply,
            published=published_form(lambda text, seed: f"{text.strip('.')} {printed}."),
            suite=True,
        )
    )


_declare_distraction("distraction-true", "and true is true", "and true it true")
_declare_distraction("distraction-false", "and false is false", "and false is false")
