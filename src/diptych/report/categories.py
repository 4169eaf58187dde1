"""Pages of category-to-image retrieval (thesis chapter 7): an evaluation, and a tree with its images."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.category_to_image.picking import PICKS
from diptych.commerce.category_to_image.results import EvaluationProtocol, ModelsEvaluation
from diptych.commerce.category_to_image.tables import (
    LEVEL_MEASURES,
    pick_tables,
    pick_warnings,
    setting_name,
    short_path,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.context import track
from diptych.core.errors import DiptychError, MismatchError, UsageError
from diptych.core.table import Cell, Table
from diptych.report.document import Card, Gallery, Headline, Page, Section, Thumbnails, state_of
from diptych.report.style import shorten

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.picking import Picks

TREE_PAGE = "tree.html"

PAGE_IMAGES = 2_500  # on one page at most, about 8 MB of them
IMAGE_SIDE = 112  # longest side of an image of a tree, in pixels

_NAMED = 5  # unreadable images that are named

_FRAMES = "Frames: ✓ a product of the category or below it, ✗ of another category, · without a category."
_JUDGED = {1: True, 0: False, -1: None}


def page_of(folder: Path) -> tuple[Page, list[str]] | None:
    """Return the page of what ``diptych categories evaluate`` wrote, with images where its products are still there.

    The lines with it say why there are none; of a folder that ``diptych categories`` did not write it is None.
    """
    from diptych.commerce.category_to_image.application import evaluated_products

    if (folder / "category_run.json").is_file():
        fix = f"measure it: diptych categories evaluate PRODUCTS --run {folder} --out EVALUATION"
        raise UsageError(f"{folder} is a model of categories, which has no page before it is measured", fix)
    if (folder / PICKS).is_file():
        page = folder / TREE_PAGE
        fix = f"their page is {page}" if page.is_file() else "repeat the diptych categories pick"
        raise UsageError(f"{folder} holds images for categories", fix)
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
    settings, about, how = found.numbers["settings"], found.about, found.numbers["intervals"]
    headlines = []
    for name, numbers in settings.items():
        models, value = _best(numbers, "P@1")
        note = f"{models}; chance {100 * value['chance']:.1f} %"
        headlines.append(Headline(f"P@1, {setting_name(name).lower()}", f"{100 * value['mean']:.1f} %", note))
    how_read = (
        f"{found.baseline.upper()}, the first seed: the product that came first (→ its own category). "
        "Right ones have the highest scores of each tree, wrong ones of each kind of error."
    )
    sections = [Section(title, blocks) for title, blocks in found.sections().items()]
    sections.append(Section("First products", list(_examples(found, test)), how_read))
    resamples = f"{how['samples']:,} resamples of categories, seed {how['seed']}"
    # The setting that shops use, or the last that there is.
    shown = "most-specific" if "most-specific" in settings else found.settings[-1]
    models, value = _best(settings[shown], LEVEL_MEASURES[0])
    rank = f", the best of {len(found.models)}" if len(found.models) > 1 else ""
    return Page(
        title=f"Images for categories: {shorten(str(about['data']).partition(';')[0], 80)}",
        summary=f"{setting_name(shown)}: {LEVEL_MEASURES[0]} {100 * value['mean']:.1f} % by {models}{rank};"
        f" chance is {100 * value['chance']:.1f} %.",
        headlines=headlines,
        sections=[section for section in sections if section.blocks],
        protocol={
            "data": str(about["data"]),
            "encoders": str(about["encoders"]),
            "protocol": found.protocol.line(found.seeds),
            "intervals": f"{100 * how['confidence']:g} %, {resamples}" if how["samples"] else "none",
            "fingerprint": found.protocol.key,
            "made with": f"diptych {about['diptych']}",
        },
        notes=[
            *(shorten(note, 300) for note in about["notes"]),
            *(f"left out: {model}: {why}" for model, why in about["left_out"].items()),
        ],
        commands=[_command(found)],
    )


def _best(numbers: Mapping[str, Any], measure: str) -> tuple[str, Mapping[str, Any]]:
    """Return the models with the highest value, and the value."""
    most = max(row["values"][measure]["mean"] for row in numbers["table"])
    best = [row for row in numbers["table"] if row["values"][measure]["mean"] == most]
    return " and ".join(row["label"] for row in best), best[0]["values"][measure]


def _examples(found: ModelsEvaluation, test: Catalogue | None) -> Iterator[Gallery]:
    for name, numbers in found.numbers["settings"].items():
        for is_right, words in ((True, "right"), (False, "wrong")):
            shown = [one for one in numbers["examples"][found.baseline] if one["right"] == is_right]
            if cards := [_example(one, test) for one in shown]:
                yield Gallery(f"{setting_name(name)}, {words}", cards)


def _example(one: Mapping[str, Any], test: Catalogue | None) -> Card:
    picture, row = None, int(one["row"])
    if test is not None and test.picture_rows[row] >= 0:
        picture = partial(test.collection.image, int(test.picture_rows[row]))
    label, title = short_path(one["category"]), str(one["title"] or one["product"])
    if not one["right"]:
        label += f" → {short_path(one['found'])} ({one['kind']})"
    text = f"{title} · {one['relevant']:,} relevant"
    return Card(str(one["product"]), picture, text, label, state_of(one["right"]), f"{one['score']:.3f}")


def _command(found: ModelsEvaluation) -> str:
    """Return the command that repeats the evaluation."""
    protocol = found.protocol
    words = ["diptych", "categories", "evaluate", "DATA", "--out", "EVALUATION"]
    if protocol.given:
        words += ["--run", "RUN"]
    else:
        words += ["--model", ",".join(found.models), "--seeds", str(len(found.seeds))]
        words += ["--query", protocol.query] + (["--published"] if protocol.published else [])
    words += ["--setting", ",".join(found.settings), "--relevance", protocol.relevance]
    for name, value in found.about.get("encoder options", ()):
        words += [f"--{name.replace(' ', '-')}" + ("" if "option" in name else "-encoder"), str(value)]
    return shlex.join(words)


def split_tree(tree: CategoryTree, images: np.ndarray, limit: int) -> list[np.ndarray]:
    """Return the nodes that each page shows, in the order of the tree.

    A branch that is too large for a page is broken below its root; neighbours share a page while they fit.

    Args:
        images: (nodes,) how many images each has.
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


def remove_tree_pages(folder: Path | str) -> None:
    """Remove the pages of a tree from ``folder``, the first one first."""
    folder = Path(folder)
    for old in [folder / TREE_PAGE, *folder.glob("tree-[0-9][0-9][0-9]*.html")]:
        old.unlink(missing_ok=True)


def write_tree_pages(
    picks: Picks, folder: Path | str, *, side: int = IMAGE_SIDE, page_images: int = PAGE_IMAGES
) -> tuple[Path, dict[str, str]]:
    """Write ``tree.html`` into ``folder``, and of a large tree the pages that it leads to, ``tree-001.html`` and on.

    Each page is written whole or not at all, ``tree.html`` last; pages of an older, larger tree are removed before.

    Args:
        side: longest side of an image in pixels; below 200 a page holds each image once.

    Returns:
        The first page; why images could not be read, by product.
    """
    folder, tree = Path(folder), picks.catalogue.tree
    remove_tree_pages(folder)
    pages = split_tree(tree, np.diff(picks.start), page_images)
    names = [f"tree-{number:03d}.html" for number in range(1, len(pages) + 1)]
    unreadable: dict[str, str] = {}

    def write(page: Page, name: str) -> Path:
        thumbnails = Thumbnails()
        page.save(folder / name, thumbnails)
        unreadable.update(thumbnails.unreadable)
        return folder / name

    if len(pages) <= 1:
        return write(_tree_front(picks, [], _branches(picks, pages[0], side)), TREE_PAGE), unreadable
    for number, nodes in enumerate(track(pages, "pages")):
        links = [("all categories", TREE_PAGE)]
        links += [("page before", name) for name in names[max(0, number - 1) : number]]
        links += [("next page", name) for name in names[number + 1 : number + 2]]
        sections = _branches(picks, nodes, side)
        write(Page(_span(tree, nodes), _FRAMES, sections=sections, links=links), names[number])
    roots = np.flatnonzero(tree.depth == 1)
    heads = [_gallery(picks, node, side) for node in roots.tolist()]
    few = len(heads) * picks.k <= page_images
    sections = [Section("Most general categories", heads)] if few else []
    return write(_tree_front(picks, _contents(picks, names, pages), sections), TREE_PAGE), unreadable


def _tree_front(picks: Picks, contents: list[Table], sections: list[Section]) -> Page:
    """Return the first or only page: what was picked and how, and before it what should be known."""
    ranker, counts = picks.about.get("ranker", {}), picks.counts()
    right, wrong = counts["of the category"], counts["of another category"]
    share = f"; {right / (right + wrong):.0%} show a product of their category" if right + wrong else ""
    warnings = [f"{text[0].upper()}{text[1:]}." for text in pick_warnings(picks.about, picks.among)]
    among = "all products" if picks.among == "all" else "the products sorted into it or below it"
    facts = {
        "products": picks.catalogue.describe(),
        "model": str(picks.about.get("model") or ranker.get("name") or ranker.get("model") or ""),
        "images for each": f"{picks.k:,} of {among}",
        "never twice": ", ".join(["one image", *(f"one {name}" for name in picks.distinct)]),
        **{name: f"{value:,}" for name, value in counts.items() if value},
    }
    blocks = [*contents, *pick_tables(picks)]
    return Page(
        title=f"{picks.catalogue.name}: images for {counts['categories']:,} categories",
        summary=f"{counts['pictures']:,} images for {counts['categories']:,} categories{share}.",
        sections=[Section("Overview", blocks, " ".join([*warnings, _FRAMES]), id="overview"), *sections],
        protocol={name: value for name, value in facts.items() if value},
    )


def _contents(picks: Picks, names: Sequence[str], pages: Sequence[np.ndarray]) -> list[Table]:
    """Return tables of the pages and of the most general categories, with links."""
    columns, tree, each = (
        ("categories", "images", "✓", "✗"),
        picks.catalogue.tree,
        [*zip(names, pages, strict=True)],
    )
    rows = [[Cell(_span(tree, nodes), link=name), *_sums(picks, nodes)] for name, nodes in each]
    roots = [
        [Cell(tree.text(node), link=f"{name}#c{node}"), *_sums(picks, np.array([node]))[1:]]
        for name, nodes in each
        for node in nodes[tree.depth[nodes] == 1].tolist()
    ]
    return [
        Table("Pages", ("page", *columns), rows),
        Table("Most general categories", ("category", *columns[1:]), roots),
    ]


def _sums(picks: Picks, nodes: np.ndarray) -> list[Cell]:
    right = np.concatenate([picks.right[picks.start[node] : picks.start[node + 1]] for node in nodes])
    values = [len(nodes), len(right), int((right == 1).sum()), int((right == 0).sum())]
    return [Cell.number(value, 0) for value in values]


def _span(tree: CategoryTree, nodes: np.ndarray) -> str:
    """Return the title of a page: its category, or the first and the last of those at its top."""
    top = nodes[tree.depth[nodes] == tree.depth[nodes].min()]
    return " – ".join(short_path(tree.paths[node]) for node in dict.fromkeys((int(top[0]), int(top[-1]))))


def _branches(picks: Picks, nodes: np.ndarray, side: int) -> list[Section]:
    """Return a section per most general category; one that goes on from another page opens with its path."""
    tree = picks.catalogue.tree
    sections = []
    for root, group in groupby(nodes.tolist(), lambda node: int(tree.root[node])):
        mine = list(group)
        galleries = [_gallery(picks, node, side, is_inside=True) for node in mine]
        sections.append(Section(short_path(tree.paths[mine[0]]), galleries, id=f"branch-{root}"))
    return sections


def _gallery(picks: Picks, node: int, side: int, is_inside: bool = False) -> Gallery:
    """Return the images of one category, below how many products it has; inside its section a root needs no name."""
    tree, path = picks.catalogue.tree, picks.catalogue.tree.paths[node]
    span = range(int(picks.start[node]), int(picks.start[node + 1]))
    right, there, query = picks.right[span.start : span.stop], int(picks.there[node]), picks.texts[node]
    shown = f"{len(span):,} {'image' if len(span) == 1 else 'images'}" if span else "no image"
    if (right >= 0).any():
        shown += f": {int((right == 1).sum())} ✓ {int((right == 0).sum())} ✗"
    products = "product with an image is" if there == 1 else "products with an image are"
    sorted_in = f"{there:,} {products} sorted here"
    if 0 < there < len(span):
        sorted_in += f", so at most {there:,} can be right"
    by = f"query “{query}”" if query != path[-1] else ""
    facts = [short_path(path[:-1]), tree.codes.get(path) or "", by, shown, sorted_in]
    return Gallery(
        "" if is_inside and len(path) == 1 else path[-1],
        [_card(picks, at) for at in span],
        text=" · ".join(fact for fact in facts if fact),
        anchor=f"c{node}",
        level=max(3, len(path) + 1),
        side=side,
    )


def _card(picks: Picks, at: int) -> Card:
    catalogue, product = picks.catalogue, int(picks.products[at])
    own = "; ".join(catalogue.tree.text(int(node)) for node in catalogue.places_of(product))
    facts = [catalogue.titles[product], own or "no category of its own", str(catalogue.ids[product])]
    return Card(
        str(catalogue.ids[product]),
        partial(catalogue.collection.image, int(catalogue.picture_rows[product])),
        " · ".join(fact for fact in facts if fact),
        state=state_of(_JUDGED[int(picks.right[at])]),
        score=f"{picks.scores[at]:.2f}",
    )
