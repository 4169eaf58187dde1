"""What ``diptych sparse train`` leaves in its folder: a trained head, sparse rows, and what made the dense ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from diptych.core.artifact import Artifact
from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Origin, check_still_there
from diptych.sparse.sparsified import SparseEncoder, SparsifiedCollection
from diptych.sparse.sparsifier import Sparsifier


@dataclass(eq=False)
class SparseFolder(Artifact, kind="sparse_head", recreate="diptych sparse train"):
    """A finished head, the sparse rows it made, and where the dense ones came from.

    ::

        FOLDER/
          sparse.json          this
          training.json …      what training wrote, head/ among it
          rows/SPLIT/          sparse rows of images and captions
          measures/SPLIT.npz   what they keep and lose
          report.html

    Attributes:
        origin: the dense encoder and data, of all splits.
        split: the part that is shown and searched when none is named.
        folder: where it was opened.
    """

    origin: Origin
    split: str
    folder: Path = field(init=False)

    @classmethod
    def marker(cls) -> str:
        """Return the name of its file, which is written last of all."""
        return "sparse.json"

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Open a folder that ``diptych sparse train`` wrote."""
        if not cls.is_at(path):
            raise UsageError(f"{path} holds no sparse head", "make one with diptych sparse train")
        return super().open(Path(path) / cls.marker(), of)

    @classmethod
    def of_rows(cls, folder: Path) -> Self:
        """Open the folder itself, or the one whose rows an index holds."""
        if not cls.is_at(folder) and (folder / "index.json").is_file():
            from diptych.index.storage import Header

            about = Header.open(folder).about
            if "origin" in about:
                origin = Origin.from_dict(about["origin"], folder / "index.json")
                check_still_there(origin.model, folder)
                found = cls.open(origin.model)
                found.split = origin.split or "all"
                return found
        return cls.open(folder)

    def sparsifier(self) -> Sparsifier:
        """Return the head."""
        return Sparsifier.load(self.folder / "head")

    def encoder(self) -> SparseEncoder:
        """Return what makes sparse rows of sentences and images."""
        check_still_there(self.origin.model, self.folder)
        return SparseEncoder(DualEncoder.load(self.origin.model), self.sparsifier())

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
