"""What a caption's nouns and adjectives are in a WordNet, so that a word of the same kind can take their place.

- A noun is looked up as a noun, an adjective as an adjective, each by its base form.
- Nouns that are one lemma together (``hot dog``, ``tennis player``) are one; an adjective inside is none.
- A noun right before another noun says of what kind that is (``brick wall``); it is left alone, and so are a noun
  that is half of a preposition (``in front of``) and proper nouns. A capital at the beginning of a caption makes
  no proper noun.
- A sense is one of the word as it is written: ``white house`` has no sense that only ``White House`` has.
- A lemma with a capital where the word has none (``Canis familiaris``, ``H2O``) is no word for the same thing
  that people type; it is passed over, and so is one that cannot be counted where the word can (``equipment``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from diptych.analysis.perturbations.caption import Caption, Span, Unchanged, rewritten
from diptych.analysis.perturbations.english import PLURAL_ONLY, UNCOUNTED, compared, listed, plural, singular
from diptych.analysis.perturbations.phrases import mended_tags
from diptych.core.draws import Draws
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, PartOfSpeech, WordNet

_LONGEST = 3
_INSIDE = NOUN_TAGS | ADJECTIVE_TAGS | {"VBG", "VBN", "CD"}
_PLURAL_TAGS = ("NNS", "NNPS")
_COORDINATED = ADJECTIVE_TAGS | {"CC"}
_QUANTITIES = listed("many much more most few fewer less least several other same own such")


@dataclass(frozen=True)
class Term:
    """A noun or an adjective of a caption.

    Attributes:
        span: the places of its words.
        base: the lemma it is a form of, in lower case.
        part: of speech.
        form: which form it is.
    """

    span: Span
    base: str
    part: PartOfSpeech
    form: Literal["base", "plural", "comparative", "superlative"] = "base"

    def inflected(self, lemma: str) -> str:
        """Another lemma in the same form."""
        if self.form == "base":
            return lemma
        if self.form == "plural":
            last = lemma.split()[-1]
            return lemma if singular(last) is not None and plural(last) != last else plural(lemma)
        return compared(lemma, self.form)


def nouns(caption: Caption) -> list[Term]:
    """The nouns that can be looked up, in order."""
    wordnet = caption.language.need_wordnet("looking nouns up")
    tags = mended_tags(caption)
    found: list[Term] = []
    place = len(tags) - 1
    while place >= 0:
        tag = tags[place]
        if tag not in NOUN_TAGS:
            place -= 1
            continue
        term = _noun_at(caption, tags, place, wordnet)
        if term is not None and not _is_prepositional(caption, tags, term.span):
            found.append(term)
        place = (place if term is None else term.span[0]) - 1
        while place >= 0 and tags[place] in NOUN_TAGS and _next_to(caption, place):
            place -= 1  # it says of what kind the next one is
    return found[::-1]


def adjectives(caption: Caption) -> list[Term]:
    """The adjectives that can be looked up, in order."""
    wordnet = caption.language.need_wordnet("looking adjectives up")
    tags = caption.tags
    if ADJECTIVE_TAGS.isdisjoint(tags):
        return []
    inside = {place for term in nouns(caption) for place in range(term.span[0], term.span[1] + 1)}
    inside |= _standing_alone(tags)
    found = []
    for place, tag in enumerate(tags):
        if tag not in ADJECTIVE_TAGS or place in inside:
            continue
        word = caption.lower[place]
        bases = wordnet.base_forms(word, "adjective")
        if not bases or word in _QUANTITIES or (word == "next" and tags[place + 1 : place + 2] == ["TO"]):
            continue
        if tag == "JJ" or word in bases:
            found.append(Term((place, place), word if word in bases else bases[0], "adjective"))
        else:
            form: Literal["comparative", "superlative"] = "comparative" if tag == "JJR" else "superlative"
            found.append(Term((place, place), bases[0], "adjective", form))
    return found


def _standing_alone(tags: Sequence[str]) -> set[int]:
    """The places of adjectives that stand for a noun, as colours do: ``a man in red and black``."""
    found: set[int] = set()
    place = 0
    while place < len(tags):
        first = place
        while place < len(tags) and tags[place] in _COORDINATED:
            place += 1
        if (
            first
            and tags[first - 1] in ("IN", "DT", "PRP$")
            and (place == len(tags) or tags[place] not in _INSIDE)
        ):
            found.update(range(first, place))
        place += 1
    return found


def _noun_at(caption: Caption, tags: Sequence[str], place: int, wordnet: WordNet) -> Term | None:
    """The longest noun that ends at ``place``; None for one that is not known, or proper."""
    word = caption.lower[place]
    base, form = _base_of(word, tags[place], wordnet)
    if base is None or len(word) < 2:  # ``the man 's``
        return None
    proper = tags[place] in ("NNP", "NNPS")
    if proper and (place > 0 or tags[1:2] == ["JJ"]):
        return None
    for length in range(_LONGEST, 1, -1):
        first = place - length + 1
        if first < 0 or any(tag not in _INSIDE for tag in tags[first:place]):
            continue
        if not all(_next_to(caption, at) for at in range(first, place)):
            continue
        before = " ".join(caption.lower[at] for at in range(first, place))
        if _written(f"{before} {base}", "noun", wordnet):
            return Term((first, place), f"{before} {base}", "noun", form)
    if proper and not _written(base, "noun", wordnet):
        return None
    return Term((place, place), base, "noun", form)


def _written(lemma: str, part: PartOfSpeech, wordnet: WordNet) -> list[str]:
    """The senses of a lemma that is written without capitals, the usual one first."""
    return [synset for synset in wordnet.senses(lemma, part) if lemma in wordnet.lemmas(synset)]


def _next_to(caption: Caption, place: int) -> bool:
    """Whether only blanks part a word from the next."""
    return caption.text[caption.words[place].end : caption.words[place + 1].start].isspace()


def _base_of(word: str, tag: str, wordnet: WordNet) -> tuple[str | None, Literal["base", "plural"]]:
    bases = wordnet.base_forms(word, "noun")
    if not bases:
        return None, "base"
    one = None if word in PLURAL_ONLY else singular(word)
    several = tag in _PLURAL_TAGS
    if one in bases and (several or one == bases[0] or word not in bases):
        return one, "plural" if several or one != word else "base"
    return (word, "base") if word in bases else (bases[0], "plural")


def _is_prepositional(caption: Caption, tags: Sequence[str], span: Span) -> bool:
    """Whether it is half of a preposition: ``in front of``, ``on top of``."""
    first, last = span
    return (
        first > 0
        and tags[first - 1] == "IN"
        and last + 1 < len(tags)
        and caption.lower[last + 1] == "of"
        and tags[last] == "NN"
    )


def usual_senses(term: Term, wordnet: WordNet, count: int) -> Sequence[str]:
    """The ``count`` most usual senses of a term, in its part of speech."""
    return (_written(term.base, term.part, wordnet) or wordnet.senses(term.base, term.part))[:count]


def lemmas_like(term: Term, synset: str, wordnet: WordNet) -> list[str]:
    """The lemmas of a synset that can stand in the term's place: others than it, as people type them."""
    counted = term.base.split()[-1] not in UNCOUNTED
    as_it_is = term.inflected(term.base)  # two spellings may have one plural: cookie, cooky
    return [
        lemma
        for lemma in wordnet.lemmas(synset)
        if lemma == lemma.lower()
        and not (counted and lemma.split()[-1] in UNCOUNTED)
        and term.inflected(lemma) != as_it_is
    ]


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
