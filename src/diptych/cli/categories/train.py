"""``diptych categories train``: heads over frozen encoders, for one catalogue."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.categories.sources import Encoders, ProductData, training_options, with_groups
from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.core.errors import UnknownNameError

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions


@with_groups
def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the run.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="clip- and what stands for a product: i(mage), t(itle), a(ttributes).")
    ] = "clip-ita",
    setting: Annotated[
        str, typer.Option(help="The category of a product: most-specific, most-general, or all (one drawn).")
    ] = "most-specific",
    query: Annotated[str, typer.Option(help="A category's text: its name, or its whole path.")] = "name",
    published: Annotated[
        bool,
        typer.Option("--published", help="As in the thesis: τ = 1, duplicates as negatives, no dropout."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and draws.")] = 0,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE for the training, e.g. epochs=10, attributes=attention, tree_distance=0.1. Repeatable.",
            show_default=False,
        ),
    ] = None,
    *,
    encoders: Encoders,
    products: ProductData,
) -> None:
    """Train a model that finds products for categories; killed at any moment, the same command goes on.

    Pictures and texts go through frozen encoders once, what is trained are two heads over their rows. Products without
    a category are not trained on; those without a picture, a title or attributes are.

    Examples:

      [bold]diptych categories train shop --out runs/shop[/bold]

      [bold]diptych categories train shop --out runs/i --model clip-i --setting most-general --published[/bold]

      [bold]diptych categories train feed.csv --out runs/feed --text-encoder sentence:NAME --query path[/bold]

      [bold]diptych categories train shop --out runs/near --set tree_distance=0.1 --set attributes=attention[/bold]
    """
    from diptych.commerce.category_to_image.application import measure_run, train_run, training_lines
    from diptych.commerce.category_to_image.tables import run_tables
    from diptych.training.run import TrainingFolder

    chosen = _options(model, setting, query, published, seed, options)
    TrainingFolder(out).check({}, beside=(), whole=False)
    with progress(), stop_on_signal():
        catalogue, source = products.read()
        maker = encoders.maker(catalogue, chosen.modalities)
        run, features = train_run(catalogue, asdict(source), maker, chosen, out)
        tested = measure_run(run, catalogue)
    for line in training_lines(run, catalogue, features):
        say(line)
    show(*run_tables(run, tested))
    next_step(["diptych", "categories", "pick", str(out), "--out", f"{out}-pictures"])


_NAMED = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": "--seed"}


def _options(
    model: str, setting: str, query: str, published: bool, seed: int, given: list[str] | None
) -> TrainOptions:
    from diptych.commerce.catalogue.catalogue import SETTINGS
    from diptych.commerce.category_to_image.evaluation.grid import TRAINED, modalities_of
    from diptych.commerce.category_to_image.options import TrainOptions

    modalities = modalities_of(model)
    if modalities is None:
        raise UnknownNameError("trained model", model, TRAINED)
    SETTINGS.get(setting)
    base = TrainOptions.published(modalities, setting) if published else TrainOptions(modalities=modalities)
    values = {"setting": setting, "query": query, "seed": seed}
    return training_options(given, _NAMED, base.model_dump() | values)
