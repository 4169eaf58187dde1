"""Category-to-image: one small shop through train, evaluate, pick and fill."""

from __future__ import annotations

from typing import Any

from pins import adapters
from pins.adapters import diptych
from pins.numbers import text_digest
from pins.registry import pin
from pins.world import CATEGORIES, World


@pin("categories.train", fast=True)
def train(world: World) -> Any:
    """The epochs of the default model, and of one with other choices."""
    other = world.folder / "category-run-other"
    choices = ("--published", "--model=clip-ta", "--setting=most-general", "--query=path", "--seed=3")
    more = ("--set=tree_distance=0.1", "--set=attributes=attention", "--split-by=product")
    diptych("categories", "train", str(world.shop), *CATEGORIES, *choices, *more, f"--out={other}")
    return {
        "default": adapters.epochs_of(world.category_run),
        "other": adapters.epochs_of(other),
    }


@pin("categories.pick", fast=True)
def pick(world: World) -> Any:
    """The pictures of every category, with scores."""
    found = {}
    for among in ("all", "members"):
        out = world.folder / f"picks-{among}"
        given = ("-k", "3", "--beyond", "--no-sheet", f"--among={among}", f"--out={out}")
        diptych("categories", "pick", str(world.category_run), *given)
        found[among] = adapters.picks_of(out)
    return found


@pin("categories.fill", fast=True)
def fill(world: World) -> Any:
    """Suggested categories and their confidence, for products without one and for all."""
    found = {}
    for name, given in {"missing": (), "check": ("--check", "--threshold=0.2", "--candidates=all")}.items():
        out = world.folder / f"filled-{name}.jsonl"
        diptych("categories", "fill", str(world.category_run), *given, f"--out={out}")
        lines = adapters.filled(out)
        text = "\n".join(map(repr, lines))
        found[name] = {"products": len(lines), "first": lines[:4], "all": text_digest(text)}
    return found


@pin("categories.search", fast=True)
def search(world: World) -> Any:
    """Products found by the name of a category."""
    out = world.folder / "category-index"
    diptych("categories", "index", str(world.category_run), f"--out={out}")
    return adapters.printed_hits(diptych("search", str(out), "Garden", "-k", "8"))


@pin("categories.evaluate")
def evaluate(world: World) -> Any:
    """Three models in three settings with two seeds; and relevance by path."""
    found = {}
    models = ("--model=bm25,clip-i,clip-ita", "--samples=50")
    label = (*models, "--seeds=2")
    path = (*models, "--seeds=1", "--relevance=path", "--setting=most-general", "--split-by=category")
    for name, given in {"label": label, "path": path}.items():
        out = world.folder / f"category-evaluation-{name}"
        diptych("categories", "evaluate", str(world.shop), *CATEGORIES, *given, f"--out={out}")
        found[name] = adapters.category_evaluation(out)
    return found
