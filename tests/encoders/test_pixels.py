"""Images as other libraries prepare them: in fewer steps with the same bits, overlays pasted, bytes by a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from diptych.core.errors import ImageError, UsageError
from diptych.data.images import Patch, pasted
from diptych.encoders.inputs import ByteTable
from diptych.encoders.preprocessing import (
    Augmentation,
    ComposedPixels,
    Preprocessing,
    ProcessorPixels,
)

from .tiny_pretrained import Square, noise, pictures, transformers_model


def whole(processor: Any, picture: Image.Image) -> np.ndarray:
    found: np.ndarray = processor(images=[picture], return_tensors="np")["pixel_values"][0]
    return found


def inside() -> np.ndarray:
    mask = np.zeros((32, 32), dtype=bool)
    mask[5:13, 3:11] = True
    return mask


@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "chinese_clip"])
def test_tiny_processors(kind: str) -> None:
    processor = transformers_model(kind)[2]
    direct, by_library = ProcessorPixels(processor), ProcessorPixels(processor)
    by_library.__dict__["direct"] = by_library._cut, direct.direct[1]
    assert direct.direct is not None
    mean, std = np.asarray(processor.image_mean), np.asarray(processor.image_std)
    expected = (200 / 255 - mean) / std
    if kind == "align":  # EfficientNet's processor divides once more, as its own first layer expects
        expected = expected / std
    for picture in (*pictures(4), noise(200, 33), noise(33, 200), noise(32, 32), noise(7, 5)):
        picture = picture.convert("RGB")
        published = whole(processor, picture)
        assert published.dtype == direct(picture).dtype == np.float32
        np.testing.assert_array_equal(direct(picture), published)
        np.testing.assert_array_equal(direct(picture, Square(side=0)), published)
        np.testing.assert_array_equal(by_library(picture), published)
        laid = direct(picture, Square())
        np.testing.assert_array_equal(by_library(picture, Square()), laid)
        np.testing.assert_array_equal(laid[:, ~inside()], published[:, ~inside()])
        np.testing.assert_allclose(laid[:, inside()], np.repeat(expected[:, None], 64, axis=1), atol=1e-5)
    refused(ImageError, "a square of 30 does not fit 32 × 32", direct, picture, Square(30))


def test_published_processors() -> None:
    import transformers as library

    for name in ("CLIP", "Siglip", "EfficientNet", "ViT", "Blip", "ChineseCLIP", "Bit"):
        processor = getattr(library, f"{name}ImageProcessorPil")()
        pixels = ProcessorPixels(processor)
        assert pixels.direct is not None, name
        for width, height in ((640, 427), (333, 500), (224, 224), (60, 225)):
            picture = noise(width, height)
            np.testing.assert_array_equal(pixels(picture), whole(processor, picture))


CLIP = transformers_model("clip")[2]
DIRECT = ProcessorPixels(CLIP)


@settings(max_examples=40)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 9))
def test_every_shape_is_cut_alike(width: int, height: int, seed: int) -> None:
    picture = noise(width, height, seed)
    np.testing.assert_array_equal(DIRECT(picture), whole(CLIP, picture))


def test_a_processor_that_does_something_else_is_believed() -> None:
    class Flipping(type(CLIP)):  # type: ignore[misc]
        def _preprocess(self, *args: Any, **options: Any) -> Any:
            prepared = super()._preprocess(*args, **options)
            prepared["pixel_values"] = prepared["pixel_values"][..., ::-1].copy()
            return prepared

    options = {key: value for key, value in CLIP.to_dict().items() if "type" not in key}
    pixels = ProcessorPixels(Flipping(**options))
    assert pixels.direct is None
    np.testing.assert_array_equal(pixels(noise(50, 40)), whole(CLIP, noise(50, 40))[..., ::-1])


def test_preprocessing_that_cannot_be_taken_apart() -> None:
    from transformers import Siglip2ImageProcessorPil

    own_shape = ProcessorPixels(Siglip2ImageProcessorPil())
    assert not own_shape.one_size
    assert ProcessorPixels(CLIP).one_size
    with pytest.raises(UsageError, match="Siglip2ImageProcessorPil makes .*spatial_shapes.* of an image"):
        own_shape(noise(50, 40))

    def pads_last(images: list[Any], return_tensors: str, **options: bool) -> dict[str, np.ndarray]:
        values = np.moveaxis(np.asarray(images[0]), -1, 0)
        if options.get("do_rescale", True):
            values = values.astype(np.float32) / 255 - 0.5
        # Zeros after normalisation are the mean colour, zeros before it are black.
        return {"pixel_values": np.pad(values, ((0, 0), (0, 0), (0, 2)))[None]}

    with pytest.raises(UsageError, match="does not crop first and normalise last"):
        ProcessorPixels(pads_last)(noise(50, 40), Square(4))
    with pytest.raises(UsageError, match="SimpleNamespace does not crop first"):
        ComposedPixels(SimpleNamespace(transforms=[]))(noise(50, 40), Square(4))


def test_a_compose_of_torchvision() -> None:
    from torchvision import transforms as steps

    mean, std = (0.48, 0.45, 0.4), (0.26, 0.26, 0.27)
    cut = [steps.Resize(32, interpolation=steps.InterpolationMode.BICUBIC), steps.CenterCrop(32)]
    compose = steps.Compose([*cut, steps.ToTensor(), steps.Normalize(mean, std)])
    direct = ComposedPixels(compose)
    assert direct.direct is not None
    expected = np.repeat(((200 / 255 - np.array(mean)) / np.array(std))[:, None], 64, axis=1)
    for picture in (noise(50, 40), noise(33, 90), noise(20, 20)):
        published = compose(picture).numpy()
        np.testing.assert_array_equal(direct(picture), published)
        np.testing.assert_array_equal(direct(picture, Square(side=0)), published)
        laid = direct(picture, Square())
        np.testing.assert_array_equal(laid[:, ~inside()], published[:, ~inside()])
        np.testing.assert_allclose(laid[:, inside()], expected, atol=1e-5)
    random = steps.Compose([steps.Resize((32, 32)), steps.ToTensor(), steps.RandomErasing(p=1.0, value=9.0)])
    assert ComposedPixels(random).direct is None
    assert ComposedPixels(steps.Compose([steps.Resize(32)])).direct is None


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.floats(0, 1, allow_subnormal=False)] * 3),
    st.tuples(*[st.floats(0.01, 1)] * 3),
)
def test_the_bits_of_a_table_are_those_of_the_arithmetic(seed: int, mean: Any, std: Any) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 5, 3), dtype=np.uint8)
    scale = 1.0 / (255.0 * np.asarray(std, dtype=np.float32))
    shift = np.asarray(mean, dtype=np.float32) / np.asarray(std, dtype=np.float32)
    expected = (pixels.astype(np.float32) * scale - shift).transpose(2, 0, 1)
    np.testing.assert_array_equal(Preprocessing(mean=mean, std=std)._normalised(pixels), expected)

    def double(pixels: np.ndarray) -> np.ndarray:
        return ((pixels / 255.0 - mean) / std).transpose(2, 0, 1).astype(np.float32)

    table = ByteTable.of(double)
    assert table is not None
    np.testing.assert_array_equal(table(pixels), double(pixels))


PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def test_whole_picture_and_certain_flip() -> None:
    picture, preprocessing = noise(16, 16), Preprocessing(size=16, resize=16, **PLAIN)
    flip = WHOLE.model_copy(update={"flip": 1.0})
    flipped = preprocessing.augmented(picture, flip, np.random.default_rng(0))
    np.testing.assert_allclose(flipped[:, :, ::-1], preprocessing(picture), atol=1e-6)


WHOLE = Augmentation(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0)


def test_a_rectangle_of_the_right_size_and_shape_is_erased() -> None:
    augmentation, shapes = WHOLE.model_copy(update={"erasing": 1.0}), []
    picture = Image.new("RGB", (40, 40), (200, 100, 50))
    for seed in range(200):
        random = np.random.default_rng(seed)
        gone = (Preprocessing(size=40, resize=40).augmented(picture, augmentation, random) == 0).all(axis=0)
        rows, columns = np.flatnonzero(gone.any(axis=1)), np.flatnonzero(gone.any(axis=0))
        height, width = len(rows), len(columns)
        assert gone.sum() == height * width == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        shapes.append((height, width))
    heights, widths = np.array(shapes).T
    areas, ratios = heights * widths / 1600, heights / widths
    # Sides are whole pixels, so that a range is exceeded by what rounding one pixel makes.
    assert 0.015 < areas.min() < 0.06 < 0.25 < areas.max() < 0.37
    assert 0.2 < ratios.min() < 0.5 < 2 < ratios.max() < 4.2


class Blocks:
    """Coloured noise at (3, 0), and over its right part a block that reaches the lower right corner."""

    key = "blocks"

    def patches(self, width: int, height: int) -> list[Patch]:
        values = np.random.default_rng(9).integers(0, 256, (5, 7, 3), dtype=np.uint8)
        grey = np.broadcast_to(np.uint8(200), (height - 2, width - 6, 3))
        return [Patch(3, 0, values), Patch(6, 2, grey)]


@pytest.mark.parametrize("options", [{}, {**PLAIN, "interpolation": "bilinear"}])
def test_an_overlay_is_what_was_pasted_on_the_pixels(options: dict[str, Any]) -> None:
    preprocessing, picture = Preprocessing(size=24, resize=28, **options), noise(50, 40)
    pixels = preprocessing.central(picture)
    assert (pixels.dtype, pixels.shape) == (np.uint8, (24, 24, 3))
    # A picture that is there already is taken as it is, so that its pixels can be pasted on by hand.
    by_hand = Preprocessing(size=24, resize=24, **options)(Image.fromarray(pasted(pixels, Blocks())))
    found = preprocessing(picture, Blocks())
    assert np.array_equal(found, by_hand)
    assert not np.array_equal(found, preprocessing(picture))


@pytest.mark.parametrize("erasing", [0.0, 1.0])
def test_an_overlay_survives_crop_flip_and_erasure(erasing: float) -> None:
    preprocessing, picture = Preprocessing(size=24, resize=24, **PLAIN), noise(50, 40)
    augmentation = Augmentation(flip=0.5, erasing=erasing, erasing_area=(0.3, 0.33))
    untouched = ~pasted(np.zeros((24, 24, 3), np.uint8), Blocks()).any(axis=2)
    for seed in range(12):
        with_it, without = np.random.default_rng(seed), np.random.default_rng(seed)
        found = preprocessing.augmented(picture, augmentation, with_it, Blocks())
        bare = preprocessing.augmented(picture, augmentation, without)
        assert with_it.random() == without.random()  # an overlay draws nothing
        both = [np.rint(values.transpose(1, 2, 0) * 255).astype(np.uint8) for values in (found, bare)]
        assert np.array_equal(both[0], pasted(both[1], Blocks()))
        assert np.array_equal(found[:, untouched], bare[:, untouched])
