"""What ``diptych sparse train`` leaves in its folder, and how other verbs open it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import encoder_of
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import Origin
    from diptych.sparse import SparseEncoder, SparsifiedCollection, Sparsifier

_MARKER = "sparse.json"


@dataclass(frozen=True)
class SparseFolder:
    """A trained head, the sparse rows it made, and where the dense ones came from.

    ::

        FOLDER/
          sparse.json          this
          options.json …       what training wrote, head/ among it
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
    def is_one(cls, folder: Path | str) -> bool:
        """Return whether ``diptych sparse train`` has finished a head there."""
        return (Path(folder) / _MARKER).is_file()

    @classmethod
    def open(cls, folder: Path | str) -> SparseFolder:
        """Return what :meth:`save` wrote."""
        from diptych.sparse import SparseHead

        folder = Path(folder)
        if not cls.is_one(folder):
            raise UsageError(f"{folder} holds no sparse head", "make one with diptych sparse train")
        head = SparseHead.open(folder / _MARKER)
        return cls(folder, head.origin, head.split)

    @classmethod
    def of(cls, folder: Path | str) -> SparseFolder:
        """Return the folder itself, or the one whose rows an index holds."""
        from diptych.encoders.embeddings import Origin, check_still_there

        folder = Path(folder)
        if not cls.is_one(folder) and (folder / "index.json").is_file():
            from diptych.index.storage import Header

            about = Header.open(folder).about
            if "origin" in about:
                origin = Origin.from_dict(about["origin"], folder / "index.json")
                check_still_there(origin.model, folder)
                return replace(cls.open(origin.model), split=origin.split or "all")
        return cls.open(folder)

    def save(self) -> None:
        """Write the marker; last of all."""
        from diptych.sparse import SparseHead

        SparseHead(self.origin, self.split).save(self.folder / _MARKER)

    def sparsifier(self) -> Sparsifier:
        """Return the head."""
        from diptych.sparse import Sparsifier

        return Sparsifier.load(self.folder / "head")

    def encoder(self) -> SparseEncoder:
        """Return what makes sparse rows of sentences and images."""
        from diptych.encoders.embeddings import check_still_there
        from diptych.sparse import SparseEncoder

        check_still_there(self.origin.model, self.folder)
        dense, _ = encoder_of(self.origin.model)
        return SparseEncoder(dense, self.sparsifier())

    def rows(self, split: str | None = None) -> SparsifiedCollection:
        """Return the sparse rows of a split."""
        from diptych.sparse import SparsifiedCollection

        folder = self.rows_folder(split)
        if not folder.is_dir():
            there = sorted(path.name for path in folder.parent.glob("[!.]*"))
            only = f", only of {', '.join(there)}" if there else ""
            raise UsageError(
                f"{self.folder} holds no rows of {folder.name!r}{only}",
                f"repeat the diptych sparse train that made it with --test {folder.name}",
            )
        return SparsifiedCollection.open(folder)

    def rows_folder(self, split: str | None = None) -> Path:
        """Return the place of the rows of a split."""
        return self.folder / "rows" / (split or self.split)

    def collection(self, split: str | None = None) -> Collection:
        """Return the images and captions of a split."""
        return replace(self.origin, split=split or self.split).collection()

    def query_origin(self, split: str | None = None) -> Origin:
        """Return the origin that an index of a split's rows keeps: this folder is what queries are encoded with."""
        return replace(self.origin, model=str(self.folder.resolve()), split=split or self.split)


_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def looks_like_a_picture(query: str) -> bool:
    """Return whether a query is the path of an image, by its ending."""
    return Path(query).suffix.lower() in _PICTURES


def query_encoder(model: str, texts_only: bool = False) -> DualEncoder | SparseEncoder:
    """Return the encoder of queries: of a run or encoder, or of what ``diptych sparse train`` made."""
    from diptych.encoders.dual_encoder import DualEncoder

    if SparseFolder.is_one(model):
        return SparseFolder.open(model).encoder()
    return DualEncoder.load(model, texts_only=texts_only)
