"""The language of generated scenes, built in: every word of their captions, what part of speech it is and means.

It lets everything that reads captions run, and be checked, on any machine without a download. It is made of
:mod:`diptych.data.scenes.facts`: words for the same value are synonyms, and shapes, colours, sizes and materials
lie in a small hierarchy, so that a circle is a round shape, a shape, a thing. Words that captions use beside
those have a place in it too: a meadow is grass, and the sea is water.

The tagger knows this language only. A word that it does not know is an error, never a guess: a number of which
some part were guesses would look like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_toml
from diptych.data.language.contract import PartOfSpeech, is_word
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_tables import Entry, Records, Synset, WordNetTables
from diptych.data.scenes.facts import COLOUR_WORDS, COUNT_WORDS, MATERIAL_WORDS, SHAPE_WORDS, SIZE_WORDS

Words = Mapping[str, Sequence[str]]


def _phrases(words: Words) -> list[str]:
    return [phrase for phrases in words.values() for phrase in phrases]


_WORDS = read_toml(Path(__file__).parent.with_name("scenes_words.toml"))
_VALUES = {
    "CD": _phrases(COUNT_WORDS),
    "JJ": [*_phrases(COLOUR_WORDS), *_phrases(SIZE_WORDS), *_phrases(MATERIAL_WORDS)],
    "NN": _phrases(SHAPE_WORDS),
}
_TAG_OF: dict[str, str] = {
    word: tag
    for tag, words in _WORDS["tags"].items()
    for word in " ".join([*_VALUES.get(tag, ()), words]).split()
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
        """Of its table."""
        return fingerprint(_TAG_OF, _BEFORE_AN_EDGE)

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return a Penn treebank tag for every token of every sentence; numbers are ``CD``, a mark is its own tag."""
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
def scenes_wordnet() -> TableWordNet:
    """Meanings of the words of generated scenes: synonyms, and what is a kind of what."""
    records = Records("scenes WordNet")
    for above, kinds in _WORDS["kinds"].items():
        for name, words in kinds.items():
            _add(records, "noun", name, words, above)
    for name, words in SHAPE_WORDS.items():
        _add(records, "noun", name, words, _WORDS["shapes"][name])
    _add(records, "adjective", "visible", ("visible",), "")
    for quality, values in _QUALITIES.items():
        _add(records, "adjective", quality, (quality,), "visible")
        for name, words in values.items():
            _add(records, "adjective", name, words, quality)
    entries: dict[tuple[str, PartOfSpeech], list[str]] = {}
    for synset in records.synsets:
        for lemma in synset.lemmas:
            entries.setdefault((lemma, synset.part), []).append(synset.name)
    records.entries = [Entry(lemma, part, synsets) for (lemma, part), synsets in entries.items()]
    return TableWordNet(WordNetTables.of(records), fingerprint(records.synsets))


def _add(records: Records, part: PartOfSpeech, name: str, words: Iterable[str], above: str) -> None:
    letter = part[0]
    hypernyms = (f"{above}.{letter}",) if above else ()
    records.synsets.append(Synset(f"{name}.{letter}", part, tuple(words), hypernyms))
