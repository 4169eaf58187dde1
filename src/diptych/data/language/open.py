"""A language by name: what is at hand of it, and what to do about what is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from diptych.core.errors import UnknownNameError
from diptych.data.collection import Collection
from diptych.data.language.contract import Language
from diptych.data.language.nltk_folder import how_to_get
from diptych.data.language.nltk_tagger import NltkTagger
from diptych.data.language.open_wordnet import PAGE, open_wordnet
from diptych.data.language.places import WORDNET_VARIABLE, Places

LANGUAGES: Mapping[str, str] = {
    "auto": "the scenes language for generated scenes, NLTK's tagger and a WordNet for everything else",
    "nltk": "NLTK's tagger, and the WordNet that was named or NLTK's",
    "scenes": "the words of generated scenes; built in",
    "none": "nothing: for what looks at characters alone",
}
"""What :func:`open_language` opens."""


def open_language(
    name: str = "auto",
    *,
    wordnet: Path | str | None = None,
    nltk_data: Path | str | None = None,
    collection: Collection | None = None,
) -> Language:
    """What is at hand of a language."""
    if name not in LANGUAGES:
        raise UnknownNameError("language", name, LANGUAGES)
    if name == "none":
        return Language(name, missing="name another language than none")
    named = wordnet is not None or nltk_data is not None
    if name == "scenes" or (name == "auto" and not named and is_of_scenes(collection)):
        from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet

        return Language("scenes", ScenesTagger(), scenes_wordnet())
    places = Places.find(wordnet, nltk_data)
    tagger = None if places.tagger is None else NltkTagger(places.tagger)
    net = None if places.wordnet is None else open_wordnet(places.wordnet)
    hint = how_to_get()
    return Language("nltk", tagger, net, hint if tagger is None else f"{hint}, or {other_wordnets()}")


def other_wordnets() -> str:
    """What to do to have a WordNet that is not NLTK's."""
    return f"name Open English WordNet ({PAGE}) with --wordnet or {WORDNET_VARIABLE}"


def is_of_scenes(collection: Collection | None) -> bool:
    """Whether a collection is of generated scenes: its pictures' facts and what its captions state are known."""
    if collection is None or not collection.records or not collection.caption_records:
        return False
    return "facts" in collection.records[0] and "states" in collection.caption_records[0]
