"""Products per category, counted one by one."""

from __future__ import annotations

from pathlib import Path

from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue.catalogue import products_per_category


def test_each_product_counts_once_in_every_category_above_it(tmp_path: Path) -> None:
    catalogue = tiny_catalogue(tmp_path)
    itself, below = products_per_category(catalogue)
    for node, path in enumerate(catalogue.tree.paths):
        places = [
            [catalogue.tree.paths[place] for place in catalogue.places_of(product)]
            for product in range(len(catalogue))
        ]
        assert itself[node] == sum(path in own for own in places)
        assert below[node] == sum(any(one[: len(path)] == path for one in own) for own in places)
