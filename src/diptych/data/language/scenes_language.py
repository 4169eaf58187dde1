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

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint
from diptych.data.language.contract import PartOfSpeech, is_word
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_tables import Entry, Records, Synset, WordNetTables
from diptych.data.scenes.facts import COLOUR_WORDS, COUNT_WORDS, MATERIAL_WORDS, SHAPE_WORDS, SIZE_WORDS

Words = Mapping[str, Sequence[str]]


def _phrases(words: Words) -> list[str]:
    return [phrase for phrases in words.values() for phrase in phrases]


_TAGS: Mapping[str, str] = {
    "CC": "and",
    "CD": " ".join(["one", *_phrases(COUNT_WORDS)]),
    "DT": "a an the this all",
    "EX": "there",
    "IN": "of in on at with near against beside above over below under underneath beneath",
    "JJ": " ".join([*_phrases(COLOUR_WORDS), *_phrases(SIZE_WORDS), *_phrases(MATERIAL_WORDS)])
    + " left-hand right-hand upper lower sandy snowy wooden",
    "MD": "can",
    "NN": " ".join(_phrases(SHAPE_WORDS))
    + " picture group something side edge left right top bottom middle centre front sand ground beach grass lawn"
    " meadow water sea brick wall brickwork snow night sky wood floor sunset dusk evening",
    "NNS": "objects things waves bricks planks",
    "PRP": "you it",
    "PRP$": "its",
    "RB": "here",
    "TO": "to",
    "VB": "see be",
    "VBN": "seen",
    "VBZ": "is shows",
    "WDT": "that",
}
_TAG_OF = {word: tag for tag, words in _TAGS.items() for word in words.split()}
_BEFORE_AN_EDGE = {"left": "JJ", "right": "JJ"}  # "near the left edge", but "to the left of"

# What has no value of its own, by the synset that it is a kind of.
_KINDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "": {"entity": ("entity",)},
    "entity": {"thing": ("thing", "object"), "place": ("place",), "time": ("time",)},
    "thing": {
        "shape": ("shape", "figure"),
        "surface": ("surface",),
        "picture": ("picture",),
        "group": ("group",),
        "plank": ("plank",),
    },
    "shape": {
        "polygon": ("polygon",),
        "round shape": ("round shape",),
        "symbol": ("symbol", "sign"),
    },
    "surface": {
        "ground": ("ground",),
        "liquid": ("liquid",),
        "wall": ("wall",),
        "floor": ("floor",),
        "wood": ("wood",),
    },
    "ground": {"sand": ("sand",), "beach": ("beach",), "grass": ("grass",), "snow": ("snow",)},
    "grass": {"lawn": ("lawn", "meadow")},
    "liquid": {"water": ("water",)},
    "water": {"sea": ("sea",), "wave": ("wave",)},
    "wall": {"brick": ("brick", "brickwork")},
    "place": {
        "side": ("side", "edge"),
        "middle": ("middle", "centre"),
        "sky": ("sky",),
    },
    "side": {
        "left": ("left",),
        "right": ("right",),
        "top": ("top",),
        "bottom": ("bottom",),
        "front": ("front",),
    },
    "time": {"night": ("night",), "evening": ("evening",)},
    "evening": {"sunset": ("sunset", "dusk")},
}
_SHAPE_KINDS = {
    "square": "polygon", "triangle": "polygon", "hexagon": "polygon",
    "circle": "round shape", "ring": "round shape", "crescent": "round shape", "drop": "round shape",
    "star": "symbol", "heart": "symbol", "cross": "symbol", "arrow": "symbol",
    "flower": "shape",
}  # fmt: skip
_QUALITIES: Sequence[tuple[str, Words]] = (
    ("coloured", COLOUR_WORDS),
    ("sized", SIZE_WORDS),
    ("surfaced", MATERIAL_WORDS),
    ("placed", {"left-hand": ("left-hand", "left"), "right-hand": ("right-hand", "right"), "upper": ("upper",),
                "lower": ("lower",)}),
    ("covered", {"sandy": ("sandy",), "snowy": ("snowy",), "wooden": ("wooden",)}),
)  # fmt: skip


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
    for above, kinds in _KINDS.items():
        for name, words in kinds.items():
            _add(records, "noun", name, words, above)
    for name, words in SHAPE_WORDS.items():
        _add(records, "noun", name, words, _SHAPE_KINDS[name])
    _add(records, "adjective", "visible", ("visible",), "")
    for quality, values in _QUALITIES:
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
