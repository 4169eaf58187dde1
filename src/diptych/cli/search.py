"""``diptych search``: sentences, images or vectors against an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from pydantic import model_validator

from diptych.cli.console import fail, next_step, say, show
from diptych.core.errors import DataError, DiptychError, UsageError
from diptych.core.options import Options, parameter, parse_values
from diptych.core.reading import read_text

if TYPE_CHECKING:
    from diptych.index import Index
    from diptych.report.products import ProductSearcher
    from diptych.report.searcher import Found, Searcher


class SearchOptions(Options):
    """Options of searching, and of what is shown."""

    query: str | None = parameter(
        None,
        "A sentence, or the path of an image or of vectors (.npy, one a row).",
        argument=True,
        metavar="QUERY",
    )
    queries: Path | None = parameter(None, "A file with a query per line.")
    interactive: bool = parameter(False, "Read queries until an empty line.", "--interactive", "-i")
    k: int = parameter(10, "How many to show.", "-k", ge=1)
    least: float | None = parameter(None, "Leave out what scores less.", metavar="SCORE")
    paths: bool = parameter(False, "Show the path of each image.")
    sheet: Path | None = parameter(None, "Write the result as .png, .jpg or .html.")
    model: str | None = parameter(
        None,
        "The query encoder; none: a sentence's own terms by their rarity (sparse index).",
        metavar="MODEL",
        default="the one the index was built with",
    )
    option: list[str] = parameter([], "KEY=VALUE for this search, e.g. ef_search=256. Repeatable.")
    category: bool = parameter(False, "The query is a category; an index of products implies it.")
    own_terms: bool = parameter(
        False, "Search with a sentence's own terms only (sparse index, first stage of a cascade)."
    )
    where: list[str] = parameter(
        [], "FIELD=VALUE of metadata; a list is any of, {gte=10, lt=20} a range. Repeatable."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum((self.query is not None, self.queries is not None, self.interactive)) != 1:
            raise UsageError("one source of queries is needed", "give QUERY, --queries FILE or --interactive")
        if self.query is not None and not self.query.strip():
            raise UsageError("the query is empty", "give a sentence or the path of an image")
        return self

    def listed(self) -> list[str]:
        if self.queries is None:
            return [] if self.query is None else [self.query]
        lines = [line.strip() for line in read_text(self.queries, error=DataError).splitlines()]
        if not any(lines):
            raise UsageError(f"{self.queries} holds no query", "write a query per line")
        return list(filter(None, lines))

    def of_engine(self, index: Index) -> dict[str, Any]:
        """Return what ``--option`` and ``--where`` give an engine."""
        options = parse_values(self.option, "--option")
        if self.where:
            if not index.engine().filters:
                raise UsageError(
                    f"the {index.engine_name} engine keeps no metadata to restrict a search by",
                    "index with another engine, such as exact or inverted",
                )
            options["where"] = parse_values(self.where, "--where")
        return options


def search(
    index: Annotated[
        str,
        typer.Argument(
            metavar="INDEX", help="A folder of diptych index, or qdrant:URL/COLLECTION.", show_default=False
        ),
    ],
    options: SearchOptions,
) -> None:
    """Search an index with sentences or images.

    Examples:
        diptych search runs/flickr8k/index-images-exact "two dogs" --sheet dogs.png
        diptych search runs/flickr8k/index-texts-exact holiday.jpg -k 5
        diptych search runs/flickr8k/index-images-exact --queries queries.txt
        diptych search runs/flickr8k/sparse/index-images-inverted kayak --model none
        diptych search runs/shop/index-exact Dresses --category --sheet dresses.png
    """
    from diptych.index import open_index
    from diptych.index.engine import OF_PRODUCTS

    listed, opened = options.listed(), open_index(index)
    searcher: Searcher | ProductSearcher
    if options.category or OF_PRODUCTS in opened.about:
        from diptych.report.products import ProductSearcher

        if options.model is not None:
            raise UsageError("--model is of searches for images", "leave it out")
        searcher = ProductSearcher.open(opened, Path(index))
    else:
        from diptych.report.searcher import searcher_of

        searcher = searcher_of(opened, Path(index), options.model, listed)
    found: list[Found] = []
    settings: dict[str, Any] = {
        "least": options.least,
        "own_terms": options.own_terms,
        "paths": options.paths,
    }
    settings |= options.of_engine(opened)
    for query in _typed() if options.interactive else listed:
        try:
            latest = searcher.find(query, options.k, **settings)
        except DiptychError as error:
            if not options.interactive:
                raise
            fail(error)
            continue
        for one in latest:
            show(*one.tables())
            for line in one.notes:
                say(line)
        found += latest
        again: list[object] = ["diptych", "search", index, query]
    if searcher.note:
        say(searcher.note)
    if options.sheet is not None and found:
        from diptych.report.sheets import write_hits

        for name in write_hits(options.sheet, found):
            say(f"the image of {name} cannot be read")
        say(f"contact sheet in {options.sheet}")
    elif found and searcher.kind != "text":
        steps = [[*again, *(["--category"] if searcher.kind == "product" else []), "--sheet", "found.png"]]
        if opened.engine().vectors == "sparse":
            steps.append(["diptych", "sparse", "explain", *again[2:]])
        next_step(*steps)


def _typed() -> Iterator[str]:
    def ask() -> str:
        sys.stderr.write("query (empty to end): ")
        sys.stderr.flush()
        return sys.stdin.readline().strip()

    return iter(ask, "")
