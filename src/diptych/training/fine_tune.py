"""Fine-tuning: the whole encoder, of this package or of another library, that a training begins with."""

from diptych.analysis.shortcuts.codes import DIGIT_WORDS, ShortcutOptions
from diptych.core.errors import RecipeError, UsageError
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.dual_encoder import DualEncoder, TrainableEncoder
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.two_tower import CaptionSource, TwoTowerEncoder
from diptych.encoders.wrapped import WrappedEncoder
from diptych.training.recipe import Recipe

GIVEN = "given:"  # before the name of an encoder that a recipe's run was given in Python


def open_fine_tune(source: str) -> DualEncoder:
    """Return the encoder of a run folder, or of whatever else ``DualEncoder.load`` reads, on the CPU."""
    if source.startswith(GIVEN):
        raise UsageError(
            f"the encoder {source.removeprefix(GIVEN)} was given in Python",
            "resume with the same call of diptych.train, which gives it",
        )
    return DualEncoder.load(source, device="cpu")


def check_fine_tune(recipe: Recipe, encoder: DualEncoder) -> TrainableEncoder:
    """Return the encoder; refuse one that cannot be trained, and a recipe that needs what it does not have."""
    if not isinstance(encoder, TrainableEncoder):
        raise UsageError(
            f"fine_tune {recipe.fine_tune} holds a {type(encoder).__name__}, which cannot be trained on",
            "give a model of transformers or open_clip, or an encoder that diptych train wrote",
        )
    name, shortcuts, augmentation = recipe.fine_tune, recipe.shortcuts, recipe.augmentation
    words = isinstance(encoder, TwoTowerEncoder) and isinstance(encoder.source, Vocabulary)
    regions = encoder.takes == "regions"
    erasing = 0.0 if augmentation is None else augmentation.erasing
    if isinstance(encoder, TwoTowerEncoder):
        check_digits_known(shortcuts, encoder.source, f"fine_tune {name}")
    for holds, message, fix in (
        (
            recipe.make_objective().needs_within and encoder.scoring != "cosine",
            f"objective {recipe.objective['name']!r} scores images with images, which the encoder's similarity "
            f"{encoder.scoring!r} is not made for",
            "choose another objective",
        ),
        (
            shortcuts is not None and shortcuts.on_images and regions,
            f"{name} takes region features, which cannot carry digits",
            "set shortcuts.setup = 'captions', or fine-tune an encoder of images",
        ),
        (
            recipe.caption_augmentation is not None and not words,
            f"caption_augmentation with {name}, whose captions are not words of a vocabulary",
            "leave caption_augmentation out",
        ),
        (
            recipe.reconstruction is not None and recipe.reconstruction.kind == "input" and not words,
            f"reconstruction.kind 'input' with {name}, whose captions are not words of a vocabulary",
            "use kind = 'latent'",
        ),
        (
            augmentation is not None and regions,
            "augmentation with an encoder of region features",
            "leave augmentation out",
        ),
        (
            augmentation is not None and isinstance(encoder, WrappedEncoder),
            f"augmentation with {name}, whose preprocessing was given in Python",
            "leave augmentation out: put it there",
        ),
        (
            erasing and isinstance(encoder, PretrainedEncoder),
            f"augmentation.erasing {erasing} with another library's preprocessing",
            "leave it out: a crop and a flip can be had",
        ),
    ):
        if holds:
            raise RecipeError(message, fix)
    return encoder


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
