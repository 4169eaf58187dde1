"""Which products show something else each: against a slow loop, and in time that does not grow with duplicates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.commerce.category_to_image.picking import DISTINCT, Distinguisher
from diptych.core.errors import UsageError


class Files:
    """Contents of pictures, counted as they are read."""

    def __init__(self, contents: list[str]) -> None:
        self.contents, self.read = contents, 0

    def content(self, row: int) -> str:
        self.read += 1
        return self.contents[row]


def shop(pictures: list[int], titles: list[str], contents: list[str]) -> Any:
    """A catalogue as far as it is looked at."""
    collection = SimpleNamespace(source_rows=np.array(pictures), source=Files(contents))
    return SimpleNamespace(collection=collection, picture_rows=np.arange(len(pictures)), titles=titles)


def slowly(catalogue: Any, by: tuple[str, ...], products: list[int], k: int) -> list[int]:
    seen: set[object] = set()
    kept = []
    for place, product in enumerate(products):
        if product == -1 or len(kept) == k:
            break
        if product == -2:
            continue
        picture, title = int(catalogue.collection.source_rows[product]), catalogue.titles[product].casefold()
        keys: set[object] = {("picture", picture)}
        if "content" in by:
            keys.add(("content", catalogue.collection.source.contents[picture]))
        if "title" in by and title:
            keys.add(("title", title))
        if not keys & seen:
            seen |= keys
            kept.append(place)
    return kept


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.integers(1, 40), k=st.integers(1, 9))
def test_agrees_with_a_slow_loop(data: st.DataObject, size: int, k: int) -> None:
    numbers = st.integers(0, 5)
    pictures = data.draw(st.lists(numbers, min_size=size, max_size=size))
    titles = data.draw(st.lists(st.sampled_from(["", "A", "a", "b", "c"]), min_size=size, max_size=size))
    contents = data.draw(st.lists(st.sampled_from("xyz"), min_size=6, max_size=6))
    by = tuple(one for one in DISTINCT if data.draw(st.booleans()))
    products = data.draw(st.lists(st.integers(-2, size - 1), max_size=60))
    catalogue = shop(pictures, titles, contents)
    found = Distinguisher(catalogue, by).first(np.array(products, dtype=np.int64), k)
    assert found == slowly(catalogue, by, products, k)


def test_a_file_is_read_once_and_only_where_it_has_to_be() -> None:
    catalogue = shop([0, 0, 1, 1, 2], ["", "", "", "", ""], ["x", "y", "z"])
    files = catalogue.collection.source
    tell = Distinguisher(catalogue, ("content",))
    assert tell.first(np.array([0, 2, 4]), 2) == [0, 1]
    assert tell.first(np.array([3, 2, 1, 0]), 3) == [0, 2]
    assert files.read == 2
    Distinguisher(catalogue).first(np.arange(5), 5)
    assert files.read == 2


def test_something_else_to_be_distinct_by() -> None:
    with pytest.raises(UsageError, match="distinct by 'colour'"):
        Distinguisher(shop([0], ["a"], ["x"]), ("colour",))  # type: ignore[arg-type]
