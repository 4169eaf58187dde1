"""What is known of a language: words and their parts of speech, and a net of their meanings."""

from diptych.data.language.contract import (
    ADJECTIVE_TAGS,
    NOUN_TAGS,
    Language,
    PartOfSpeech,
    Tagger,
    Word,
    WordNet,
    is_word,
    words_of,
)

__all__ = [
    "ADJECTIVE_TAGS",
    "NOUN_TAGS",
    "Language",
    "PartOfSpeech",
    "Tagger",
    "Word",
    "WordNet",
    "is_word",
    "words_of",
]
