"""Products at random: a draw that belongs to the product's id."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.splits.declaration import SPLITS, SplitKind, SplitOptions
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError
from diptych.core.progress import track

__all__ = ["PRODUCT"]

_PURPOSE = "split of a product"


def _assign(catalogue: Catalogue, options: SplitOptions) -> tuple[list[str], tuple[str, ...]]:
    """A product stays where it is when others come or go, since its draw is its own."""
    names = list(options.shares)
    edges = np.cumsum(list(options.shares.values()))
    draws = draw_uniform(options.seed, int(keys_of([_PURPOSE])[0]), keys_of(_keys(catalogue, options)))
    which = np.minimum(np.searchsorted(edges, draws, side="right"), len(names) - 1)
    sizes = np.bincount(which, minlength=len(names))
    empty = [name for name, size in zip(names, sizes, strict=True) if not size and options.shares[name]]
    if empty:
        raise DataError(
            f"{catalogue.name}: no product fell to {', '.join(empty)} of {len(catalogue):,}",
            "give it a larger share, another seed, or more products",
        )
    shares = ", ".join(f"{name} {share:g}" for name, share in options.shares.items())
    together = {
        "none": "",
        "title": ", one title in one split",
        "title-picture": ", one title and picture in one",
    }
    note = f"split by product, seed {options.seed}: {shares}{together[options.together]}"
    return [names[one] for one in which.tolist()], (note,)


def _keys(catalogue: Catalogue, options: SplitOptions) -> list[str]:
    """What a product's draw belongs to: its id, or its title (and its picture's bytes) where it has one."""
    if options.together == "none":
        return list(catalogue.ids)
    if options.together == "title":
        pairs = zip(catalogue.ids, catalogue.titles, strict=True)
        return [f"title\0{title}" if title else one for one, title in pairs]
    keys = []
    collection = catalogue.collection
    for row in track(range(len(catalogue)), "reading pictures", unit="products"):
        title, picture = catalogue.titles[row], int(catalogue.picture_rows[row])
        if not title or picture < 0:
            keys.append(catalogue.ids[row])
            continue
        content = collection.source.content(int(collection.source_rows[picture]))
        keys.append(f"title\0{title}\0{content}")
    return keys


PRODUCT = SPLITS.add(
    SplitKind(
        name="product",
        description="products at random; those of one title, or one title and picture, in one split if asked",
        takes=frozenset({"shares", "seed", "together"}),
        assign=_assign,
    )
)
