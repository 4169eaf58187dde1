"""``diptych categories train``: heads over frozen encoders, for one catalogue."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pydantic import Field

from diptych.cli.categories.sources import SETTINGS, EncoderSpec, HeadOptions, ProductData
from diptych.cli.console import next_step, progress, say, show, stop_on_signal

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions


class TrainHeads(HeadOptions):
    """What is trained, and where it is written."""

    model: str = Field("clip-ita", description="clip- and what it reads: i(mage), t(itle), a(ttributes).")
    setting: str = Field(
        "most-specific",
        description="A product's category: most-specific, most-general, or all (one drawn).",
        json_schema_extra={"names": SETTINGS},
    )
    seed: int = Field(0, ge=0, description="Of weights, order and draws.")

    def chosen(self) -> TrainOptions:
        """Return the options of training that all of this means."""
        from diptych.commerce.category_to_image.evaluation.grid import trained_options

        base = trained_options(self.model, self.setting, self.published).model_dump()
        return self.training(base | {"query": self.query, "seed": self.seed}, "--seed")


def train(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> None:
    """Train a model that finds products for categories; after any interruption, the same command resumes.

    Images and texts are encoded once; two heads over their rows are trained. Products without a category are not
    trained on.

    Examples:
        diptych categories train shop --out runs/shop
        diptych categories train shop --out runs/i --model clip-i --published
        diptych categories train feed.csv --out runs/feed --query path
        diptych categories train shop --out runs/near --set tree_distance=0.1
    """
    from diptych.commerce.category_to_image.application import measure_run, train_run, training_lines
    from diptych.commerce.category_to_image.tables import run_tables
    from diptych.training.run import TrainingFolder

    chosen, out = options.chosen(), options.out
    TrainingFolder(out).check({}, beside=(), whole=False)
    with progress(), stop_on_signal():
        catalogue, source = products.read_products()
        maker = encoders.maker(catalogue, chosen.modalities)
        run, features = train_run(catalogue, asdict(source), maker, chosen, out)
        tested = measure_run(run, catalogue)
    for line in training_lines(run, catalogue, features):
        say(line)
    show(*run_tables(run, tested))
    next_step(["diptych", "categories", "pick", out, "--out", f"{out}-pictures"])
