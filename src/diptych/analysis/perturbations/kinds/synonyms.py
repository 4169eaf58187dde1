"""Other words of a WordNet: synonyms, hypernyms and hyponyms of a caption's nouns and adjectives; and a distraction.

A noun is looked up as a noun and an adjective as an adjective, by the base form, in its usual sense; form and
capital stay, and ``a`` and ``an`` follow the new word.

- Nouns that are one lemma together (``hot dog``) are one; an adjective inside is none.
- A noun right before another (``brick wall``), half of a preposition (``in front of``) and a proper noun are not
  changed; a capital at the beginning of a caption makes no proper noun.
- A sense is one of the word as it is written: ``white house`` has no sense that only ``White House`` has.
- Lemmas with a capital where the word has none, and those that cannot be counted where it can, are skipped.

The published code took the first noun (or adjective) that has any synonym, and the first lemma, of all senses of all
parts of speech, that is not the word: ``pierced`` ears became ``pierce`` ears. Nothing is inflected, and NLTK's tokens
are joined with blanks. Lemmas of Open English WordNet differ in places from Princeton's 3.0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption, Span, Unchanged, rewritten
from diptych.analysis.perturbations.declaration import NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.english import PLURAL_ONLY, UNCOUNTED, compared, listed, plural, singular
from diptych.analysis.perturbations.phrases import mended_tags
from diptych.analysis.perturbations.published import nltk_tokens, published_form
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, PartOfSpeech, WordNet
from diptych.data.language.nltk_tagger import NltkTagger

_LONGEST = 3
_INSIDE = NOUN_TAGS | ADJECTIVE_TAGS | {"VBG", "VBN", "CD"}
_PLURAL_TAGS = ("NNS", "NNPS")
_COORDINATED = ADJECTIVE_TAGS | {"CC"}
_QUANTITIES = listed("many much more most few fewer less least several other same own such")


Form = Literal["base", "plural", "comparative", "superlative"]


@dataclass(frozen=True)
class Term:
    span: Span  # the places of its words
    base: str  # the lemma it is a form of, in lower case
    part: PartOfSpeech
    form: Form = "base"

    def inflected(self, lemma: str) -> str:
        if self.form == "base":
            return lemma
        if self.form == "plural":
            last = lemma.split()[-1]
            return lemma if singular(last) is not None and plural(last) != last else plural(lemma)
        return compared(lemma, self.form)


def nouns(caption: Caption) -> list[Term]:
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
        while place >= 0 and tags[place] in NOUN_TAGS and caption.between(place).isspace():
            place -= 1  # it says of what kind the next one is
    return found[::-1]


def adjectives(caption: Caption) -> list[Term]:
    wordnet = caption.language.need_wordnet("looking adjectives up")
    tags = caption.tags
    if ADJECTIVE_TAGS.isdisjoint(tags):
        return []
    inside = {place for term in nouns(caption) for place in range(term.span[0], term.span[1] + 1)}
    inside |= _adjectives_without_noun(tags)
    found = []
    for place, tag in enumerate(tags):
        if tag not in ADJECTIVE_TAGS or place in inside:
            continue
        word = caption.lower[place]
        bases = wordnet.base_forms(word, "adjective")
        if not bases or word in _QUANTITIES or (word == "next" and tags[place + 1 : place + 2] == ["TO"]):
            continue
        forms: dict[str, Form] = {"JJR": "comparative", "JJS": "superlative"}
        form = "base" if word in bases else forms.get(tag, "base")
        found.append(Term((place, place), word if word in bases else bases[0], "adjective", form))
    return found


def _adjectives_without_noun(tags: Sequence[str]) -> set[int]:
    """Return the places of adjectives that stand for a noun, as colours do: ``a man in red and black``."""
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
    """Return the longest noun that ends at ``place``; None for one that is not known, or proper."""
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
        if not all(caption.between(at).isspace() for at in range(first, place)):
            continue
        before = " ".join(caption.lower[at] for at in range(first, place))
        if _written(f"{before} {base}", "noun", wordnet):
            return Term((first, place), f"{before} {base}", "noun", form)
    if proper and not _written(base, "noun", wordnet):
        return None
    return Term((place, place), base, "noun", form)


def _written(lemma: str, part: PartOfSpeech, wordnet: WordNet) -> list[str]:
    """Return the senses of a lemma that is written without capitals, the usual one first."""
    return [synset for synset in wordnet.senses(lemma, part) if lemma in wordnet.lemmas(synset)]


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
    first, last = span
    before, after = tags[max(first - 1, 0) : first], caption.lower[last + 1 : last + 2]
    return before == ["IN"] and after == ["of"] and tags[last] == "NN"


def usual_senses(term: Term, wordnet: WordNet, count: int) -> Sequence[str]:
    return (_written(term.base, term.part, wordnet) or wordnet.senses(term.base, term.part))[:count]


def lemmas_like(term: Term, synset: str, wordnet: WordNet) -> list[str]:
    """Return the lemmas of a synset that can replace the term: others than it, in lower case."""
    counted = term.base.split()[-1] not in UNCOUNTED
    as_it_is = term.inflected(term.base)  # two spellings may have one plural: cookie, cooky
    return [
        lemma
        for lemma in wordnet.lemmas(synset)
        if lemma == lemma.lower()
        and not (counted and lemma.split()[-1] in UNCOUNTED)
        and term.inflected(lemma) != as_it_is
    ]


def _declare(
    name: str,
    terms: Callable[[Caption], list[Term]],
    alternatives: Callable[[Term, WordNet, Any], Sequence[str]],
    reasons: tuple[str, str],
    options: type[NoOptions],
    published: Callable[[Caption, int, Any], str] | None = None,
) -> None:
    """Declare a change of ``options.k`` terms, or of as many as have alternatives, to one of theirs."""

    @registering(TextPerturbation, name, options=options, published=published)
    def _(caption: Caption, draws: Draws, options: Any) -> str:
        wordnet = caption.language.need_wordnet(name)
        if not (known := terms(caption)):
            raise Unchanged(reasons[0])
        chosen = {}
        for term in draws.shuffled(known):  # the first k that can be replaced are any k of those
            if others := alternatives(term, wordnet, options):
                chosen[term.span] = term.inflected(draws.choice(others))
            if len(chosen) == options.k:
                break
        if not chosen:
            raise Unchanged(reasons[1])
        return rewritten(caption, chosen)


class SynonymOptions(NoOptions):
    k: int = Field(default=1, ge=1, description="how many words are replaced")
    senses: int = Field(default=1, ge=1, description="how many of a word's senses, the usual one first")
    choice: Literal["first", "any"] = Field(
        default="first", description="a word's first synonym, or any one of them"
    )


def _synonyms(term: Term, wordnet: WordNet, options: SynonymOptions) -> list[str]:
    senses = usual_senses(term, wordnet, options.senses)
    found = [lemma for synset in senses for lemma in lemmas_like(term, synset, wordnet)]
    return found[:1] if options.choice == "first" else found


def _published(name: str, tags: frozenset[str]) -> Callable[[Caption, int, SynonymOptions], str]:
    def published(caption: Caption, seed: int, options: SynonymOptions) -> str:
        if options != SynonymOptions(k=options.k):
            raise UsageError("compat=published with senses or choice", "the published code has none but k")
        tagger, wordnet = caption.language.need_tagger(name), caption.language.need_wordnet(name)
        tokens, left = nltk_tokens(caption.text), options.k
        # As ``pos_tag`` gives them: NLTK's tagger, when it is that, reads the tokens as they stand.
        tag = tagger.tag_as_given if isinstance(tagger, NltkTagger) else tagger.tag
        for place, found in enumerate(tag([tokens])[0] if tokens else []):
            if found in tags and left and (synonym := _published_synonym(tokens[place], wordnet)) is not None:
                tokens[place], left = synonym, left - 1
        return " ".join(tokens)

    return published


def _published_synonym(word: str, wordnet: WordNet) -> str | None:
    parts: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")
    lemmas = (
        lemma
        for part in parts
        for form in wordnet.morphy(word, part)
        for synset in wordnet.senses(form, part)
        for lemma in wordnet.lemmas(synset)
    )
    return next((one for one in lemmas if one.lower().replace(" ", "_") != word.lower()), None)


for _part, _terms, _tags in (("noun", nouns, NOUN_TAGS), ("adjective", adjectives, ADJECTIVE_TAGS)):
    _why = (f"no {_part} that is known", f"no {_part} with a synonym")
    _name = f"synonym-{_part}"
    _declare(_name, _terms, _synonyms, _why, SynonymOptions, _published(_name, _tags))


class HypernymOptions(NoOptions):
    """Synsets too near the root (``organism``, ``abstraction``), which are not used in queries, are skipped."""

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    depth: int = Field(
        default=6, ge=0, description="how deep a hypernym has to lie, by its longest way to a root"
    )


def _hypernyms(term: Term, wordnet: WordNet, options: HypernymOptions) -> list[str]:
    return [
        lemma
        for synset in usual_senses(term, wordnet, 1)
        for above in wordnet.hypernyms(synset)
        if wordnet.depth(above)[1] >= options.depth
        for lemma in lemmas_like(term, above, wordnet)[:1]
    ]


class HyponymOptions(NoOptions):
    """The kinds of a man or a woman in a WordNet are what no image shows, or insults: people are not changed."""

    k: int = Field(default=1, ge=1, description="how many nouns are replaced")
    people: bool = Field(default=False, description="people too")


def _hyponyms(term: Term, wordnet: WordNet, options: HyponymOptions) -> list[str]:
    return [
        lemma
        for synset in usual_senses(term, wordnet, 1)
        if options.people or not _are_people(synset, wordnet)
        for below in wordnet.hyponyms(synset)
        for lemma in lemmas_like(term, below, wordnet)[:1]
    ]


_PEOPLE = frozenset({"person", "people", "social group"})


def _are_people(synset: str, wordnet: WordNet) -> bool:
    seen, left = {synset}, [synset]
    while left:
        one = left.pop()
        if not _PEOPLE.isdisjoint(wordnet.lemmas(one)):
            return True
        above = [other for other in wordnet.hypernyms(one) if other not in seen]
        seen.update(above)
        left += above
    return False


_KNOWN = "no noun that is known"
_deep = (_KNOWN, "no noun with a hypernym that is deep enough")
_declare("hypernym-noun", nouns, _hypernyms, _deep, HypernymOptions)
_declare("hyponym-noun", nouns, _hyponyms, (_KNOWN, "no noun with a hyponym"), HyponymOptions)


_LAST = " \t\r\n\u00a0\u3000.!?…。！？؟।"


def _declare_distraction(name: str, statement: str, printed: str) -> None:
    """Declare a statement without information about the image, before the last full stop, exclamation or question mark.

    The published code took full stops off both ends and put the statement and a full stop behind all else.
    """

    published = published_form(lambda text, seed: f"{text.strip('.')} {printed}.")

    @registering(TextPerturbation, name, published=published)
    def _(caption: Caption, draws: Draws, options: NoOptions) -> str:
        sentence = caption.text.rstrip(_LAST)
        if not sentence.strip():
            raise Unchanged("the caption is empty")
        return f"{sentence} {statement}{caption.text[len(sentence) :]}"


_declare_distraction("distraction-true", "and true is true", "and true it true")
_declare_distraction("distraction-false", "and false is false", "and false is false")
