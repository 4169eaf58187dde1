"""The same words in another order.

Words change places among the places of words; marks and blanks stay where they are, and so does the case of
each word. So the words of a caption are exactly those it had, and a model that adds words up is exactly
indifferent. The arrangement is drawn evenly among those that change the text, and where there is none, as in
a caption of one word, it is unchanged. Trigrams are of words, marks left out.

None keeps the meaning, for order says who does what to whom and which adjective is whose: a good model prefers
the caption as it was. A model that does not is what the thesis and ARO look for.

The published forms are ARO's :mod:`diptych.analysis.perturbations.published`. The published code took spaCy's tokens
and tags (en_core_web_sm) for the two that look at parts of speech, what stands between blanks for all words, and
NLTK's tokens for trigrams. The last two are the same here; in the place of spaCy's tokens are words and marks, cut
where spaCy cuts them, and in that of its tags those of the language's tagger. Each caption begins with the seed anew,
so captions of as many tokens are permuted alike.

Source: Yuksekgonul et al., When and Why Vision-Language Models Behave like Bags-of-Words, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import F, NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.published import (
    nltk_tokens,
    published_form,
    shuffle_all_words,
    shuffle_allbut_nouns_and_adjectives,
    shuffle_nouns_and_adjectives,
    shuffle_trigrams,
    shuffle_within_trigrams,
    spacy_like_tokens,
)
from diptych.core.draws import Draws

Published = Callable[[Caption, int, Any], str]


def _declare(
    name: str, description: str, published: Published, needs: frozenset[str] = frozenset()
) -> Callable[[F], F]:
    return registering(
        TextPerturbation,
        name=name,
        description=description,
        group="word order",
        source="thesis §5.4.1, after ARO (Yuksekgonul et al. 2023)",
        keeps_meaning=False,
        needs=needs,
        published=published,
        suite=True,
    )


def _with_tags(shuffle: Callable[[Sequence[str], Sequence[str], int], str]) -> Published:
    return lambda caption, seed, options: shuffle(*spacy_like_tokens(caption), seed)


_TAGS = frozenset({"tags"})


@_declare(
    "shuffle-nouns-and-adjectives",
    "nouns change places with nouns, adjectives with adjectives",
    _with_tags(shuffle_nouns_and_adjectives),
    _TAGS,
)
def _nouns_and_adjectives(caption: Caption, draws: Draws, options: NoOptions) -> str:
    groups = [caption.nouns, caption.adjectives]
    return _permuted(caption, groups, draws, "no two different nouns or adjectives")


@_declare(
    "shuffle-all-words",
    "all words change places",
    published_form(lambda text, seed: shuffle_all_words(text.split(" "), seed)),
)
def _all_words(caption: Caption, draws: Draws, options: NoOptions) -> str:
    return _permuted(caption, [range(len(caption.words))], draws, "no two different words")


@_declare(
    "shuffle-all-but-nouns-and-adjectives",
    "all words but nouns and adjectives change places",
    _with_tags(shuffle_allbut_nouns_and_adjectives),
    _TAGS,
)
def _others(caption: Caption, draws: Draws, options: NoOptions) -> str:
    kept = {*caption.nouns, *caption.adjectives}
    others = [place for place in range(len(caption.words)) if place not in kept]
    return _permuted(caption, [others], draws, "no two different words besides nouns and adjectives")


@_declare(
    "shuffle-within-trigrams",
    "words change places within each three in turn",
    published_form(lambda text, seed: shuffle_within_trigrams(nltk_tokens(text), seed)),
)
def _within_trigrams(caption: Caption, draws: Draws, options: NoOptions) -> str:
    return _permuted(caption, _trigrams(caption), draws, "no trigram of different words")


def _permuted(caption: Caption, groups: Sequence[Sequence[int]], draws: Draws, reason: str) -> str:
    """Words permuted among the places of each group, evenly among the arrangements that change the text."""
    words = [word.text for word in caption.words]
    if all(len({words[place] for place in group}) < 2 for group in groups):
        raise Unchanged(reason)
    places = [place for group in groups for place in group]
    while True:  # at least every second arrangement is another text
        order = [place for group in groups for place in draws.shuffled(group)]
        if any(words[to] != words[of] for to, of in zip(places, order, strict=True)):
            return caption.reordered(places, order)


@_declare(
    "shuffle-trigrams",
    "each three words in turn stay together, and the threes change places",
    published_form(lambda text, seed: shuffle_trigrams(nltk_tokens(text), seed)),
)
def _whole_trigrams(caption: Caption, draws: Draws, options: NoOptions) -> str:
    words = [word.text for word in caption.words]
    trigrams = _trigrams(caption)
    texts = [[words[place] for place in trigram] for trigram in trigrams]
    # Every order says the same just where any two say the same in both orders, which all do where each does
    # with the first: then all repeat one sequence.
    if all(text + texts[0] == texts[0] + text for text in texts[1:]):
        raise Unchanged("no two different trigrams")
    while True:
        order = [place for trigram in draws.shuffled(trigrams) for place in trigram]
        if any(words[of] != word for of, word in zip(order, words, strict=True)):
            return caption.reordered(range(len(words)), order)


def _trigrams(caption: Caption) -> list[range]:
    """The places of each three words in turn; at the end, of those that are left."""
    count = len(caption.words)
    return [range(start, min(start + 3, count)) for start in range(0, count, 3)]
