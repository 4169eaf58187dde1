"""Indexes of products, and searches in them for categories."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.application import OtherData, PartOptions, category_rows, rows_for
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.options import Options, parameter, parse_values
from diptych.core.table import Table
from diptych.encoders.embeddings import check_still_there
from diptych.index import ENGINES, Index, build_index
from diptych.index.searcher import OF_PRODUCTS, Found, Hit, best_of, image_path, query_type


class IndexOptions(PartOptions):
    """Options of an index of products; written to RUN/index-ENGINE by default."""

    engine: str = parameter(
        "exact",
        "How it is searched; diptych info lists engines for dense rows.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


class ProductSource(Options):
    """Run and products of an index."""

    run: Path
    other: OtherData
    split: str | None = None


_SAMPLE = 1000


def index_products(run: CategoryRun, data: OtherData, options: IndexOptions, folder: Path) -> list[str]:
    """Build and save an index of products; return lines about it. Recall is measured on categories, as queries are."""
    engine, split = ENGINES.get(options.engine), options.split
    settings, catalogue = parse_values(options.option, "--option"), data.of(run, split)
    check_replaceable(folder, "index.json")
    if engine.filters:
        settings["records"] = product_records(catalogue)
    about = {"dataset": catalogue.name, "split": split or "all", "model": run.about["model"]}
    source = ProductSource(run=run.folder.resolve(), other=data, split=split)
    with rows_for(run, catalogue, **about) as embedded:
        built = build_index(embedded, engine.name, sample=category_rows(run, run.tree)[:_SAMPLE], **settings)
        built.about[OF_PRODUCTS] = source.model_dump(mode="json")
        built.save(folder)
    line = f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {folder}"
    if not (recall := built.about.get("recall")):
        return [line]
    exact = f"recall@{recall['k']} against exact on {recall['queries']} categories"
    return [line, f"{exact}: {recall['value']:.3f}"]


def product_records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what searches can be restricted by: title, all categories above, whether there is an image."""
    tree, records = catalogue.tree, []
    for product, title in enumerate(catalogue.titles):
        above = {int(node) for place in catalogue.places_of(product) for node in tree.ancestors(place)}
        pictured = bool(catalogue.pictured[product])
        records.append({"title": title, "categories": sorted(map(tree.text, above)), "pictured": pictured})
    return records


_NAMED = 3  # categories of one name that are spelt out
_MARKS = {True: "✓", False: "✗", None: ""}


class ProductSearcher:
    """An index of products with the run that embedded them."""

    kind, note = "product", ""

    def __init__(self, index: Index, run: CategoryRun, catalogue: Catalogue) -> None:
        self.index, self.run, self.catalogue = index, run, catalogue
        self.rows = {name: row for row, name in enumerate(catalogue.ids)}

    @classmethod
    def open(cls, index: Index, folder: Path) -> Self:
        if OF_PRODUCTS not in index.about:
            fix = "make one: diptych categories index RUN, or leave --category out"
            raise UsageError(f"{folder} is no index of products", fix)
        source = ProductSource.read(index.about[OF_PRODUCTS], str(folder), StorageError, "index again")
        check_still_there(str(source.run), folder)
        run = CategoryRun.open(source.run)
        return cls(index, run, source.other.of(run, source.split))

    def find(
        self,
        query: str,
        k: int = 10,
        *,
        least: float | None = None,
        own_terms: bool = False,
        paths: bool = False,
        **options: Any,
    ) -> list[Found]:
        """Search for a category of the products' tree, by name or path, or for any words."""
        if own_terms:
            raise UsageError("--own-terms is of searches for images", "leave it out")
        if query_type(query) != "text":
            problem = f"{query!r} is an image or vectors; products are found by words"
            raise UsageError(problem, "give a category's name")
        run, tree = self.run, self.catalogue.tree
        meant, words = tree.meant(query), query
        if len(meant) == 1 and run.options.query != "name":  # as the run knows categories
            words = category_texts(tree, meant, run.options.query)[0]
        vectors = run.model.category_rows(run.category_features([words]))
        found = self.index.search(vectors, k, encoder=run.model.fingerprint, **options)
        best, after = best_of(found, 0, least)
        hits = [self._hit(name, score, meant) for name, score in best]
        lines = []
        for rank, hit in enumerate(hits, 1):
            places = map(tree.text, self.catalogue.places_of(self.rows[hit.name]).tolist())
            line = [f"{rank}", f"{hit.score:.3f}", hit.name, _MARKS[hit.right], hit.text, "; ".join(places)]
            lines.append([*line, hit.path] if paths else line)
        columns = ("rank", "score", "id", "", "title", "category", *(["path"] if paths else []))
        title = f"products for {query!r}" + (f", encoded as {words!r}" if words != query else "")
        notes = [legend(tree, query, meant)]
        if meant and (seen := sum(run.splits.get(hit.name) == "train" for hit in hits)):
            notes.append(
                f"the run was trained on {seen:,} of these {len(hits):,}: their share of ✓ is too high"
            )
        return [Found(query, hits, Table.of(title, after, columns, lines), notes)]

    def _hit(self, name: str, score: float, meant: list[int]) -> Hit:
        shop = self.catalogue
        if name not in self.rows:
            problem = f"the index finds {name!r}, which {shop.name} no longer holds"
            raise DataError(problem, "index the products again")
        row = self.rows[name]
        places, image = shop.places_of(row), int(shop.picture_rows[row])
        right = bool(np.isin(shop.tree.lineage[places], meant).any()) if meant and len(places) else None
        if image < 0:
            return Hit(name, score, shop.titles[row], right=right)
        read = partial(shop.collection.image, image)
        return Hit(name, score, shop.titles[row], image_path(shop.collection, image), read, right)


def legend(tree: CategoryTree, query: str, meant: list[int]) -> str:
    """Return what the marks mean."""
    if not meant:
        return f"{query!r} is no category of the tree: nothing found is right or wrong"
    texts = [tree.text(node) for node in meant[:_NAMED]]
    more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
    return f"✓ sorted into {' or '.join(texts)}{more}, or below it; ✗ elsewhere; no mark: without a category"
