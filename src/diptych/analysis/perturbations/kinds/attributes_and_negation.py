"""Another meaning, close by: attributes exchanged, and what is said denied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption, Span, Unchanged, rewritten
from diptych.analysis.perturbations.declaration import NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.english import for_many, listed
from diptych.analysis.perturbations.phrases import (
    BE,
    COLOURS,
    close,
    finite_verbs,
    mended_tags,
    noun_phrases,
)
from diptych.core.draws import Draws
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS

_KINDS: Mapping[str, frozenset[str]] = {
    "colour": COLOURS,
    "size": listed(
        "big enormous giant gigantic huge large little massive medium medium-sized miniature small tiny"
    ),
}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words}
_SPELT = {"gray": "grey", "little": "small", "big": "large"}  # another word for the same would change nothing
_MOST = 100  # attributes of one caption that are looked at: pairs are many
_BETWEEN = ADJECTIVE_TAGS | NOUN_TAGS | {"VBG", "VBN", "CD"}


class AttributeSwapOptions(NoOptions):
    """Options of attribute-swap."""

    any: bool = Field(default=False, description="any two adjectives, not only two colours or two sizes")


@registering(
    TextPerturbation,
    name="attribute-swap",
    description="two colours or two sizes change places",
    group="meaning",
    source="thesis §5.7, future work; after ARO (Yuksekgonul et al. 2023)",
    keeps_meaning=False,
    options=AttributeSwapOptions,
    needs=frozenset({"tags"}),
)
def _swap(caption: Caption, draws: Draws, options: AttributeSwapOptions) -> str:
    """``a red star left of a blue heart`` → ``a blue star left of a red heart``.

    Every word stays, and with it every attribute and every noun; what is whose is changed. Exchanged are attributes of
    one kind, a colour with a colour or a size with a size, of two different nouns: before them, or, as colours do,
    behind them (``a man in red``). Not exchanged are two of one noun (``a black and white dog``), those that would say
    what was said, and those that would leave a noun with one attribute twice.
    """
    words, tags = caption.lower, mended_tags(caption)
    heads = _nouns_of(caption, tags)
    nouns = {
        place: noun
        for place, noun in enumerate(heads)
        if noun is not None and (words[place] in _KIND_OF or (options.any and tags[place] == "JJ"))
    }
    if len(nouns) < 2:
        raise Unchanged("fewer than two attributes of nouns")
    plain = [_SPELT.get(word, word) for word in words]
    described = {
        noun: {plain[place] for place in nouns if nouns[place] == noun} for noun in {*nouns.values()}
    }
    pairs = [
        (one, other)
        for one, other in combinations([*nouns][:_MOST], 2)
        if words[nouns[one]] != words[nouns[other]]
        and plain[one] not in described[nouns[other]]
        and plain[other] not in described[nouns[one]]
        and (options.any or _KIND_OF[words[one]] == _KIND_OF[words[other]])
    ]
    if not pairs:
        raise Unchanged("no two different attributes of one kind with different nouns")
    one, other = draws.choice(pairs)
    return rewritten(caption, {(one, one): words[other], (other, other): words[one]})


def _nouns_of(caption: Caption, tags: Sequence[str]) -> list[int | None]:
    """For every word the place of the noun that it stands before, or behind: ``a woman in red``."""
    found: list[int | None] = [None] * len(tags)
    for place in range(len(tags) - 2, -1, -1):
        after = place + 1
        if not close(caption, place, after):
            continue
        if tags[after] in NOUN_TAGS:
            more = found[after] is not None and tags[after + 1] in NOUN_TAGS
            found[place] = found[after] if more else after
        elif tags[after] in _BETWEEN or (tags[after] == "CC" and tags[after + 1 : after + 2] == ["JJ"]):
            found[place] = found[after]
    for place in range(2, len(tags)):
        if found[place] is None and caption.lower[place - 1] == "in" and tags[place - 2] in NOUN_TAGS:
            found[place] = place - 2
    return found


_NEGATIVE = listed("no not none nobody nothing nowhere never neither nor without cannot")
_NEGATIVE_ENDINGS = ("n't", "n’t")
_NAMES, _NAMED = ("NNP", "NNPS"), (["NNP"], ["NNPS"])
_COUNTED = frozenset(
    {"a", "an", "some", "any", "one", "two", "several", "many", "three", "four", "five", "lots"}
)


@registering(
    TextPerturbation,
    name="negation",
    description="what is said is denied: is not, does not, no",
    group="meaning",
    source="thesis §5.7, future work",
    keeps_meaning=False,
    needs=frozenset({"tags"}),
)
def _negate(caption: Caption, draws: Draws, options: NoOptions) -> str:
    """``a dog is running`` → ``a dog is not running``, ``two dogs in the grass`` → ``no dogs in the grass``.

    - ``there is a dog`` → ``there is no dog``;
    - else the first verb that agrees with a subject is negated: ``not`` behind ``is``, ``are``, ``can`` and the like,
      ``does not`` or ``do not`` before every other (``runs`` → ``does not run``);
    - where there is none, as in half of all captions, ``no`` takes the place of the first article, number or quantity
      that stands with a noun, or comes before the first noun that has none.

    What is negated already is left alone. Verbs of the past other than ``was`` and ``were`` are not read, for a tagger
    mistakes participles for them.
    """
    words, tags = caption.lower, mended_tags(caption)
    if any(word in _NEGATIVE or word.endswith(_NEGATIVE_ENDINGS) for word in words):
        raise Unchanged("it is negated already")
    for verb in finite_verbs(caption, tags):
        change = _negated(verb, words, tags)
        if change is not None:
            return rewritten(caption, change)
    for phrase in noun_phrases(caption, tags):
        at, first = phrase.determiner, phrase.first
        if at is not None and tags[at] != "PRP$":
            return rewritten(caption, {(at, at): "no"})
        if at is None and (first == 0 or tags[first] not in _NAMES):
            # A capital at the beginning is no name, unless another name follows.
            name = tags[first] in _NAMES and tags[1:2] in _NAMED
            word = caption.words[first].text if name else words[first]
            return rewritten(caption, {(first, first): f"no {word}"})
    raise Unchanged("neither a verb nor a noun that can be negated")


def _negated(verb: int, words: Sequence[str], tags: Sequence[str]) -> dict[Span, str] | None:
    """What negates a verb; None for what is probably none."""
    word, after = words[verb], verb + 1
    if verb and words[verb - 1] == "there" and word in BE and after < len(words) and words[after] in _COUNTED:
        return {(after, after): "no"}
    if (
        word in BE
        or word in ("does", "do")
        or (word in ("has", "have") and tags[after : after + 1] == ["VBN"])
    ):
        return {(verb, verb): f"{word} not"}
    if tags[verb] == "MD":
        return {(verb, verb): "cannot" if word == "can" else f"{word} not"}
    if tags[verb] == "VBZ":
        return {(verb, verb): f"does not {for_many(word)}"}
    return {(verb, verb): f"do not {word}"}
