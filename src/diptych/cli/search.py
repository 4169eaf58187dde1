"""``diptych search``: a sentence or a picture against an index."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.search import is_of_products, search_products
from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import parse_values
from diptych.cli.sparse_folder import looks_like_a_picture, query_encoder
from diptych.core.errors import DataError, UsageError
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.index import Index
    from diptych.report.document import Card
    from diptych.sparse import SparseEncoder


def search(
    index: Annotated[Path, typer.Argument(help="A folder that diptych index wrote.", show_default=False)],
    query: Annotated[str, typer.Argument(help="A sentence, or the path of a picture.", show_default=False)],
    k: Annotated[int, typer.Option("-k", min=1, help="How many to show.")] = 10,
    sheet: Annotated[
        Path | None, typer.Option(help="Write the result as .png, .jpg or .html.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The query encoder; the one the index was built with.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            help="KEY=VALUE for this search, e.g. ef_search=256. Repeatable.",
            show_default=False,
        ),
    ] = None,
    category: Annotated[
        bool,
        typer.Option(
            "--category",
            help="The query is a category, the index of products (diptych categories index); it knows so by itself.",
        ),
    ] = False,
    own_terms: Annotated[
        bool,
        typer.Option(
            "--own-terms",
            help="A sentence searches with its own terms alone (sparse rows); of a cascade the first stage does.",
        ),
    ] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="FIELD=VALUE of items' metadata (qdrant); a list is any of, {gte=10, lt=20} a range. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Search an index with a sentence or a picture.

    Examples:

      [bold]diptych search runs/flickr8k/index-images-exact "two dogs play in the snow" --sheet dogs.png[/bold]

      [bold]diptych search runs/flickr8k/index-texts-exact holiday.jpg -k 5[/bold]

      [bold]diptych search runs/flickr8k/sparse/index-images-cascade "a red kayak" --own-terms[/bold]

      [bold]diptych search runs/shop/index-exact "Dresses" --category --sheet dresses.png[/bold]
    """
    from diptych.data.images import read_image
    from diptych.encoders.embeddings import Origin, check_still_there
    from diptych.index import open_index
    from diptych.report.document import Card, Gallery

    if not query.strip():
        raise UsageError("the query is empty", "give a sentence or the path of a picture")
    opened = open_index(index)
    if category or is_of_products(opened):
        if model is not None or own_terms:
            raise UsageError("--model and --own-terms are of searches for pictures", "leave them out")
        search_products(opened, index, query, k, sheet, _search_options(opened, option, where))
        return
    origin = Origin.from_dict(opened.about["origin"], index) if "origin" in opened.about else None
    if model is None and origin is None:
        raise UsageError(
            f"{index} does not say what it was built with", "name the query encoder with --model"
        )
    if model is None and origin is not None:
        check_still_there(origin.model, index)
    with progress():
        is_picture = looks_like_a_picture(query)
        encoder = query_encoder(model or (origin.model if origin else ""), texts_only=not is_picture)
        rows = (
            encoder.encode_images([read_image(Path(query))]) if is_picture else encoder.encode_texts([query])
        )
        options = _search_options(opened, option, where)
        if own_terms:
            own = _own_terms(encoder, query, is_picture)
            if opened.engine().two_stages:
                options["first"] = own
            else:
                rows = own
        hits = opened.search(rows, k, encoder=encoder.fingerprint, **options)
        best = next(iter(hits))
        found = [Card(name, score=f"{score:.3f}") for name, score in best]
        if origin is not None:
            found = _described(found, opened.about["kind"], origin.collection(), encoder, rows)
    title = f"{opened.about['kind']}s for {query!r}"
    lines = [
        [Cell(f"{rank}", value=rank), Cell(card.score, value=score), Cell(name), Cell(card.text, words=True)]
        for rank, (card, (name, score)) in enumerate(zip(found, best, strict=True), 1)
    ]
    show(Table(title, ("rank", "score", "id", "caption"), lines, after=hits.note))
    if sheet is not None:
        from diptych.report.sheets import write_sheet

        asked = Card(query, picture=partial(read_image, Path(query)), label="Query") if is_picture else None
        write_sheet(sheet, title, [Gallery("", found, asked)])
        say(f"contact sheet in {sheet}")
    elif opened.about["kind"] == "image":
        more = [["diptych", "sparse", "explain", index, query]] if opened.engine().vectors == "sparse" else []
        next_step(["diptych", "search", index, query, "--sheet", "found.png"], *more)


def _search_options(index: Index, option: list[str] | None, where: list[str] | None) -> dict[str, Any]:
    """What ``--option`` and ``--where`` say."""
    options = parse_values(option, "--option")
    if where:
        if not index.engine().filters:
            raise UsageError(
                f"the {index.engine_name} engine keeps no metadata to restrict a search by",
                "build the index with --engine qdrant",
            )
        options["where"] = parse_values(where, "--where")
    return options


def _own_terms(encoder: DualEncoder | SparseEncoder, query: str, is_picture: bool) -> csr_array:
    """The sparse row of a sentence without expansion terms."""
    from diptych.encoders.dual_encoder import DualEncoder

    if is_picture or isinstance(encoder, DualEncoder):
        raise UsageError(
            f"--own-terms with {'a picture' if is_picture else 'a dense encoder'}: it has no terms of its own",
            "leave it out, or search an index of what diptych sparse train made with a sentence",
        )
    return encoder.encode_texts([query], expand=False)


def _described(
    found: list[Card],
    kind: str,
    collection: Collection,
    encoder: DualEncoder | SparseEncoder,
    query: np.ndarray | csr_array,
) -> list[Card]:
    """Return what was found with images and captions; of an image the caption nearest to the query is shown."""
    ids = collection.image_ids if kind == "image" else collection.caption_ids
    rows = {name: row for row, name in enumerate(ids)}
    gone = [one.name for one in found if one.name not in rows]
    if gone:
        raise DataError(
            f"the index finds {gone[0]!r}, which {collection.name} no longer holds", "build it again"
        )
    cards = []
    for rank, one in enumerate(found, 1):
        row, picture = rows[one.name], None
        captions = collection.captions_of(row) if kind == "image" else [collection.captions[row]]
        if len(captions) > 1 and getattr(encoder, "similarity", "cosine") == "cosine":
            scores = encoder.encode_texts(captions) @ query.T
            captions = [captions[int(scores.argmax())]]
        if kind == "image":
            picture = partial(collection.image, row)
        cards.append(replace(one, picture=picture, text=next(iter(captions), ""), label=f"{rank}"))
    return cards
