"""A collection as bags of terms, the encoder that makes them, and the folder of what ``diptych sparse train`` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.sparse import csr_array

from diptych.core.artifact import not_here
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import (
    ORIGIN_FILE,
    EncodedCollection,
    Origin,
    SparseEmbeddings,
    canonical_rows,
    check_still_there,
)
from diptych.encoders.encode import encode_collection, stored_collection
from diptych.evaluation.sources import Named

if TYPE_CHECKING:
    from diptych.sparse.sparsifier import Sparsifier

SPARSE_FILE = "sparse.json"


@dataclass(frozen=True, eq=False)
class SparsifiedCollection(
    EncodedCollection,
    kind="sparsified_collection",
    recreate="diptych sparse train",
    mapped=("caption_image",),
    parts=("images", "texts", "own_terms"),
):
    """An encoded collection whose rows are bags of terms; texts are expanded unless the head has no expansion."""

    images: SparseEmbeddings  # type: ignore[assignment]
    texts: SparseEmbeddings  # type: ignore[assignment]
    own_terms: SparseEmbeddings  # one row per caption: ones where it contains a term, special terms left out

    def __post_init__(self) -> None:
        """Take rows whose head was checked when they were made."""

    @property
    def similarity(self) -> str:
        return "dot"

    @property
    def unexpanded(self) -> SparseEmbeddings:
        """The captions with only their own terms, weighted as before (``exp = 0`` in use)."""
        own = canonical_rows(self.texts.rows.multiply(self.caption_terms))
        return replace(self.texts, rows=own, about={**self.texts.about, "expansion": False})

    @property
    def caption_terms(self) -> csr_array:
        return self.own_terms.rows


def sparsify_collection(
    sparsifier: Sparsifier, encoded: EncodedCollection, captions: Sequence[str], folder: Path | str
) -> SparsifiedCollection:
    """Make sparse rows of all images and captions, or open what is there when it is the same."""
    about = {
        **encoded.about,
        "head": sparsifier.fingerprint,
        "vocabulary": sparsifier.vocabulary.fingerprint,
        "expansion": sparsifier.options.expansion.mode,
    }
    if SparsifiedCollection.is_at(folder):
        found = SparsifiedCollection.open(folder)
        if found.about == about:
            return found
    texts = sparsifier.embed(encoded.texts, captions)
    own = canonical_rows(sparsifier.vocabulary.caption_terms(captions))
    own_terms = replace(texts, rows=own, encoder=sparsifier.vocabulary.fingerprint)
    images = sparsifier.embed(encoded.images)
    SparsifiedCollection(images, texts, encoded.caption_image, about, own_terms).save(folder)
    return SparsifiedCollection.open(folder)


class SparseEncoder:
    """An encoder of images and texts whose rows are weights of terms: a dense one with a head."""

    loaded_from: str = ""  # the folder of the head, from any working directory

    def __init__(self, encoder: DualEncoder, sparsifier: Sparsifier) -> None:
        for what, mine, head in (
            ("width", encoder.width, sparsifier.width),
            ("encoder", encoder.fingerprint, sparsifier.encoder or encoder.fingerprint),
        ):
            if mine != head:
                raise MismatchError(
                    f"the head was trained on rows of {what} {head}, the encoder's are of {mine}",
                    "use that encoder, or train a head on this one's rows: diptych sparse train",
                )
        self.encoder: DualEncoder = encoder
        self.sparsifier: Sparsifier = sparsifier

    @classmethod
    def load(
        cls, folder: Path | str, *, device: str | None = None, texts_only: bool = False
    ) -> SparseEncoder:
        """Load the encoder from a folder that ``diptych sparse train`` wrote; arguments as of ``DualEncoder.load``."""
        made = SparseFolder.open(folder)
        check_still_there(made.origin.model, folder)
        dense = DualEncoder.load(made.origin.model, device=device, texts_only=texts_only)
        encoder = cls(dense, made.sparsifier(device))
        encoder.loaded_from = str(Path(folder).resolve())
        return encoder

    @property
    def terms(self) -> tuple[str, ...]:
        return self.sparsifier.vocabulary.terms

    @cached_property
    def fingerprint(self) -> str:
        """Name by content, the same as that of sparse embeddings made of this encoder's."""
        return fingerprint(self.encoder.fingerprint, self.sparsifier.fingerprint)

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> csr_array:
        """(n, |V|) weights of the terms of images, of whatever the dense encoder takes."""
        return self.sparsifier.sparsify(self.encoder.encode_images(images, batch_size), "image")

    def encode_texts(self, texts: Sequence[str], *, expand: bool = True, batch_size: int = 256) -> csr_array:
        """(n, |V|) weights of the terms of texts."""
        rows = self.encoder.encode_texts(texts, batch_size)
        own = None if expand and self.sparsifier.expands else self.sparsifier.vocabulary.caption_terms(texts)
        return self.sparsifier.sparsify(rows, "text", own, expand=expand)


@dataclass(frozen=True)
class SparseFolder:
    """A finished head (``head/``), sparse rows of its splits and other data (``rows/``), and what they are of."""

    folder: Path
    origin: Origin  # the dense encoder and data, of all splits
    split: str  # the part that is shown and searched when none is named

    @classmethod
    def open(cls, folder: Path | str) -> SparseFolder:
        """Open a folder that ``diptych sparse train`` has finished."""
        file = Path(folder) / SPARSE_FILE
        if not file.is_file():
            raise UsageError(*not_here(Path(folder), "sparse head", SPARSE_FILE, "diptych sparse train RUN"))
        content = read_json(file)
        if not isinstance(content, dict) or not isinstance(content.get("split"), str):
            raise StorageError(f"{file} is corrupt", "repeat the diptych sparse train that made it")
        return cls(Path(folder), Origin.from_dict(content.get("origin"), file), content["split"])

    def save(self) -> None:
        """Write its file, last of all: without it the folder is not finished."""
        write_json(self.folder / SPARSE_FILE, {"origin": asdict(self.origin), "split": self.split})

    def sparsifier(self, device: str | None = None) -> Sparsifier:
        from diptych.sparse.sparsifier import Sparsifier

        return Sparsifier.load(self.folder / "head", device=device)

    def rows(self, origin: Origin | None = None) -> SparsifiedCollection:
        """Return the sparse rows of a part of any data that lie here; of the part that was measured by default."""
        origin = origin or replace(self.origin, split=self.split)
        split, whole = origin.split or "all", origin.data == self.origin.data and origin.captions == "all"
        there = list(filter(SparsifiedCollection.is_at, sorted((self.folder / "rows").glob("[!.]*"))))
        for folder in there:
            found = Origin.read(folder)
            measured = found is None and whole and folder.name == split
            if measured or (found and (found.data, found.part) == (origin.data, origin.part)):
                return SparsifiedCollection.open(folder)
        only = f", only of {', '.join(path.name for path in there)}" if there else ""
        raise UsageError(
            f"{self.folder} holds no rows of {split!r}{only}",
            f"make them with diptych embed {self.folder} --split {split}",
        )


@dataclass(frozen=True)
class NamedSparse(Named):
    """A sparse head, or what was embedded with one, as it was named."""

    def encoded(
        self, out: Path | None = None, *, reuse: bool = False
    ) -> tuple[EncodedCollection, Origin, Path]:
        """Return bags of terms, their origin and their folder: as they lie in it, or made now.

        Without data it is the head's own, without a split the one that was measured where the data has it.
        """
        if (there := self.embedded(SparsifiedCollection)) is not None:
            return there
        head, whole_data = SparseFolder.open(self.name), self.captions == "all"
        own = self.data is None or dict(self.data) == head.origin.data
        origin = replace(head.origin, model=str(head.folder.resolve()), split=None, captions=self.captions)
        kept = head.folder / "rows" / safe_name(self.split or head.split)
        if own and out is None and whole_data and SparsifiedCollection.is_at(kept):
            return SparsifiedCollection.open(kept), replace(origin, split=self.split or head.split), kept
        origin = replace(origin, data=dict(self.data or head.origin.data))
        whole = origin.collection()
        whole = whole.divided() if own else whole
        split = self.split or (head.split if head.split in whole.split_sizes else "all")
        origin = replace(origin, split=None if split == "all" else split, centric=whole.centric)
        part = whole if origin.split is None else whole.split(origin.split)
        name = safe_name(f"{whole.name}-{origin.part}")
        out = out or (kept if own and whole_data else kept.with_name(f"{name}-{part.text_fingerprint[:8]}"))
        encoder = SparseEncoder.load(head.folder, device=self.device)
        homes = (home / "embeddings" / name for home in (Path(head.origin.model), head.folder))
        stored = (stored_collection(encoder.encoder, part, home, origin.split) for home in homes)
        dense = next(filter(None, stored), None)
        # Beside the sparse rows: what an interrupted call had finished is used.
        dense = dense or encode_collection(encoder.encoder, part, out / "dense", origin.split, **self.work)
        with exclusive_folder(out):
            sparsify_collection(encoder.sparsifier, dense, part.captions, out)
            write_json(out / ORIGIN_FILE, asdict(origin))
        return SparsifiedCollection.open(out), origin, out

    def check_matching(self) -> None:
        """Refuse to re-rank: bags of terms have no matching head."""
        raise UsageError(
            f"{self.name} makes or holds bags of terms", "name the dense encoder to re-rank with"
        )
