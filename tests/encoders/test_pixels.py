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
from diptych.encoders.inputs import ByteTable
from diptych.encoders.preprocessing import ComposedPixels, LibraryPixels, Preprocessing, ProcessorPixels

from .tiny_pretrained import KINDS, Square, noise, pictures, transformers_model


def whole(processor: Any, picture: Image.Image) -> np.ndarray:
    found: np.ndarray = processor(images=[picture], return_tensors="np")["pixel_values"][0]
    return found


def by_the_library(pixels: LibraryPixels) -> LibraryPixels:
    """Leave the direct way out."""
    pixels.__dict__["direct"] = None
    return pixels


def inside() -> np.ndarray:
    mask = np.zeros((32, 32), dtype=bool)
    mask[5:13, 3:11] = True
    return mask


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_processors(kind: str) -> None:
    processor = transformers_model(kind)[2]
    direct, slow = ProcessorPixels(processor), by_the_library(ProcessorPixels(processor))
    assert direct.direct is not None
    mean, std = np.asarray(processor.image_mean), np.asarray(processor.image_std)
    expected = (200 / 255 - mean) / std
    if kind == "align":  # EfficientNet's processor divides once more, as its own first layer expects
        expected = expected / std
    for picture in (*pictures(4), noise(200, 33), noise(33, 200), noise(32, 32), noise(7, 5)):
        picture = picture.convert("RGB")
        published = whole(processor, picture)
        assert published.dtype == direct(picture).dtype == np.float32
        for pixels in (direct, slow):
            np.testing.assert_array_equal(pixels(picture), published)
            np.testing.assert_array_equal(pixels(picture, Square(side=0)), published)
        laid = slow(picture, Square())
        np.testing.assert_array_equal(direct(picture, Square()), laid)
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

    pixels = ProcessorPixels(
        Flipping(**{key: value for key, value in CLIP.to_dict().items() if "type" not in key})
    )
    assert pixels.direct is None
    np.testing.assert_array_equal(pixels(noise(50, 40)), whole(CLIP, noise(50, 40))[..., ::-1])


def test_preprocessing_that_cannot_be_taken_apart() -> None:
    from transformers import Siglip2ImageProcessorPil

    own_shape = ProcessorPixels(Siglip2ImageProcessorPil())
    assert not own_shape.one_size
    assert ProcessorPixels(CLIP).one_size
    with pytest.raises(UsageError, match="Siglip2ImageProcessorPil makes .*spatial_shapes.* of a picture"):
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
    direct, slow = ComposedPixels(compose), by_the_library(ComposedPixels(compose))
    assert direct.direct is not None
    expected = np.repeat(((200 / 255 - np.array(mean)) / np.array(std))[:, None], 64, axis=1)
    for picture in (noise(50, 40), noise(33, 90), noise(20, 20)):
        published = compose(picture).numpy()
        for pixels in (direct, slow):
            np.testing.assert_array_equal(pixels(picture), published)
            np.testing.assert_array_equal(pixels(picture, Square(side=0)), published)
            laid = pixels(picture, Square())
            np.testing.assert_array_equal(laid[:, ~inside()], published[:, ~inside()])
            np.testing.assert_allclose(laid[:, inside()], expected, atol=1e-5)
    random = steps.Compose([steps.Resize((32, 32)), steps.ToTensor(), steps.RandomErasing(p=1.0, value=9.0)])
    assert ComposedPixels(random).direct is None
    assert ComposedPixels(steps.Compose([steps.Resize(32)])).direct is None


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.floats(0, 1, allow_subnormal=False)] * 3),
    st.tuples(*[st.floats(0.01, 1)] * 3),
)
def test_the_bits_of_a_table_are_those_of_the_arithmetic(
    seed: int, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> None:
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
