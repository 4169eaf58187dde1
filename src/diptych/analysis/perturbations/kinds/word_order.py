"""The same words in another order.

Words change places among the places of words; marks, blanks and the case of each word stay. The arrangement is drawn
evenly among those that change the text. Trigrams are of words, marks left out. None keeps the meaning.

The published forms are ARO's ``TextShuffler`` (Yuksekgonul et al., When and Why Vision-Language Models Behave like
Bags-of-Words, ICLR 2023), which may leave everything where it was; tokens, marks among them, are joined with blanks.
Its global generators were never seeded, so published captions cannot be reproduced; here a caption's generators are
begun with the seed. It took spaCy's tokens and tags (en_core_web_sm) for the two that look at parts of speech, what
stands between blanks for all words, and NLTK's tokens for trigrams; in the place of spaCy's are words and marks, cut
where spaCy cuts them, with the language's tags.
"""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import DECLARED, NoOptions, TextPerturbation, registering
from diptych.analysis.perturbations.published import nltk_tokens, spacy_like_tokens
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS

# from a number of words and their tags to the places that change among each other
Groups = Callable[[int, Sequence[str]], list[Sequence[int]]]


def _nouns_and_adjectives(count: int, tags: Sequence[str]) -> list[Sequence[int]]:
    kinds = (NOUN_TAGS, ADJECTIVE_TAGS)
    return [[place for place, tag in enumerate(tags) if tag in kind] for kind in kinds]


def _all_but_nouns_and_adjectives(count: int, tags: Sequence[str]) -> list[Sequence[int]]:
    return [[place for place, tag in enumerate(tags) if tag not in NOUN_TAGS | ADJECTIVE_TAGS]]


def _trigrams(count: int, tags: Sequence[str]) -> list[Sequence[int]]:
    """Return the places of each three words in turn; at the end, of those that are left."""
    return [range(start, min(start + 3, count)) for start in range(0, count, 3)]


_SHUFFLES: dict[str, Groups] = {
    "shuffle-nouns-and-adjectives": _nouns_and_adjectives,
    "shuffle-all-words": lambda count, tags: [range(count)],
    "shuffle-all-but-nouns-and-adjectives": _all_but_nouns_and_adjectives,
    "shuffle-within-trigrams": _trigrams,
    "shuffle-trigrams": _trigrams,
}  # name → the groups of places
_TAGGED = ("shuffle-nouns-and-adjectives", "shuffle-all-but-nouns-and-adjectives")


def _shuffled(name: str, caption: Caption, draws: Draws) -> str:
    """Permute words, evenly among the arrangements that change the text."""
    words, whole = [word.text for word in caption.words], name == "shuffle-trigrams"
    groups = _SHUFFLES[name](len(words), caption.tags if name in _TAGGED else ())
    texts = [[words[place] for place in group] for group in groups]
    # Every order of threes says the same just where any two say the same in both orders, which all do where each does
    # with the first: then all repeat one sequence.
    same = (text + texts[0] == texts[0] + text if whole else len({*text}) < 2 for text in texts)
    if all(same):
        raise Unchanged(DECLARED[name]["unchanged"])
    places = [place for group in groups for place in group]
    while True:  # at least every second arrangement is another text
        arranged = draws.shuffled(groups) if whole else [draws.shuffled(group) for group in groups]
        order = [place for group in arranged for place in group]
        if any(words[to] != words[of] for to, of in zip(places, order, strict=True)):
            return caption.reordered(places, order)


def published_shuffle(name: str, tokens: Sequence[str], tags: Sequence[str], seed: int) -> str:
    """Permute tokens as ARO's ``TextShuffler`` does, which may change nothing."""
    groups = [list(group) for group in _SHUFFLES[name](len(tokens), tags)]
    order = list(range(len(tokens)))
    if "trigrams" in name:
        random = Random(seed)
        for group in [groups] if name == "shuffle-trigrams" else groups:
            random.shuffle(group)
        order = [place for group in groups for place in group]
    elif not 0 <= seed < 2**32:
        raise UsageError(f"seed {seed} with compat=published", "give one from 0 to 4,294,967,295")
    else:
        state = np.random.RandomState(seed)
        for places in groups:
            for to, of in zip(places, state.permutation(np.asarray(places, dtype=np.int64)), strict=True):
                order[to] = of
    return " ".join(tokens[place] for place in order)


def _declare(name: str) -> None:
    def published(caption: Caption, seed: int, options: NoOptions) -> str:
        if name in _TAGGED:
            return published_shuffle(name, *spacy_like_tokens(caption), seed)
        tokens = nltk_tokens(caption.text) if "trigrams" in name else caption.text.split(" ")
        return published_shuffle(name, tokens, (), seed)

    @registering(TextPerturbation, name, published=published)
    def _(caption: Caption, draws: Draws, options: NoOptions) -> str:
        return _shuffled(name, caption, draws)


for _name in _SHUFFLES:
    _declare(_name)
