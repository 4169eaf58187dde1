"""Search an index of products: a category's name or path, or any words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Self

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.application import ProductSource
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.table import Table
from diptych.encoders.embeddings import check_still_there
from diptych.index import Index
from diptych.index.searcher import OF_PRODUCTS, Found, Hit, best_of, image_path, query_type

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
        """Open what the index of a folder says it was made of."""
        if OF_PRODUCTS not in index.about:
            fix = "make one: diptych categories index RUN, or leave --category out"
            raise UsageError(f"{folder} is no index of products", fix)
        source = ProductSource.read(index.about[OF_PRODUCTS], str(folder), StorageError, "index again")
        check_still_there(str(source.run), folder)
        run = CategoryRun.open(source.run)
        return cls(index, run, source.other.catalogue(run, source.split)[0])

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
            raise UsageError(
                f"{query!r} is an image or vectors; products are found by words", "give a category's name"
            )
        run, tree = self.run, self.catalogue.tree
        meant, words = tree.meant(query), query
        if len(meant) == 1 and run.options.query == "path":  # as the run knows categories
            words = category_texts(tree, meant, "path")[0]
        vectors = run.model.category_rows(run.category_features([words]))
        best, after = best_of(
            self.index.search(vectors, k, encoder=run.model.fingerprint, **options), 0, least
        )
        hits, lines = [], []
        for rank, (name, score) in enumerate(best, 1):
            hit, places = self._described(name, score, set(meant))
            hits.append(hit)
            line = (f"{rank}", f"{score:.3f}", name, _MARKS[hit.right], hit.text, places)
            lines.append((*line, hit.path) if paths else line)
        columns = ("rank", "score", "id", "", "title", "category", *(["path"] if paths else []))
        title = f"products for {query!r}" + (f", encoded as {words!r}" if words != query else "")
        notes = [legend(tree, query, meant)]
        seen = sum(run.splits.get(hit.name) == "train" for hit in hits)
        if meant and seen:
            known = f"the run was trained on {seen:,} of these {len(hits):,}"
            notes.append(f"{known}: what is right among them flatters it")
        return [Found(query, hits, Table.of(title, after, columns, lines), notes)]

    def _described(self, name: str, score: float, meant: set[int]) -> tuple[Hit, str]:
        """Return a hit with title and image, and the texts of its categories."""
        shop = self.catalogue
        if name not in self.rows:
            message = f"the index finds {name!r}, which {shop.name} no longer holds"
            raise DataError(message, "index the products again")
        row = self.rows[name]
        right = shop.is_in(row, meant) if meant else None
        image, read, path = int(shop.picture_rows[row]), None, ""
        if image >= 0:
            read, path = partial(shop.collection.image, image), image_path(shop.collection, image)
        hit = Hit(name, score, shop.titles[row], path, read, right)
        return hit, "; ".join(map(shop.tree.text, shop.places_of(row).tolist()))


def legend(tree: CategoryTree, query: str, meant: list[int]) -> str:
    """Return what the marks mean."""
    if not meant:
        return f"{query!r} is no category of the tree: nothing found is right or wrong"
    texts = [tree.text(node) for node in meant[:_NAMED]]
    more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
    return f"✓ sorted into {' or '.join(texts)}{more}, or below it; ✗ elsewhere; no mark: without a category"
