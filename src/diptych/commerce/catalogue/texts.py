"""What stands for a category where words are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from diptych.core.errors import UsageError
from diptych.data.taxonomy import CategoryTree

CategoryText = Literal["name", "path"]
"""``name``: the category's own name, as published; ``path``: all names from the root on, which tells apart the
categories of one name."""


def category_texts(tree: CategoryTree, nodes: Iterable[int], form: CategoryText = "name") -> list[str]:
    """The text of each node: ``"Dresses"`` or ``"Women > Clothing > Dresses"``."""
    if form not in ("name", "path"):
        raise UsageError(f"a category's text cannot be its {form!r}", "one of name, path")
    return [tree.text(int(node)) if form == "path" else tree.paths[int(node)][-1] for node in nodes]
