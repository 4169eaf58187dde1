"""The language of generated scenes, built in: the part of speech and the meaning of every word of their captions.

It lets everything that reads captions run, and be checked, on any machine without a download. It is made of
:mod:`diptych.data.scenes.facts`: words for the same value are synonyms, and shapes, colours, sizes and materials
lie in a small hierarchy, so that a circle is a round shape, a shape, a thing.

The tagger knows this language only. A word that it does not know is an error, never a guess: a number of which
some part were guesses would look like any other.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_toml
from diptych.data.language.contract import is_word
from diptych.data.language.wordnet import PartOfSpeech, Synset, WordNet
from diptych.data.scenes.facts import COLOUR_WORDS, COUNT_WORDS, MATERIAL_WORDS, SHAPE_WORDS, SIZE_WORDS

Words = Mapping[str, Sequence[str]]

_WORDS = read_toml(Path(__file__).parent.with_name("scenes_words.toml"))
_VALUES: Mapping[str, Sequence[Words]] = {
    "CD": [COUNT_WORDS],
    "JJ": [COLOUR_WORDS, SIZE_WORDS, MATERIAL_WORDS],
    "NN": [SHAPE_WORDS],
}
_TAG_OF: dict[str, str] = {
    word: tag
    for tag, words in _WORDS["tags"].items()
    for phrase in (*chain(*(phrases for one in _VALUES.get(tag, ()) for phrases in one.values())), words)
    for word in phrase.split()
}
_BEFORE_AN_EDGE = {"left": "JJ", "right": "JJ"}  # "near the left edge", but "to the left of"
_QUALITIES: Mapping[str, Words] = {
    "coloured": COLOUR_WORDS,
    "sized": SIZE_WORDS,
    "surfaced": MATERIAL_WORDS,
    **_WORDS["qualities"],
}


class ScenesTagger:
    """Parts of speech of the captions of generated scenes: a table, for every word of theirs is known."""

    name = "scenes tagger"

    @property
    def fingerprint(self) -> str:
        return fingerprint(_TAG_OF, _BEFORE_AN_EDGE)

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [
            [_tag(token, after) for token, after in zip_longest(tokens, tokens[1:], fillvalue="")]
            for tokens in sentences
        ]


def _tag(token: str, after: str) -> str:
    word = token.lower()
    if word in _BEFORE_AN_EDGE and after.lower() == "edge":
        return _BEFORE_AN_EDGE[word]
    if word in _TAG_OF:
        return _TAG_OF[word]
    if not is_word(token):
        return token
    if token.isdigit():
        return "CD"
    raise DataError(
        f"{token!r} is no word of the captions of generated scenes, the only ones the built-in tagger knows",
        "use NLTK's tagger for other captions; diptych data resources says how to get it",
    )


@cache
def scenes_wordnet() -> WordNet:
    """Return the meanings of the words of generated scenes: synonyms, and what is a kind of what."""
    groups: list[tuple[PartOfSpeech, str, Words]] = [
        *(("noun", above, kinds) for above, kinds in _WORDS["kinds"].items()),
        *(("noun", _WORDS["shapes"][name], {name: words}) for name, words in SHAPE_WORDS.items()),
        ("adjective", "", {"visible": ("visible",)}),
    ]
    for quality, values in _QUALITIES.items():
        groups += [("adjective", "visible", {quality: (quality,)}), ("adjective", quality, values)]
    synsets = [
        Synset(f"{name}.{part[0]}", part, tuple(words), (f"{above}.{part[0]}",) if above else ())
        for part, above, kinds in groups
        for name, words in kinds.items()
    ]
    return WordNet("scenes WordNet", fingerprint(synsets), synsets)
