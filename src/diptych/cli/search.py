"""``diptych search``: sentences or images against an index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

import typer
from pydantic import Field, model_validator

from diptych.cli.console import fail, next_step, progress, say, show
from diptych.cli.sources import parse_values
from diptych.cli.sparse_folder import looks_like_a_picture, query_encoder, sparse_folder
from diptych.core.errors import DataError, DiptychError, UsageError
from diptych.core.options import Options
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image
    from scipy.sparse import csr_array

    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.index import Hits, Index
    from diptych.sparse import SparseEncoder

OF_PRODUCTS = "category_run"
"""Where an index of diptych categories says which run its products were embedded by, and how they were read."""

_SMALL = 1_000_000  # parameters; an encoder with fewer knows little beyond what it was trained on


class SearchOptions(Options):
    """What is searched for, and what is shown."""

    query: str | None = Field(
        None,
        description="A sentence, or the path of an image.",
        json_schema_extra={"argument": True, "metavar": "QUERY"},
    )
    queries: Path | None = Field(None, description="A file with a query per line.")
    interactive: bool = Field(
        False,
        description="Read queries until an empty line.",
        json_schema_extra={"flags": ["--interactive", "-i"]},
    )
    k: int = Field(10, ge=1, description="How many to show.", json_schema_extra={"flags": ["-k"]})
    least: float | None = Field(
        None, description="Leave out what scores less.", json_schema_extra={"metavar": "SCORE"}
    )
    paths: bool = Field(False, description="Show the path of each image.")
    sheet: Path | None = Field(None, description="Write the result as .png, .jpg or .html.")
    model: str | None = Field(
        None,
        description="The query encoder.",
        json_schema_extra={"metavar": "MODEL", "default": "the one the index was built with"},
    )
    option: list[str] = Field([], description="KEY=VALUE for this search, e.g. ef_search=256. Repeatable.")
    category: bool = Field(False, description="The query is a category; an index of products implies it.")
    own_terms: bool = Field(
        False, description="Search with a sentence's own terms alone (sparse rows, first stage of a cascade)."
    )
    where: list[str] = Field(
        [],
        description="FIELD=VALUE of items' metadata (qdrant); a list is any of, {gte=10, lt=20} a range. "
        "Repeatable.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum((self.query is not None, self.queries is not None, self.interactive)) != 1:
            fix = "give a query, --queries FILE or --interactive"
            raise UsageError("one source of queries is needed", fix)
        if self.query is not None and not self.query.strip():
            raise UsageError("the query is empty", "give a sentence or the path of an image")
        return self

    def listed(self) -> list[str]:
        """Return the queries that are known before the search begins."""
        if self.queries is None:
            return [] if self.query is None else [self.query]
        from diptych.core.reading import read_text

        lines = [line.strip() for line in read_text(self.queries, error=DataError).splitlines()]
        if not any(lines):
            raise UsageError(f"{self.queries} holds no query", "write a query per line")
        return [line for line in lines if line]

    def of_index(self, index: Index) -> dict[str, Any]:
        """Return what ``--option`` and ``--where`` give an engine."""
        options = parse_values(self.option, "--option")
        if self.where:
            if not index.engine().filters:
                message = f"the {index.engine_name} engine keeps no metadata to restrict a search by"
                raise UsageError(message, "build the index with --engine qdrant")
            options["where"] = parse_values(self.where, "--where")
        return options

    def best_of(self, hits: Hits) -> tuple[list[tuple[str, float]], str]:
        """Return the hits of one query that score enough, and a line about those that are missing."""
        best = next(iter(hits))
        kept = [one for one in best if self.least is None or one[1] >= self.least]
        lines = [hits.note] if hits.note else []
        if len(kept) < len(best):
            lines.append(f"{len(best) - len(kept)} of {len(best)} hits score less than {self.least:g}")
        return kept, "; ".join(lines)


@dataclass(frozen=True)
class Hit:
    """One image, caption or product that was found.

    Attributes:
        name: its id.
        score: its similarity to the query.
        text: a caption or title.
        path: of the image's file, where there is one.
        picture: reads the image.
        right: whether it is of the category that was searched for; None where that is unknown.
    """

    name: str
    score: float
    text: str = ""
    path: str = ""
    picture: Callable[[], Image] | None = None
    right: bool | None = None


@dataclass(frozen=True)
class Found:
    """What one query found: as a table, and for a contact sheet; ``notes`` go below the table."""

    query: str
    table: Table
    hits: Sequence[Hit]
    notes: Sequence[str] = ()


class Searcher(Protocol):
    """An index with what its queries are encoded by."""

    note: str

    def find(self, query: str) -> Found:
        """Search for one query."""

    def next_steps(self, query: str) -> list[list[object]]:
        """Return commands that show more."""


def search(
    index: Annotated[
        Path,
        typer.Argument(metavar="INDEX", help="A folder that diptych index wrote.", show_default=False),
    ],
    options: SearchOptions,
) -> None:
    """Search an index with sentences or images.

    Examples:
        diptych search runs/flickr8k/index-images-exact "two dogs" --sheet dogs.png
        diptych search runs/flickr8k/index-texts-exact holiday.jpg -k 5
        diptych search runs/flickr8k/index-images-exact --queries queries.txt
        diptych search runs/flickr8k/sparse/index-images-cascade kayak --own-terms
        diptych search runs/shop/index-exact Dresses --category --sheet dresses.png
    """
    from diptych.index import open_index

    listed = options.listed()
    opened = open_index(index)
    searcher: Searcher
    if options.category or OF_PRODUCTS in opened.about:
        from diptych.cli.categories.search import ProductSearcher

        searcher = ProductSearcher(opened, index, options)
    else:
        pictures = options.interactive or any(map(looks_like_a_picture, listed))
        searcher = ImageSearcher(opened, index, options, pictures)
    found = []
    for query in _typed() if options.interactive else listed:
        try:
            with progress():
                found.append(searcher.find(query))
        except DiptychError as error:
            if not options.interactive:
                raise
            fail(error)
            continue
        show(found[-1].table)
        for note in found[-1].notes:
            say(note)
    if searcher.note:
        say(searcher.note)
    if options.sheet is not None and found:
        for name in write_hits(options.sheet, found):
            say(f"the image of {name} cannot be read")
        say(f"contact sheet in {options.sheet}")
    elif found and (steps := searcher.next_steps(found[-1].query)):
        next_step(*steps)


def _typed() -> Iterator[str]:
    """Yield the queries that a person types."""
    while True:
        sys.stderr.write("query (empty to end): ")
        sys.stderr.flush()
        if not (query := sys.stdin.readline().strip()):
            return
        yield query


def write_hits(path: Path, found: Sequence[Found]) -> tuple[str, ...]:
    """Write a contact sheet, a gallery per query; return names of unreadable images."""
    from diptych.data.images import read_image
    from diptych.report.document import Card, Gallery, state_of
    from diptych.report.sheets import write_sheet

    galleries = []
    for one in found:
        cards = []
        for rank, hit in enumerate(one.hits, 1):
            state = "" if hit.right is None else state_of(hit.right)
            cards.append(Card(hit.name, hit.picture, hit.text, f"{rank}", state, f"{hit.score:.3f}"))
        is_picture = looks_like_a_picture(one.query)
        query = Card(one.query, partial(read_image, Path(one.query)), label="Query") if is_picture else None
        galleries.append(Gallery(one.table.caption if len(found) > 1 else "", cards, query))
    title = found[0].table.caption if len(found) == 1 else f"{len(found)} searches"
    return write_sheet(path, title, galleries)


class ImageSearcher:
    """An index of images or captions with the encoder of its queries; ``pictures``: of images among them, too."""

    def __init__(self, index: Index, folder: Path, options: SearchOptions, pictures: bool) -> None:
        from diptych.encoders.embeddings import Origin, check_still_there

        about = index.about
        self.index, self.folder, self.options, self.kind = index, folder, options, about.get("kind", "image")
        self.origin = Origin.from_dict(about["origin"], folder) if "origin" in about else None
        if options.model is None:
            if self.origin is None:
                message = f"{folder} does not say what it was built with"
                raise UsageError(message, "name the query encoder with --model")
            check_still_there(self.origin.model, folder)
        model = options.model or (self.origin.model if self.origin else "")
        with progress():
            self.encoder = query_encoder(model, texts_only=not pictures)
        self.note = note_on(model)

    def find(self, query: str) -> Found:
        """Search for a sentence, or for the image of a file."""
        from diptych.data.images import read_image

        encoder, options, is_picture = self.encoder, self.options, looks_like_a_picture(query)
        settings = options.of_index(self.index)
        if is_picture:
            rows = encoder.encode_images([read_image(Path(query))])
        else:
            rows = encoder.encode_texts([query])
        if options.own_terms:
            own = _own_terms(encoder, query, is_picture)
            if self.index.engine().two_stages:
                settings["first"] = own
            else:
                rows = own
        best, after = options.best_of(
            self.index.search(rows, options.k, encoder=encoder.fingerprint, **settings)
        )
        hits = [self._described(name, score, rows) for name, score in best]
        columns = ["rank", "score", "id", "caption", *(["path"] if options.paths else [])]
        lines = []
        for rank, hit in enumerate(hits, 1):
            numbers = [Cell(f"{rank}", value=rank), Cell(f"{hit.score:.3f}", value=hit.score)]
            words = [Cell(hit.name), Cell(hit.text, words=True), Cell(hit.path)]
            lines.append([*numbers, *words][: len(columns)])
        return Found(query, Table(f"{self.kind}s for {query!r}", columns, lines, after=after), hits)

    def next_steps(self, query: str) -> list[list[object]]:
        """Return the command that draws what was found, and of sparse rows the one that explains it."""
        steps: list[list[object]] = [["diptych", "search", self.folder, query, "--sheet", "found.png"]]
        if self.index.engine().vectors == "sparse":
            steps.append(["diptych", "sparse", "explain", self.folder, query])
        return steps if self.kind == "image" else []

    @cached_property
    def _collection(self) -> tuple[Collection, dict[str, int]] | None:
        """What was indexed, and the rows of its ids; None where the index does not say."""
        if self.origin is None:
            return None
        collection = self.origin.collection()
        ids = collection.image_ids if self.kind == "image" else collection.caption_ids
        return collection, {name: row for row, name in enumerate(ids)}

    def _described(self, name: str, score: float, query: np.ndarray | csr_array) -> Hit:
        """Return a hit with image and caption: of an image the caption nearest to the query."""
        if self._collection is None:
            return Hit(name, score)
        collection, rows = self._collection
        if name not in rows:
            raise DataError(
                f"the index finds {name!r}, which {collection.name} no longer holds", "build it again"
            )
        row = rows[name]
        if self.kind != "image":
            image = int(collection.caption_image[row])
            return Hit(name, score, collection.captions[row], image_path(collection, image))
        captions = collection.captions_of(row)
        if len(captions) > 1 and getattr(self.encoder, "similarity", "cosine") == "cosine":
            scores = self.encoder.encode_texts(captions) @ query.T
            captions = [captions[int(scores.argmax())]]
        text = next(iter(captions), "")
        return Hit(name, score, text, image_path(collection, row), partial(collection.image, row))


def image_path(collection: Collection, row: int) -> str:
    """Return the file of an image; empty where there is none."""
    path_of, place = getattr(collection.source, "path", None), int(collection.source_rows[row])
    return "" if path_of is None or place < 0 else str(path_of(place))


def _own_terms(encoder: DualEncoder | SparseEncoder, query: str, is_picture: bool) -> csr_array:
    """Return the sparse row of a sentence without expansion terms."""
    from diptych.encoders.dual_encoder import DualEncoder

    if is_picture or isinstance(encoder, DualEncoder):
        raise UsageError(
            f"--own-terms with {'an image' if is_picture else 'a dense encoder'}: it has no terms of its own",
            "leave it out, or search an index of what diptych sparse train made with a sentence",
        )
    return encoder.encode_texts([query], expand=False)


def note_on(model: str) -> str:
    """Return a line where an encoder that diptych trained is small, or knows generated scenes alone; else nothing."""
    made = sparse_folder(model)
    if made is not None:
        model = made.origin.model
    folder = Path(model)
    weights, recipe = folder / "best" / "model.safetensors", folder / "recipe.toml"
    if not recipe.is_file():  # a run's encoder, or a copy of one
        weights, recipe = folder / "model.safetensors", folder.parent / "recipe.toml"
    if not weights.is_file():
        return ""
    from math import prod

    from safetensors import safe_open

    from diptych.core.reading import read_toml

    with safe_open(weights, "np") as tensors:
        count = sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    on_scenes = recipe.is_file() and "scenes" in read_toml(recipe).get("data", {})
    if count >= _SMALL and not on_scenes:
        return ""
    trained = ", trained on generated scenes" if on_scenes else ""
    return f"note: a small encoder ({count:,} parameters{trained}): do not expect it to know other images"
