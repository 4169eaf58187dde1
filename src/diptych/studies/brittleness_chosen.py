"""What a person may choose about measuring chapter 5's tables (``--set measure.KEY=VALUE``).

============== ========= ===============================================================================
``split``      ``test``  the part that asks
``gallery``    ``split`` the pictures that captions ask for; ``folder``: every .jpg beside them, as published
``relevance``  none      a model whose similarity is the gain of DCG_CM, instead of the evaluated one's
``compat``     ``none``  ``published``: perturbations as the published code made them
``seeds``      3         of draws, from 0; one, 42, as published
``language``   ``auto``  what tags captions and knows synonyms (``diptych resources``)
``wordnet``    found     a WordNet's folder or file
``nltk_data``  found     a folder of NLTK's data
============== ========= ===============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.studies.brittleness_rows import FINER

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.data.language import Language
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation.stress.queries import Part

FOLDER = "folder"
_GALLERIES = ("split", FOLDER)
_COMPATS = ("none", "published")
_FULL = "full"
_WHOLE = "full, text queries among all pictures of the folder"

_SEARCHED = {"coco": 40_504, "flickr30k": 31_783}
"""Pictures in the folders that the published runs searched."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen.

    Attributes:
        split, gallery, relevance, compat, seeds, language, wordnet, nltk_data: see above; None: not said.
    """

    split: str = "test"
    gallery: str = "split"
    relevance: str | None = None
    compat: str = "none"
    seeds: int | None = None
    language: str = "auto"
    wordnet: str | None = None
    nltk_data: str | None = None

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds by number."""
        from diptych.analysis.perturbations.perturb import PUBLISHED_SEED
        from diptych.evaluation.stress import DEFAULT_SEEDS

        if self.seeds is not None:
            return tuple(range(self.seeds))
        return (PUBLISHED_SEED,) if self.compat == "published" else DEFAULT_SEEDS

    @property
    def place(self) -> str:
        """What is part of the names of embeddings: the split, and the gallery where it is another."""
        return self.split if self.gallery == "split" else f"{self.split}-{self.gallery}"

    @property
    def mark(self) -> str:
        """What is part of the name of a stress run: a fingerprint of what was chosen, beyond the usual."""
        own = {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}
        return f"-{fingerprint(own)[:8]}" if own.keys() - {"split", "gallery"} else ""

    def protocol(self, part: Part, perturbed: bool) -> str:
        """How a part was measured, as :class:`~diptych.studies.verdict.Measured` says it."""
        how = _FULL
        if self.gallery == FOLDER:
            pictures = part.encoded.n_images
            as_printed = _SEARCHED.get(part.asking.name.lower().removesuffix(FINER), pictures) == pictures
            how = _WHOLE if as_printed else f"{_WHOLE}, of which there are {pictures:,}"
        return f"{how}, captions perturbed with compat none" if perturbed and self.compat == "none" else how

    def part(self, collection: Collection) -> Part:
        """What is encoded, and who asks."""
        from diptych.evaluation.stress.queries import part_of

        return part_of(self.searched(collection), self.split, "split" if self.gallery == "split" else "all")

    def searched(self, collection: Collection) -> Collection:
        """The collection, or the part that asks with everything in its folder."""
        from diptych.studies.whole_folder import with_whole_folder

        return collection if self.gallery == "split" else with_whole_folder(collection.split(self.split))

    def opened_language(self, collection: Collection) -> Language:
        """What tags captions and knows synonyms."""
        from diptych.data.language.open import open_language

        return open_language(
            self.language, wordnet=self.wordnet, nltk_data=self.nltk_data, collection=collection
        )

    def relevance_model(self, device: str | None = None) -> DualEncoder | None:
        """The model whose similarity is the gain of DCG_CM; None for the evaluated one."""
        from diptych.encoders.dual_encoder import DualEncoder

        if self.relevance is None:
            return None
        best = Path(self.relevance).expanduser() / "best"
        return DualEncoder.load(best if (best / "diptych.json").is_file() else self.relevance, device=device)


MEASURED_BY = tuple(one.name for one in fields(Chosen))


def chosen_of(values: Mapping[str, Any]) -> Chosen:
    """The choices that were made, checked."""
    from diptych.data.language.open import LANGUAGES

    given = dict(values)
    if given.get("relevance") in ("", "none"):
        del given["relevance"]
    chosen = Chosen(**given)
    for key, known in (("gallery", _GALLERIES), ("compat", _COMPATS)):
        if getattr(chosen, key) not in known:
            raise UsageError(f"measure.{key} is {getattr(chosen, key)!r}", f"give one of {', '.join(known)}")
    if chosen.language not in LANGUAGES:
        raise UnknownNameError("language", chosen.language, LANGUAGES)
    seeds = chosen.seeds
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UsageError(f"measure.seeds is {seeds!r}", "give how many, from 1: measure.seeds=3")
    for key in ("split", "relevance", "wordnet", "nltk_data"):
        value = getattr(chosen, key)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"measure.{key} is {value!r}", f"--set measure.{key}=NAME")
    return chosen


def check_chosen(values: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
    """See that the choices are possible on every collection, before anything is made."""
    chosen = chosen_of(values)
    for name, collection in collections.items():
        if not collection.split_sizes.get(chosen.split):
            raise UnknownNameError(f"split of {name}", chosen.split, collection.split_sizes)
        chosen.searched(collection)
        chosen.opened_language(collection)
    chosen.relevance_model("cpu")
