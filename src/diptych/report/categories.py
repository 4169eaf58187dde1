"""Pages of category-to-image retrieval (thesis chapter 7): an evaluation, and a tree with its images."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.evaluation import EvaluationProtocol, ModelsEvaluation
from diptych.commerce.category_to_image.picking import PICKS, Picks
from diptych.commerce.category_to_image.results import model_name, scores_of, setting_name, short_path
from diptych.commerce.category_to_image.run import CategoryRun, evaluated_products
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.context import track
from diptych.core.errors import DiptychError, MismatchError, UsageError
from diptych.core.table import Cell, Table
from diptych.report.document import Card, Gallery, Headline, Page, Section, Thumbnails, state_of
from diptych.report.style import shorten

TREE_PAGE = "tree.html"
PAGE_IMAGES = 2_500  # on one page at most, about 8 MB of them
IMAGE_SIDE = 112  # longest side of an image of a tree, in pixels
_NAMED = 5  # unreadable images that are named
_FRAMES = "Frames: ✓ a product of the category or below it, ✗ of another category, · without a category."


def page_of(folder: Path) -> tuple[Page, list[str]] | None:
    """Return the page of what ``diptych categories evaluate`` wrote, with images where its products are still there.

    The lines with it say why there are none; of a folder that ``diptych categories`` did not write it is None.
    """
    if CategoryRun.is_at(folder) or (folder / PICKS).is_file():
        fix = f"diptych categories evaluate PRODUCTS --run {folder}, or diptych categories pick, writes pages"
        raise UsageError(f"{folder} is a category model, or its images, and has no page of its own", fix)
    if not EvaluationProtocol.is_at(folder):
        return None
    found = ModelsEvaluation.open(folder)
    try:
        return evaluation_page(found, evaluated_products(found)), []
    except DiptychError as error:
        return evaluation_page(found), [f"no images: {error}"]


def evaluation_page(found: ModelsEvaluation, test: Catalogue | None = None) -> Page:
    """Return the page of an evaluation; with ``test``, its products, it shows their images."""
    if test is not None and test.fingerprint != found.protocol.test:
        problem = f"the evaluation ranked products {found.protocol.test}, these are {test.fingerprint}"
        raise MismatchError(problem, "give the products that were evaluated")
    settings, about, base = found.numbers["settings"], found.about, found.baseline
    headlines = []
    for name, numbers in settings.items():
        best = max(scores_of(numbers), key=lambda line: line["values"]["P@1"]["mean"])
        value = best["values"]["P@1"]
        note = f"{model_name(best['model'])}; chance {100 * value['chance']:.1f} %"
        headlines.append(Headline(f"P@1, {setting_name(name).lower()}", f"{100 * value['mean']:.1f} %", note))
    galleries = [
        Gallery(f"{setting_name(name)}, {word}", cards)
        for name, numbers in settings.items()
        for is_right, word in ((True, "right"), (False, "wrong"))
        if (cards := [_example(one, test) for one in numbers["examples"][base] if one["right"] == is_right])
    ]
    how = f"{base.upper()}, the first seed: the product that came first (→ its own category)."
    sections = [Section(title, blocks) for title, blocks in found.sections().items() if blocks]
    return Page(
        title=f"Images for categories: {shorten(str(about['data']).partition(';')[0], 80)}",
        summary="; ".join(f"{one.label} {one.value} ({one.note})" for one in headlines),
        headlines=headlines,
        sections=[*sections, Section("First products", galleries, how)] if galleries else sections,
        protocol={
            "data": about["data"],
            "encoders": about["encoders"],
            "protocol": found.protocol.line(found.seeds),
            "intervals": "{samples:,} resamples of categories, seed {seed}".format(
                **found.numbers["intervals"]
            ),
            "fingerprint": found.numbers["key"],
            "made with": f"diptych {about['diptych']}",
        },
        notes=[
            *(shorten(note, 300) for note in about["notes"]),
            *(f"left out: {model}: {why}" for model, why in about["left_out"].items()),
        ],
        commands=[about["command"]] if "command" in about else [],
    )


def _example(one: Mapping[str, Any], test: Catalogue | None) -> Card:
    picture, row = None, int(one["row"])
    if test is not None and test.picture_rows[row] >= 0:
        picture = partial(test.collection.image, int(test.picture_rows[row]))
    label, title = short_path(one["category"]), str(one["title"] or one["product"])
    if not one["right"]:
        label += f" → {short_path(one['found'])} ({one['kind']})"
    text = f"{title} · {one['relevant']:,} relevant"
    return Card(str(one["product"]), picture, text, label, state_of(one["right"]), f"{one['score']:.3f}")


def split_tree(tree: CategoryTree, images: np.ndarray, limit: int) -> list[np.ndarray]:
    """Return the nodes that each page shows, in the order of the tree; ``images``: (nodes,) how many each has.

    A branch that is too large for a page is broken below its root; neighbours share a page while they fit.
    """
    before = np.concatenate([[0], np.cumsum(images)])
    # Nodes of a branch stand next to each other.
    end = np.arange(len(tree)) + np.bincount(tree.lineage[tree.lineage >= 0], minlength=len(tree))
    pages: list[np.ndarray] = []
    begin = node = 0
    while node < len(tree):
        fits = before[end[node]] - before[node] <= limit
        after = int(end[node]) if fits else node + 1
        starts_anew = not fits and tree.depth[node] == 1  # a large tree begins its own page
        if node > begin and (starts_anew or before[after] - before[begin] > limit):
            pages.append(np.arange(begin, node))
            begin = node
        node = after
    return [*pages, np.arange(begin, len(tree))]


def write_picks(picks: Picks, folder: Path, side: int | None) -> list[str]:
    """Write ``picks.json``, and with a ``side`` the tree with images of that size; return lines about both."""
    remove_tree_pages(folder)  # they show what was picked before
    file = picks.save(folder)
    unreadable = {} if side is None else write_tree_pages(picks, folder, side=side)[1]
    lines = [f"{name}: {why}" for name, why in list(unreadable.items())[:_NAMED]]
    if len(unreadable) > _NAMED:
        lines.append(f"and {len(unreadable) - _NAMED:,} more images that cannot be read")
    return [*lines, f"{len(picks.products):,} images for {len(picks.texts):,} categories in {file}"]


def remove_tree_pages(folder: Path) -> None:
    for old in [folder / TREE_PAGE, *folder.glob("tree-[0-9][0-9][0-9]*.html")]:
        old.unlink(missing_ok=True)


def write_tree_pages(
    picks: Picks, folder: Path, *, side: int = IMAGE_SIDE, page_images: int = PAGE_IMAGES
) -> tuple[Path, dict[str, str]]:
    """Write ``tree.html`` into ``folder``, and of a large tree the pages that it leads to, ``tree-001.html`` and on.

    Each page is whole, ``tree.html`` the last; older ones go before. Return it, and images that could not be read.
    """
    tree, unreadable = picks.catalogue.tree, dict[str, str]()
    remove_tree_pages(folder)
    pages = split_tree(tree, np.diff(picks.start), page_images)
    names = [f"tree-{number:03d}.html" for number in range(1, len(pages) + 1)]

    def write(page: Page, name: str) -> Path:
        thumbnails = Thumbnails()
        page.save(folder / name, thumbnails)
        unreadable.update(thumbnails.unreadable)
        return folder / name

    if len(pages) <= 1:
        return write(_front(picks, [], _branches(picks, pages[0], side)), TREE_PAGE), unreadable
    for number, nodes in enumerate(track(pages, "pages")):
        links = [("all categories", TREE_PAGE)]
        links += [("page before", name) for name in names[max(0, number - 1) : number]]
        links += [("next page", name) for name in names[number + 1 : number + 2]]
        sections = _branches(picks, nodes, side)
        write(Page(_span(tree, nodes), _FRAMES, sections=sections, links=links), names[number])
    return write(_front(picks, _contents(picks, names, pages), []), TREE_PAGE), unreadable


def _front(picks: Picks, contents: list[Table], sections: list[Section]) -> Page:
    """Return the first or only page: what was picked and how, and before it what should be known."""
    counts, name = picks.counts(), picks.catalogue.name
    warnings = [f"{text[0].upper()}{text[1:]}." for text in picks.warnings()]
    facts = {
        "products": picks.catalogue.describe(),
        "model": str(picks.about.get("model", "")),
        "images for each": f"{picks.k:,} of {picks.among}",
        "never twice": ", ".join(["one image", *(f"one {name}" for name in picks.distinct)]),
        **{name: f"{value:,}" for name, value in counts.items() if value},
    }
    text = " ".join([*warnings, _FRAMES])
    return Page(
        title=f"{name}: images for {counts['categories']:,} categories",
        summary=f"{counts['pictures']:,} images for {counts['categories']:,} categories, "
        f"{counts['of the category']:,} show a product of their category.",
        sections=[Section("Overview", [*contents, *picks.tables()], text, id="overview"), *sections],
        protocol=facts,
    )


def _contents(picks: Picks, names: Sequence[str], pages: Sequence[np.ndarray]) -> list[Table]:
    tree, right = picks.catalogue.tree, picks.right
    rows = []
    for name, nodes in zip(names, pages, strict=True):
        here = right[picks.start[nodes[0]] : picks.start[nodes[-1] + 1]]
        values = [len(nodes), len(here), (here == 1).sum(), (here == 0).sum()]
        rows.append([Cell(_span(tree, nodes), link=name), *(Cell.number(value, 0) for value in values)])
    roots = [
        [Cell(tree.text(node), link=f"{name}#c{node}")]
        for name, nodes in zip(names, pages, strict=True)
        for node in nodes[tree.depth[nodes] == 1].tolist()
    ]
    columns = ("page", "categories", "images", "✓", "✗")
    return [Table("Pages", columns, rows), Table("Most general categories", ("category",), roots)]


def _span(tree: CategoryTree, nodes: np.ndarray) -> str:
    """Return the title of a page: its category, or the first and the last of those at its top."""
    top = nodes[tree.depth[nodes] == tree.depth[nodes].min()]
    return " – ".join(short_path(tree.paths[node]) for node in dict.fromkeys((int(top[0]), int(top[-1]))))


def _branches(picks: Picks, nodes: np.ndarray, side: int) -> list[Section]:
    """Return a section per most general category; one continued from another page opens with its path."""
    tree, sections = picks.catalogue.tree, []
    for root, group in groupby(nodes.tolist(), lambda node: int(tree.root[node])):
        galleries = [_gallery(picks, node, side) for node in group]
        sections.append(Section(tree.paths[root][-1], galleries, id=f"branch-{root}"))
    return sections


def _gallery(picks: Picks, node: int, side: int) -> Gallery:
    """Return the images of one category, below how many products it has; inside its section a root needs no name."""
    tree, path = picks.catalogue.tree, picks.catalogue.tree.paths[node]
    begin, end, there = int(picks.start[node]), int(picks.start[node + 1]), int(picks.there[node])
    right, query, shown = picks.right[begin:end], picks.texts[node], end - begin
    judged = f": {(right == 1).sum()} ✓ {(right == 0).sum()} ✗" if (right >= 0).any() else ""
    most = f", so at most {there:,} can be right" if 0 < there < shown else ""
    facts = [
        short_path(path[:-1]),
        tree.codes.get(path) or "",
        f"query “{query}”" if query != path[-1] else "",
        f"{shown:,} images{judged}",
        f"{there:,} products with an image are sorted here{most}",
    ]
    shop, cards = picks.catalogue, []
    for product, is_right, score in zip(
        picks.products[begin:end].tolist(), right.tolist(), picks.scores[begin:end], strict=True
    ):
        own = "; ".join(map(tree.text, shop.places_of(product).tolist())) or "no category of its own"
        text = " · ".join(fact for fact in (shop.titles[product], own, shop.ids[product]) if fact)
        picture = partial(shop.collection.image, int(shop.picture_rows[product]))
        state = state_of(None if is_right < 0 else is_right == 1)
        cards.append(Card(str(shop.ids[product]), picture, text, state=state, score=f"{score:.2f}"))
    return Gallery(
        "" if len(path) == 1 else path[-1],
        cards,
        text=" · ".join(fact for fact in facts if fact),
        anchor=f"c{node}",
        level=max(3, len(path) + 1),
        side=side,
    )
