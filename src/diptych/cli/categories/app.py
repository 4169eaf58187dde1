"""``diptych categories``: pictures for the nodes of a category tree, categories for products."""

from __future__ import annotations

import typer

from diptych.cli.categories.download import download
from diptych.cli.categories.evaluate import evaluate
from diptych.cli.categories.fill import fill
from diptych.cli.categories.index import index
from diptych.cli.categories.pick import pick
from diptych.cli.categories.train import train
from diptych.cli.categories.tree import tree

categories = typer.Typer(
    name="categories",
    help="Category-to-image: pictures for every node of a category tree, categories for products without one.",
    epilog="Begin with: diptych scenes --products --out shop, then diptych categories train shop --out runs/shop",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

categories.command("train")(train)
categories.command("tree")(tree)
categories.command("download")(download)
categories.command("evaluate")(evaluate)
categories.command("pick")(pick)
categories.command("fill")(fill)
categories.command("index")(index)
