"""Search an index with sentences, images or vectors: queries are encoded, hits come with caption and image."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image
from scipy.sparse import csr_array, issparse

from diptych.core.errors import DataError, ImageError, UsageError, nearest_path
from diptych.core.reading import read_array, read_toml
from diptych.core.table import Cell, Table, Tabular
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Origin, check_still_there
from diptych.encoders.inputs import as_picture
from diptych.index.contract import Index
from diptych.index.engine import Hits, query_type
from diptych.index.storage import Captions

_SMALL = 1_000_000  # parameters; an encoder with fewer knows little beyond what it was trained on


class CollectionCaptions(Captions):
    """The captions of each image of a collection, or each caption by its own id.

    Attributes:
        rows: the row of each id.
    """

    def __init__(self, collection: Collection, kind: str) -> None:
        self.collection, self._of_images = collection, kind == "image"
        ids = collection.image_ids if self._of_images else collection.caption_ids
        self.rows: dict[str, int] = {name: row for row, name in enumerate(ids)}

    def __getitem__(self, name: str) -> list[str]:
        row = self.rows[name]
        return self.collection.captions_of(row) if self._of_images else [self.collection.captions[row]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Hit:
    """An image, caption or product that was found."""

    name: str  # its id
    score: float
    text: str = ""  # a caption or title
    path: str = ""  # of the image's file, where it was requested
    image: Callable[[], Image] | None = None  # reads the image
    right: bool | None = None  # whether it is of the category that was searched for, where that is known


@dataclass(frozen=True)
class Found(Tabular):
    """The hits of one query, best first, and as a table; ``notes`` go below it."""

    query: str
    hits: Sequence[Hit]
    shown: Table
    notes: Sequence[str] = ()

    def tables(self) -> list[Table]:
        """Return the hits as a table."""
        return [self.shown]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, rank: int) -> Hit:
        return self.hits[rank]


class OwnTerms:
    """Encode sentences without a model: the terms that they contain, each weighted by its rarity in the index.

    The weights are BM25's log(1 + (n − df + ½) / (df + ½)), for an index of n items of which df have the term.
    """

    fingerprint = None

    def __init__(self, vocabulary: Any, index: Index) -> None:
        """Take the :class:`~diptych.sparse.TermVocabulary` of the index's terms."""
        index.check_origin(vocabulary=vocabulary.fingerprint)
        frequency = index.document_frequency()
        rarity = np.log1p((len(index) - frequency + 0.5).clip(0.5) / (frequency + 0.5))
        self._vocabulary, self._rarity = vocabulary, rarity.astype(np.float32)

    def encode_texts(self, texts: Sequence[str], *, expand: bool = False) -> csr_array:
        """(n, |V|) weights of the terms of texts."""
        rows = self._vocabulary.caption_terms(texts)
        rows.data = self._rarity[rows.indices]
        return rows


class Searcher:
    """An open index with the encoder of its queries.

    ::

        index = open_index("runs/flickr8k/index-images-exact")
        searcher = Searcher(index, DualEncoder.load(index.about["origin"]["model"]))
        for hit in searcher.find("two dogs", k=5)[0].hits:
            print(hit.score, hit.name, hit.text)

    Args:
        encoder: a dual or sparse encoder, or :class:`OwnTerms`; None: queries are files of vectors.
        note: what users should know of the encoder, see :func:`encoder_note`.
    """

    def __init__(
        self, index: Index, encoder: Any = None, note: str = "", collection: Collection | None = None
    ) -> None:
        self.index: Index = index
        self.encoder: Any = encoder
        self.note: str = note
        self.collection = collection
        self.kind: str = str(index.about.get("kind", "image"))
        self._images: dict[str, Any] = {}  # that were added as objects, by their ids

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.index.describe()}>"

    def save(self, folder: Path | str) -> Path:
        """Write the index; ``diptych search FOLDER`` and :func:`diptych.open_index` read it."""
        return self.index.save(folder)

    def record(self, name: str) -> Mapping[str, Any]:
        """Return the metadata of an item."""
        return self.index.records.get(name, {})

    def search(self, query: Any, k: int = 10, **options: Any) -> Found:
        """Search for a sentence, an image, the path of one, or a row of the encoder; arguments as of :meth:`find`."""
        found = self.find(query, k, **options)
        if len(found) != 1:
            raise UsageError(f"{len(found)} rows are no single query", "find(rows) searches for each")
        return found[0]

    def add(self, images: Any, ids: Sequence[str] | None = None, **options: Any) -> list[str]:
        """Encode new images, given as paths or Pillow images, and insert them.

        Args:
            ids: one per image; without them the paths, or ``new-N``.
            options: as of :meth:`diptych.index.Index.add`, e.g. ``replace=True``.

        Returns:
            The ids.
        """
        if self.kind != "image":
            raise UsageError(f"an index of {self.kind}s takes no images", "add to an index of images")
        if not hasattr(self.encoder, "encode_images"):
            raise UsageError(
                "no encoder for new images", "open_index(folder, encoder) with that of the index"
            )
        given = list(images) if isinstance(images, Sequence) and not isinstance(images, str) else [images]
        paths = [str(Path(one).resolve()) if isinstance(one, str | Path) else "" for one in given]
        free = (name for number in count() if (name := f"new-{number}") not in self.index)
        if ids is None:
            ids = [str(one) if path else next(free) for one, path in zip(given, paths, strict=True)]
        rows = self.encoder.encode_images(given)
        records = [{"path": path} if path else {} for path in paths]
        self.index.add(ids, rows, encoder=self.fingerprint, records=records, **options)
        self._images |= {name: one for name, one, path in zip(ids, given, paths, strict=True) if not path}
        return list(ids)

    @cached_property
    def fingerprint(self) -> str | None:
        """Return that of the query encoder."""
        return None if self.encoder is None else self.encoder.fingerprint

    @cached_property
    def origin(self) -> Origin | None:
        return origin_of(self.index)

    def find(
        self,
        query: Any,
        k: int = 10,
        *,
        least: float | None = None,
        own_terms: bool = False,
        paths: bool = False,
        **options: Any,
    ) -> list[Found]:
        """Search for a sentence, the image of a file, or each row of a ``.npy`` file of vectors.

        Args:
            query: a sentence or a path; in Python also a Pillow image, or rows of the query encoder.
            k: how many hits.
            least: leave out hits that score less.
            own_terms: search with a sentence's own terms only, or with a cascade's first stage.
            paths: read where the images' files are.
            options: of the engine's search.
        """
        kind = query_type(query)
        names = [
            str(query) if isinstance(query, str | Path) else "the image" if kind == "image" else "the row"
        ]
        if kind == "vectors":
            vectors = read_array(Path(query)) if isinstance(query, str | Path) else query
            vectors = vectors if issparse(vectors) else np.atleast_2d(np.asarray(vectors, dtype=np.float32))
            size = vectors.shape[0]
            names = names if size == 1 else [f"{names[0]}[{row}]" for row in range(size)]
            if own_terms:
                raise UsageError("--own-terms with vectors: they have no terms of their own", "leave it out")
        else:
            vectors, options = self._encoded(query, own_terms, options)
        hits = self.index.search(vectors, k, encoder=self.fingerprint, **options)
        found = []
        for row, name in enumerate(names):
            best, after = best_of(hits, row, least)
            described = self._described(name, best, vectors[row : row + 1], paths)
            found.append(Found(name, described, self._table(name, described, paths, after)))
        return found

    def _encoded(self, query: Any, own_terms: bool, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the vectors of a sentence or image, and options with the first stage of a cascade."""
        encoder, is_image = self.encoder, query_type(query) == "image"
        if encoder is None:
            raise UsageError(f"no encoder for the query {query!r}", "name the query encoder with --model")
        if own_terms and (is_image or isinstance(encoder, DualEncoder)):
            raise UsageError(
                f"--own-terms with {'an image' if is_image else 'a dense encoder'}: it has no terms of its own",
                "leave it out, or search an index of what diptych sparse train made with a sentence",
            )
        if is_image:
            if isinstance(query, str | Path) and not Path(query).is_file():
                raise ImageError(
                    f"the image {query} does not exist", f"{nearest_path(Path(query))}check the path"
                )
            return encoder.encode_images([query]), options
        if not own_terms:
            return encoder.encode_texts([query]), options
        own = encoder.encode_texts([query], expand=False)
        if self.index.engine().two_stages:
            return encoder.encode_texts([query]), {**options, "first": own}
        return own, options

    @cached_property
    def _of_collection(self) -> CollectionCaptions:
        if self.collection is None:
            assert self.origin is not None
            self.collection = self.origin.collection()
        return CollectionCaptions(self.collection, self.kind)

    def _described(self, query: str, best: Sequence[tuple[str, float]], row: Any, paths: bool) -> list[Hit]:
        """Return hits with captions: of an image the caption nearest to the query."""
        encoder = self.encoder
        compared = encoder is not None and getattr(encoder, "similarity", "cosine") == "cosine"
        hits = []
        for name, score in best:
            captions = self.captions(name)
            if compared and len(captions) > 1:
                scores = encoder.encode_texts(captions) @ row.T
                captions = [captions[int((scores.toarray() if issparse(scores) else scores).argmax())]]
            if paths and not self.path(name):
                self.locate()
            image = partial(self.image, name) if self.shows(name) else None
            hits.append(Hit(name, score, next(iter(captions), ""), self.path(name) if paths else "", image))
        return hits

    def locate(self) -> None:
        """Open the collection that the items are of, where the index says which."""
        if self.origin is not None or self.collection is not None:
            self._of_collection  # noqa: B018

    def shows(self, name: str, record: Mapping[str, Any] | None = None) -> bool:
        """Return whether there is an image of an item, whose metadata may be given."""
        if self.kind != "image":
            return False
        if name in self._images or (self.record(name) if record is None else record).get("path"):
            return True
        if self.collection is not None:
            return name in self._of_collection.rows
        return self.origin is not None

    def encode_texts(self, texts: Sequence[str]) -> Any:
        """Encode sentences as queries, to rows of the index."""
        return self._query_encoder("texts").encode_texts(texts)

    def encode_images(self, images: Sequence[Any]) -> Any:
        """Encode images as queries, to rows of the index."""
        return self._query_encoder("images").encode_images(images)

    def _query_encoder(self, what: str) -> Any:
        if not hasattr(self.encoder, f"encode_{what}"):
            raise UsageError(f"the index has no encoder for {what}", "name one: --encoder MODEL")
        return self.encoder

    def captions(self, name: str) -> list[str]:
        """Return the captions of an item."""
        if self.index.captions is not None:
            return self.index.captions.get(name, [])
        if self.origin is None and self.collection is None:
            return []
        self._row(name)
        return self._of_collection[name]

    def _row(self, name: str) -> tuple[Collection, int]:
        of = self._of_collection
        collection, row = of.collection, of.rows.get(name)
        if row is None:
            raise DataError(
                f"the index finds {name!r}, which {collection.name} no longer holds", "build it again"
            )
        return collection, row if self.kind == "image" else int(collection.caption_image[row])

    def path(self, name: str, record: Mapping[str, Any] | None = None) -> str:
        """Return where the file of an item's image is; empty where it is none, or the collection is not open."""
        if path := (self.record(name) if record is None else record).get("path"):
            return str(path)
        if self.collection is None or name not in self._of_collection.rows:
            return ""
        collection, row = self._row(name)
        return collection.image_path(row)

    def image(self, name: str) -> Image:
        """Read the image of an item."""
        given = self._images.get(name, self.record(name).get("path"))
        if given is not None:
            return as_picture(given, name)
        collection, row = self._row(name)
        return collection.image(row)

    def _table(self, query: str, hits: Sequence[Hit], paths: bool, after: str) -> Table:
        columns = ["rank", "score", "id", "caption", *(["path"] if paths else [])]
        lines = []
        for rank, hit in enumerate(hits, 1):
            numbers = [Cell(f"{rank}", value=rank), Cell(f"{hit.score:.3f}", value=hit.score)]
            words = [Cell(hit.name), Cell(hit.text, words=True), Cell(hit.path)]
            lines.append([*numbers, *words][: len(columns)])
        return Table(f"{self.kind}s for {query!r}", columns, lines, after=after)


def best_of(hits: Hits, row: int, least: float | None) -> tuple[list[tuple[str, float]], str]:
    """Return the hits of one query that score enough, and a line about those that are missing."""
    names = hits.ids[row]
    best = list(zip(names, hits.scores[row, : len(names)].tolist(), strict=True))
    kept = [one for one in best if least is None or one[1] >= least]
    lines = [hits.note] if hits.note else []
    if len(kept) < len(best):
        lines.append(f"{len(best) - len(kept)} of {len(best)} hits score less than {least:g}")
    return kept, "; ".join(lines)


def origin_of(index: Index) -> Origin | None:
    return Origin.from_dict(index.about["origin"], "the index") if "origin" in index.about else None


def encoder_note(model: str) -> str:
    """Return a line where a trained encoder is small, or knows only generated scenes; else nothing."""
    folder = Path(model)
    weights, recipe = folder / "best" / "model.safetensors", folder / "recipe.toml"
    if not recipe.is_file():  # a run's encoder, or a copy of one
        weights, recipe = folder / "model.safetensors", folder.parent / "recipe.toml"
    if not weights.is_file():
        return ""
    from safetensors import safe_open

    with safe_open(weights, "np") as tensors:
        count = sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    on_scenes = recipe.is_file() and "scenes" in read_toml(recipe).get("data", {})
    if count >= _SMALL and not on_scenes:
        return ""
    trained = ", trained on generated scenes" if on_scenes else ""
    return f"note: a small encoder ({count:,} parameters{trained}): do not expect it to know other images"


def searcher_of(index: Index, folder: Path, model: str | None, queries: Sequence[str]) -> Searcher:
    """Return an index with the encoder that queries need; without any, they may be sentences and images.

    ``model``: a run, encoder or sparse head; ``none`` for :class:`OwnTerms`; None for what the index was made with.
    """
    types, origin = set(map(query_type, queries)), origin_of(index)
    if model == "none":
        from diptych.sparse.vocabulary import TermVocabulary

        if origin is None or index.engine().vectors != "sparse":
            message = "--model none with an index that has no terms of its own"
            raise UsageError(message, "name the query encoder, or search with the vectors of a .npy file")
        return Searcher(index, OwnTerms(TermVocabulary.load(Path(origin.model) / "head"), index))
    if types == {"vectors"}:
        return Searcher(index)
    if model is None:
        if origin is None:
            message = f"{folder} does not say what it was built with"
            raise UsageError(message, "name the query encoder with --model")
        check_still_there(origin.model, folder)
        model = origin.model
    texts_only = bool(types) and "image" not in types
    if not (Path(model) / "sparse.json").is_file():
        return Searcher(index, DualEncoder.load(model, texts_only=texts_only), encoder_note(model))
    from diptych.sparse.sparsified import SparseEncoder, SparseFolder

    note = encoder_note(SparseFolder.open(model).origin.model)
    return Searcher(index, SparseEncoder.load(model, texts_only=texts_only), note)
