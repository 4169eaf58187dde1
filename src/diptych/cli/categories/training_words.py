"""What ``diptych categories train`` says of its data, its training and its test products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diptych.cli.categories.sources import CatalogueSource
from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.features import FeatureMaker, ProductFeatures
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.evaluation.result import Result

__all__ = ["say_data", "say_tested", "say_training"]


def say_data(
    catalogue: Catalogue, source: CatalogueSource, features: ProductFeatures, maker: FeatureMaker
) -> None:
    """The products, their splits, what was missing, and which encoders made the rows."""
    say(catalogue.describe())
    for note in catalogue.notes:
        say(f"  {note}")
    sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
    how = "" if source.split_by is None else f", by {source.split_by}"
    say(f"splits: {sizes}{how}")
    about = features.about
    unreadable = int(about.get("unreadable_pictures") or 0)
    if unreadable:
        say(f"{unreadable:,} pictures to train on cannot be read: their products stand without")
    image, text = about.get("image"), about["text"]
    say(
        f"text encoder: {_encoder(text)}; image encoder: {_encoder(image) if image else 'none, the model needs none'}"
    )
    if maker.image is not None and maker.image.kind == "grid":
        say(
            "  the grid sees colours and edges alone: better pictures with --image-encoder backbone:NAME or hf:NAME"
        )
    if str(text.get("kind", "")) == "lsa":
        say(
            "  lsa knows the words of the training products alone: better texts with --text-encoder sentence:NAME"
        )


def _encoder(description: dict[str, Any]) -> str:
    """Name and fingerprint of an encoder out of what it says of itself."""
    words = [str(description[key]) for key in ("kind", "model", "source", "name") if description.get(key)]
    return " ".join(dict.fromkeys(words)) + f" ({description.get('fingerprint', 'no fingerprint')})"


def say_training(run: CategoryRun) -> None:
    """What was trained on how much, and which epoch was taken."""
    about = run.model.about
    left = about["without_category"]
    say(
        f"{run.describe()}: trained on {about['products']:,} products"
        + (f", {left:,} without a category left out" if left else "")
    )
    last = about["metrics"][about["best_epoch"] - 1]
    why = f"the best by {about['chosen_by']} of validation products" if about["chosen_by"] else "the last"
    measured = f", {about['chosen_by']} {100 * last[about['chosen_by']]:.2f} %" if about["chosen_by"] else ""
    say(f"epoch {about['best_epoch']} of {about['epochs']}, {why}: loss {last['loss']:.4f}{measured}")


def say_tested(result: Result, options: TrainOptions) -> None:
    """A table of the measures of test products."""
    from diptych.commerce.category_to_image.evaluation.names import CATEGORY_MEASURES

    names = tuple(name for name in CATEGORY_MEASURES if "hits" not in name)
    rows = [(options.model, *(f"{100 * result.value(name, 't2i'):.2f}" for name in names))]
    print_table(
        f"test products, {options.setting}",
        ("model", *names),
        rows,
        numbers=names,
        caption="per cent; categories ask for products, relevant by label; mAP@k divided by min(k, relevant)",
    )
