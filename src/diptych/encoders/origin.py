"""Origin: which encoder and which data embeddings were made of, kept beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import read_json

if TYPE_CHECKING:
    from diptych.data.collection import Collection

ORIGIN_FILE = "origin.json"


@dataclass(frozen=True)
class Origin:
    """Where embeddings came from, so that a search can show what it found.

    Attributes:
        model: the run or encoder, as it was named.
        data: the recipe's data section.
        split: the part that was embedded; None for all.
        captions: which captions of each image, as ``--captions`` takes it.
        centric: what the images show, ``scene`` or ``object``; None where it is unknown.
    """

    model: str
    data: dict[str, Any]
    split: str | None
    captions: str = "all"
    centric: str | None = None

    @property
    def part(self) -> str:
        """Return the part and its captions, to be put into a folder's name."""
        chosen = "" if self.captions == "all" else f"-{self.captions.replace(':', '-')}"
        return f"{self.split or 'all'}{chosen}"

    def collection(self) -> Collection:
        """Read the collection that was embedded."""
        from diptych.data.captions import choose_captions

        collection = read_data(self.data)
        part = collection if self.split is None else collection.split(self.split)
        return choose_captions(part, self.captions)

    def said(self) -> dict[str, str]:
        """Return what numbers carry of it besides dataset and split."""
        captions = {} if self.captions == "all" else {"captions": self.captions}
        return captions if self.centric is None else {"pictures": f"{self.centric}-centric", **captions}

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Any, where: Path | str) -> Origin:
        """Invert :meth:`to_dict`."""
        try:
            captions, centric = str(said.get("captions", "all")), said.get("centric")
            return cls(str(said["model"]), dict(said["data"]), said["split"], captions, centric)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise StorageError(
                f"{where} does not say which encoder and data it was made of", "make it again"
            ) from None

    @classmethod
    def read(cls, folder: Path) -> Origin | None:
        """Read that of a folder that ``diptych embed`` wrote; None for another folder."""
        file = folder / ORIGIN_FILE
        return cls.from_dict(read_json(file), file) if file.is_file() else None


def read_data(section: Mapping[str, Any]) -> Collection:
    """Read or generate the data of a recipe's section."""
    if section.get("scenes") is not None:
        from diptych.data.scenes import scenes

        return scenes(**section["scenes"])
    if section.get("path") is None:
        raise UsageError("the recipe names no data", "give a dataset with --data")
    from diptych.data import read_collection

    collection = read_collection(section["path"], section.get("reader"), **(section.get("options") or {}))
    if section.get("skip_bad_images"):
        from diptych.encoders.encode import without_bad_images

        collection, problems = without_bad_images(collection)
        if problems:
            note = f"{len(problems)} pictures that cannot be read are left out, the first: {problems[0]}"
            collection = replace(collection, notes=(*collection.notes, note))
    return collection


def check_still_there(model: str, made: Path | str) -> None:
    """Refuse a folder whose maker does not lie where it lay."""
    place = Path(model.rpartition(":")[2])  # without the family's name
    if place.is_absolute() and not place.exists():
        raise UsageError(
            f"{made} was made with {model}, which is not there any more",
            "put it back, or make what was made with it again from where it is now",
        )
