"""``diptych search`` of an index of products: the run that embedded them, and the products."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.categories.sources import OtherData
from diptych.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from diptych.cli.search import SearchOptions
    from diptych.commerce.category_to_image.searcher import ProductSearcher
    from diptych.index import Index


def product_searcher(index: Index, folder: Path, options: SearchOptions) -> ProductSearcher:
    """Open what an index says it was made of."""
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.searcher import ProductSearcher
    from diptych.encoders.embeddings import check_still_there
    from diptych.index.searcher import OF_PRODUCTS

    if options.model is not None or options.own_terms:
        raise UsageError("--model and --own-terms are of searches for images", "leave them out")
    about = index.about.get(OF_PRODUCTS)
    if about is None:
        fix = "make one: diptych categories index RUN, or leave --category out"
        raise UsageError(f"{folder} is no index of products", fix)
    try:
        given = {key: value for key, value in about["other"].items() if value is not None}
        run, split = Path(about["run"]), about["split"]
    except (KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{folder} does not say which run it is of: {error}", "index again") from None
    other = OtherData.read(given, str(folder), StorageError, "index again")
    check_still_there(str(run), folder)
    opened = CategoryRun.open(run)
    return ProductSearcher(index, opened, other.catalogue(opened, split)[0])
