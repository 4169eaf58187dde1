"""Knowledge of a language: words and their parts of speech, and a net of their meanings."""

from diptych.data.language.contract import (
    ADJECTIVE_TAGS,
    NOUN_TAGS,
    Language,
    Tagger,
    Word,
    is_word,
    words_of,
)
from diptych.data.language.wordnet import PartOfSpeech, Synset, WordNet

__all__ = [
    "ADJECTIVE_TAGS",
    "NOUN_TAGS",
    "Language",
    "PartOfSpeech",
    "Synset",
    "Tagger",
    "Word",
    "WordNet",
    "is_word",
    "words_of",
]
