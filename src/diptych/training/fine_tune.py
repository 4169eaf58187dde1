"""Fine-tuning: the whole encoder, of this package or of another library, that a training begins with."""

from __future__ import annotations

from diptych.analysis.shortcuts import DIGIT_WORDS, ShortcutOptions
from diptych.core.errors import RecipeError, UsageError
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.dual_encoder import DualEncoder, TrainableEncoder
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.two_tower import CaptionSource, TwoTowerEncoder
from diptych.training.recipe import Recipe


def open_fine_tune(source: str) -> TrainableEncoder:
    """The encoder of a run folder, or of whatever else ``DualEncoder.load`` reads, on the CPU."""
    encoder = DualEncoder.load(source, device="cpu")
    if not isinstance(encoder, TrainableEncoder):
        raise UsageError(
            f"fine_tune {source} holds a {type(encoder).__name__}, which cannot be trained on",
            "give a model of transformers or open_clip, or an encoder that diptych train wrote",
        )
    return encoder


def check_fine_tune(recipe: Recipe, encoder: TrainableEncoder) -> None:
    """See that the recipe asks nothing of the encoder that it does not have."""
    if recipe.make_objective().needs_within and encoder.scoring != "cosine":
        raise RecipeError(
            f"objective {recipe.objective['name']!r} scores images with images, which the encoder's similarity "
            f"{encoder.scoring!r} is not made for",
            "choose another objective",
        )
    source = encoder.source if isinstance(encoder, TwoTowerEncoder) else None
    words = isinstance(source, Vocabulary)
    _check_shortcuts(recipe, encoder)
    if recipe.caption_augmentation is not None and not words:
        raise RecipeError(
            f"caption_augmentation with {recipe.fine_tune}, whose captions are not words of a vocabulary",
            "leave caption_augmentation out",
        )
    if recipe.reconstruction is not None and recipe.reconstruction.kind == "input" and not words:
        raise RecipeError(
            f"reconstruction.kind 'input' with {recipe.fine_tune}, whose captions are not words of a vocabulary",
            "use kind = 'latent'",
        )
    if recipe.augmentation is None:
        return
    if encoder.takes == "regions":
        raise RecipeError("augmentation with an encoder of region features", "leave augmentation out")
    if recipe.augmentation.erasing and isinstance(encoder, PretrainedEncoder):
        raise RecipeError(
            f"augmentation.erasing {recipe.augmentation.erasing} with another library's preprocessing",
            "leave it out: a crop and a flip can be had",
        )


def _check_shortcuts(recipe: Recipe, encoder: TrainableEncoder) -> None:
    """See that both towers can see the digits."""
    if recipe.shortcuts is None:
        return
    if recipe.shortcuts.on_images and encoder.takes == "regions":
        raise RecipeError(
            f"{recipe.fine_tune} takes region features, which cannot carry digits",
            "set shortcuts.setup = 'captions', or fine-tune an encoder of images",
        )
    if isinstance(encoder, TwoTowerEncoder):
        check_digits_known(recipe.shortcuts, encoder.source, f"fine_tune {recipe.fine_tune}")


def check_digits_known(shortcuts: ShortcutOptions | None, source: CaptionSource, what: str) -> None:
    """See that captions' digits are words of the vocabulary that a training begins with."""
    if shortcuts is None or not shortcuts.on_captions:
        return
    if not isinstance(source, Vocabulary):
        raise RecipeError(
            f"{what} reads vectors of captions, which have no digits", "give an encoder that reads words"
        )
    unknown = sorted(set(DIGIT_WORDS) - set(source.entries))
    if unknown:
        raise RecipeError(
            f"the vocabulary of {what} does not know the digits {' '.join(unknown)}",
            "train it with shortcuts.setup = 'none', which puts digits into its vocabulary",
        )
