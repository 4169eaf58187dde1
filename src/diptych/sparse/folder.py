"""What ``diptych sparse train`` leaves in its folder: a trained head, sparse rows, and what made the dense ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Origin, check_still_there
from diptych.sparse.sparsified import SparseEncoder, SparsifiedCollection
from diptych.sparse.sparsifier import Sparsifier

_MARKER = "sparse.json"


@dataclass(frozen=True)
class SparseFolder:
    """A finished head, the sparse rows it made, and where the dense ones came from.

    ::

        FOLDER/
          sparse.json          this
          training.json …      what training wrote, head/ among it
          rows/SPLIT/          sparse rows of images and captions
          measures/SPLIT.npz   what they keep and lose
          report.html

    Attributes:
        folder: its place.
        origin: the dense encoder and data, of all splits.
        split: the part that is shown and searched when none is named.
    """

    folder: Path
    origin: Origin
    split: str

    @classmethod
    def open(cls, folder: Path | str) -> SparseFolder:
        """Open a folder that ``diptych sparse train`` has finished."""
        file = Path(folder) / _MARKER
        if not file.is_file():
            raise UsageError(f"{folder} holds no sparse head", "make one with diptych sparse train")
        content = read_json(file)
        if not isinstance(content, dict) or not isinstance(content.get("split"), str):
            raise StorageError(f"{file} is damaged", "repeat the diptych sparse train that made it")
        return cls(Path(folder), Origin.from_dict(content.get("origin"), file), content["split"])

    @classmethod
    def of_rows(cls, folder: Path) -> SparseFolder:
        """Open the folder itself, or the one whose rows an index holds."""
        if not (folder / _MARKER).is_file() and (folder / "index.json").is_file():
            from diptych.index.storage import Header

            about = Header.open(folder).about
            if "origin" in about:
                origin = Origin.from_dict(about["origin"], folder / "index.json")
                check_still_there(origin.model, folder)
                return replace(cls.open(origin.model), split=origin.split or "all")
        return cls.open(folder)

    def save(self) -> None:
        """Write its file, last of all: without it the folder is not finished."""
        write_json(self.folder / _MARKER, {"origin": asdict(self.origin), "split": self.split})

    def sparsifier(self) -> Sparsifier:
        """Return the head."""
        return Sparsifier.load(self.folder / "head")

    def encoder(self, texts_only: bool = False) -> SparseEncoder:
        """Return what makes sparse rows of sentences and images."""
        check_still_there(self.origin.model, self.folder)
        dense = DualEncoder.load(self.origin.model, texts_only=texts_only)
        return SparseEncoder(dense, self.sparsifier())

    def rows(self, split: str | None = None) -> SparsifiedCollection:
        """Return the sparse rows of a split."""
        folder = self.folder / "rows" / (split or self.split)
        if not folder.is_dir():
            there = sorted(path.name for path in folder.parent.glob("[!.]*"))
            only = f", only of {', '.join(there)}" if there else ""
            raise UsageError(
                f"{self.folder} holds no rows of {folder.name!r}{only}",
                f"repeat the diptych sparse train that made it with --test {folder.name}",
            )
        return SparsifiedCollection.open(folder)

    def collection(self, split: str | None = None) -> Collection:
        """Return the images and captions of a split."""
        return replace(self.origin, split=split or self.split).collection()

    def query_origin(self, split: str | None = None) -> Origin:
        """Return the origin that an index of a split's rows keeps: queries are encoded with this folder."""
        return replace(self.origin, model=str(self.folder.resolve()), split=split or self.split)
