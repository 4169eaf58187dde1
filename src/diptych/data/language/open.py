"""A language by name; what of it is there, what is missing, and how to get it."""

import os
from collections.abc import Mapping
from pathlib import Path

from diptych.core.errors import DiptychError, MissingExtraError, UnknownNameError, UsageError
from diptych.core.options import Options, parameter
from diptych.data.collection import Collection
from diptych.data.language.contract import Language
from diptych.data.language.nltk_tagger import TAGGER, NltkTagger, data_folders, find_resource, how_to_get
from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet
from diptych.data.language.wordnet_files import WORDNET, open_wordnet

# The environment variable that names a WordNet's folder or file.
WORDNET_VARIABLE = "DIPTYCH_WORDNET"

# What :func:`open_language` opens.
LANGUAGES: Mapping[str, str] = {
    "auto": "the scenes language for generated scenes, NLTK's tagger and a WordNet for everything else",
    "nltk": "NLTK's tagger, and the WordNet that was named or NLTK's",
    "scenes": "the words of generated scenes; built in",
    "none": "nothing: for what looks at characters only",
}

_SENTENCE = ["Two", "young", "dogs", "are", "running"]
_OTHERS = f"name Open English WordNet (https://en-word.net) with --wordnet or {WORDNET_VARIABLE}"


def find_places(wordnet: Path | str | None, nltk_data: Path | str | None) -> tuple[Path | None, Path | None]:
    """Return NLTK's data with a tagger, and a WordNet, as found or as named; None where nothing is found."""
    folders = data_folders() if nltk_data is None else [Path(nltk_data)]
    tagger, net = (find_resource(folders, name) for name in (TAGGER, WORDNET))
    data = None if tagger is None else tagger.parent.parent
    if nltk_data is not None and net is None:
        data = Path(nltk_data)  # where nothing is, opening the tagger says so
    named = wordnet or os.environ.get(WORDNET_VARIABLE)
    return data, Path(named) if named else net


def open_language(
    name: str = "auto",
    *,
    wordnet: Path | str | None = None,
    nltk_data: Path | str | None = None,
    collection: Collection | None = None,
) -> Language:
    """Return the tagger and the WordNet of a language, as far as they are there."""
    if name not in LANGUAGES:
        raise UnknownNameError("language", name, LANGUAGES)
    if name == "none":
        return Language(name, missing="name another language than none")
    named = wordnet is not None or nltk_data is not None
    if name == "scenes" or (name == "auto" and not named and is_of_scenes(collection)):
        return Language("scenes", ScenesTagger(), scenes_wordnet())
    data, path = find_places(wordnet, nltk_data)
    tagger = None if data is None else NltkTagger(data)
    net = None if path is None else open_wordnet(path)
    return Language("nltk", tagger, net, how_to_get() if tagger is None else f"{how_to_get()}, or {_OTHERS}")


class LanguageSpec(Options):
    language: str = parameter("auto", "auto, nltk, scenes or none; see diptych data resources.")
    wordnet: Path | None = parameter(None, "A WordNet's folder or file.")
    nltk_data: Path | None = parameter(None, "An NLTK data folder.")

    def open(self, collection: Collection | None) -> Language:
        places = {"wordnet": self.wordnet, "nltk_data": self.nltk_data}
        return open_language(self.language, **places, collection=collection)


def is_of_scenes(collection: Collection | None) -> bool:
    """Return whether a collection is of generated scenes: its records hold facts, its captions' what they state."""
    records, captions = (collection.records, collection.caption_records) if collection else (None, None)
    return bool(records and captions and "facts" in records[0] and "states" in captions[0])


def find_resources(
    wordnet: Path | str | None = None, nltk_data: Path | str | None = None
) -> list[dict[str, str]]:
    """Look for what languages need and try it: per resource its state (there, missing, corrupt) and how to get it."""
    data, net = find_places(wordnet, nltk_data)
    scenes = f"{ScenesTagger.name}; {scenes_wordnet().summary()}"
    rows = [
        {"name": "language of scenes", "state": "there", "version": scenes, "path": "built in", "fix": ""}
    ]
    for name, path, use, fix in (
        ("tagger", data, _tagged, how_to_get()),
        ("WordNet", net, lambda path: open_wordnet(path).summary(), f"{how_to_get()}, or {_OTHERS}"),
    ):
        row = {"name": name, "state": "missing", "version": "", "path": str(path or ""), "fix": fix}
        try:
            if path is not None:
                row |= {"state": "there", "version": use(path), "fix": ""}
        except DiptychError as error:
            state = "missing" if isinstance(error, UsageError | MissingExtraError) else "corrupt"
            row |= {"state": state, "version": error.message}
        rows.append(row)
    return rows


def _tagged(path: Path) -> str:
    tagger = NltkTagger(path)
    tagged = zip(_SENTENCE, tagger.tag([_SENTENCE])[0], strict=True)
    return f"{tagger.name}: {' '.join(map('/'.join, tagged))}"
