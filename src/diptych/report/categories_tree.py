"""The contact sheet of a category tree: every category with the pictures that were picked for it.

One page that holds everything it shows; of a large tree several, with a page before them that leads there. A picture
is on a page once, however many categories show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.context import task
from diptych.core.files import write_bytes
from diptych.data.taxonomy import SEPARATOR, CategoryTree
from diptych.report.page import DARK, LIGHT, judgement, shorten, templates
from diptych.report.pictures import Thumbnail, Thumbnails

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.picking import Picks


def pages_of(tree: CategoryTree, nodes: np.ndarray, pictures: np.ndarray, limit: int) -> list[np.ndarray]:
    """Places in ``nodes`` of what each page shows, in the order of the tree.

    A branch that is too large for a page is broken below its root; neighbours share a page while they fit.

    Args:
        nodes: (q,) int64 nodes, ascending, each once.
        pictures: (q,) how many pictures each has.
    """
    before = np.concatenate([[0], np.cumsum(pictures)])
    end = _ends(tree, nodes)
    pages: list[np.ndarray] = []
    begin = place = 0
    while place < len(nodes):
        fits = before[end[place]] - before[place] <= limit
        after = int(end[place]) if fits else place + 1
        starts_anew = not fits and tree.depth[nodes[place]] == 1  # a large tree begins its own page
        if place > begin and (starts_anew or before[after] - before[begin] > limit):
            pages.append(np.arange(begin, place))
            begin = place
        place = after
    if begin < len(nodes):
        pages.append(np.arange(begin, len(nodes)))
    return pages


def _ends(tree: CategoryTree, nodes: np.ndarray) -> np.ndarray:
    """(q,) int64: the place behind the last of each node's branch; nodes of a branch stand next to each other."""
    end = np.arange(1, len(nodes) + 1)
    open_places: list[int] = []
    for place, node in enumerate(nodes.tolist()):
        while open_places and nodes[open_places[-1]] not in tree.ancestors(node):
            end[open_places.pop()] = place
        open_places.append(place)
    end[open_places] = len(nodes)
    return end


TREE_PAGE = "tree.html"

PAGE_PICTURES = 2_500
"""Pictures on one page at most, about 8 MB of them."""

THUMBNAIL_SIDE = 112
"""Longest side of a picture in pixels."""

_TITLE = 160
_JUDGED = {1: True, 0: False, -1: None}
_MARKS = {"right": "✓", "wrong": "✗", "unknown": "·"}


@dataclass(frozen=True)
class _Picture:
    """One picture of a category: what is shown, and ``place``, which of the page's pictures it is, None for one that
    cannot be read."""

    place: int | None
    name: str
    state: str
    mark: str
    score: str
    said: str


@dataclass(frozen=True)
class _Category:
    """One category on a page."""

    node: int
    depth: int
    name: str
    above: str
    asked: str
    code: str
    pictures: Sequence[_Picture]
    right: int
    wrong: int
    there: int
    href: str = ""


class _Drawer:
    """Makes categories for one page, whose pictures it collects."""

    def __init__(self, picks: Picks, thumbnails: Thumbnails, advance: Callable[[], None]) -> None:
        self.picks, self.thumbnails, self.advance = picks, thumbnails, advance
        self.shown: list[Thumbnail] = []
        self.known: dict[int, int | None] = {}

    def category(self, place: int, href: str = "") -> _Category:
        """What the page shows of a category; one with an ``href`` is shown a second time."""
        picks, tree = self.picks, self.picks.catalogue.tree
        node = int(picks.nodes[place])
        path = tree.paths[node]
        found = range(int(picks.start[place]), int(picks.start[place + 1]))
        right = picks.right[found.start : found.stop]
        if not href:
            self.advance()
        return _Category(
            node=node,
            depth=len(path),
            name=path[-1],
            above=SEPARATOR.join(path[:-1]),
            asked=picks.texts[place] if picks.texts[place] != path[-1] else "",
            code=tree.codes.get(path) or "",
            pictures=[self._picture(at) for at in found],
            right=int((right == 1).sum()),
            wrong=int((right == 0).sum()),
            there=int(picks.there[place]),
            href=href,
        )

    def _picture(self, at: int) -> _Picture:
        picks, catalogue = self.picks, self.picks.catalogue
        product = int(picks.products[at])
        row = int(catalogue.picture_rows[product])
        source_row = int(catalogue.collection.source_rows[row])
        name = str(catalogue.ids[product])
        if source_row not in self.known:
            made = self.thumbnails.make(partial(catalogue.collection.image, row), name)
            self.known[source_row] = None if made is None else len(self.shown)
            if made is not None:
                self.shown.append(made)
        state = judgement(_JUDGED[int(picks.right[at])])
        own = "; ".join(catalogue.tree.text(int(node)) for node in catalogue.places_of(product))
        said = [shorten(catalogue.titles[product], _TITLE), own or "no category of its own", name]
        return _Picture(
            place=self.known[source_row],
            name=name,
            state=state,
            mark=_MARKS[state],
            score=f"{picks.scores[at]:.2f}",
            said="\n".join(one for one in said if one),
        )


def remove_tree_sheet(folder: Path | str) -> None:
    """Remove the pages that an older sheet has in ``folder``, the first one first."""
    folder = Path(folder)
    for old in [folder / TREE_PAGE, *folder.glob("tree-[0-9][0-9][0-9]*.html")]:
        old.unlink(missing_ok=True)


def write_tree_sheet(
    picks: Picks,
    folder: Path | str,
    *,
    title: str | None = None,
    side: int = THUMBNAIL_SIDE,
    page_pictures: int = PAGE_PICTURES,
) -> tuple[Path, dict[str, str]]:
    """Write ``tree.html`` into ``folder``, and of a large tree the pages that it leads to, ``tree-001.html`` and on.

    Each page is written whole or not at all, ``tree.html`` last; pages of an older, larger sheet are removed before.

    Args:
        side: longest side of a picture in pixels.
    """
    folder = Path(folder)
    remove_tree_sheet(folder)
    tree, order = picks.catalogue.tree, np.argsort(picks.nodes, kind="stable")
    counts = np.diff(picks.start)[order]
    pages = [order[page] for page in pages_of(tree, picks.nodes[order], counts, page_pictures)]
    title = title or f"{picks.catalogue.name}: pictures for {len(picks):,} categories"
    unreadable: dict[str, str] = {}
    with task("pages", len(picks), "categories") as bar:

        def write(name: str, places: Sequence[tuple[int, str]], **said: Any) -> None:
            drawer = _Drawer(picks, Thumbnails(side), bar.advance)
            categories = [drawer.category(place, href) for place, href in places]
            page = (
                templates()
                .get_template("categories_tree.html.j2")
                .render(
                    title=title,
                    categories=categories,
                    pictures=drawer.shown,
                    side=side,
                    light=LIGHT,
                    dark=DARK,
                    notes=[note] if (note := drawer.thumbnails.note()) else [],
                    **said,
                )
            )
            write_bytes(folder / name, page.encode("utf-8", "replace"))
            unreadable.update(drawer.thumbnails.unreadable)

        facts = _facts(picks)
        if len(pages) <= 1:
            write(TREE_PAGE, [(int(place), "") for place in order], facts=facts, parts=[], back="", part="")
            return folder / TREE_PAGE, unreadable
        names = [f"tree-{number:03d}.html" for number in range(1, len(pages) + 1)]
        parts = []
        for number, (name, page) in enumerate(zip(names, pages, strict=True)):
            part = _part(picks, page)
            parts.append({"href": name, "name": part, **_sums(picks, page)})
            before, after = (
                names[number - 1] if number else "",
                names[number + 1] if name != names[-1] else "",
            )
            said = {"facts": {}, "parts": [], "back": TREE_PAGE, "before": before, "after": after}
            write(name, [(int(place), "") for place in page], part=part, **said)
        heads = [
            (int(place), f"{name}#c{picks.nodes[place]}")
            for name, page in zip(names, pages, strict=True)
            for place in page
            if tree.depth[picks.nodes[place]] == 1
        ]
        few = (
            heads
            if sum(int(picks.start[place + 1] - picks.start[place]) for place, _ in heads) <= page_pictures
            else []
        )
        write(TREE_PAGE, few, facts=facts, parts=parts, back="", part="")
    return folder / TREE_PAGE, unreadable


def _part(picks: Picks, page: np.ndarray) -> str:
    """What a page is called: its category, or the first and the last of those at its top."""
    tree = picks.catalogue.tree
    depth = tree.depth[picks.nodes[page]]
    top = page[depth == depth.min()]
    first, last = (tree.text(int(picks.nodes[place])) for place in (top[0], top[-1]))
    return first if first == last else f"{first} – {last}"


def _sums(picks: Picks, page: np.ndarray) -> dict[str, int]:
    starts = [(int(picks.start[place]), int(picks.start[place + 1])) for place in page]
    return {
        "categories": len(page),
        "pictures": sum(end - begin for begin, end in starts),
        "right": sum(int((picks.right[begin:end] == 1).sum()) for begin, end in starts),
        "wrong": sum(int((picks.right[begin:end] == 0).sum()) for begin, end in starts),
    }


def _facts(picks: Picks) -> dict[str, str]:
    """Name and value of what was picked and how."""
    ranker = picks.about.get("ranker", {})
    said = {
        "products": picks.catalogue.describe(),
        "model": str(picks.about.get("model") or ranker.get("name") or ranker.get("model") or ""),
        "pictures for each": f"{picks.k:,} of "
        + ("all products" if picks.among == "all" else "the products sorted into it or below it"),
        "never twice": ", ".join(["one picture", *(f"one {name}" for name in picks.distinct)]),
    }
    if seen := picks.about.get("trained_on"):
        said["trained on"] = f"{seen:,} of these products: what is right among them flatters the model"
    counts = {name: f"{value:,}" for name, value in picks.counts().items() if value}
    return {**{name: value for name, value in said.items() if value}, **counts}
