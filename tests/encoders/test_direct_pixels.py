from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diptych.core.errors import ImageError, UsageError
from diptych.encoders.direct_pixels import ComposedPixels, ProcessorPixels, composed_pixels, processed_pixels

from .test_overlaid import KINDS, Square
from .tiny_pretrained import pictures, transformers_model


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def whole(processor: Any, picture: Image.Image) -> np.ndarray:
    found: np.ndarray = processor(images=[picture], return_tensors="np")["pixel_values"][0]
    return found


def published() -> list[Any]:
    import transformers as library

    names = ("CLIP", "Siglip", "EfficientNet", "ViT", "Blip", "ChineseCLIP", "Bit")
    return [getattr(library, f"{name}ImageProcessorPil")() for name in names]


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_processors_are_done_directly_with_the_same_bits(kind: str) -> None:
    processor = transformers_model(kind)[2]
    pixels = ProcessorPixels(processor)
    assert pixels._direct is not None
    for picture in (*pictures(4), noise(200, 33), noise(33, 200), noise(32, 32), noise(7, 5)):
        found = pixels(picture.convert("RGB"))
        np.testing.assert_array_equal(found, whole(processor, picture.convert("RGB")))
        assert found.dtype == np.float32
    laid = pixels(pictures(1)[0].convert("RGB"), Square())
    np.testing.assert_array_equal(laid, processed_pixels(processor, pictures(1)[0].convert("RGB"), Square()))
    with pytest.raises(ImageError, match="a square of 30 does not fit 32 × 32"):
        pixels(pictures(1)[0].convert("RGB"), Square(30))


def test_processors_as_they_are_published_too() -> None:
    for processor in published():
        pixels = ProcessorPixels(processor)
        assert pixels._direct is not None, type(processor).__name__
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


@pytest.mark.parametrize(
    "changes",
    [
        {"do_pad": True, "pad_size": {"height": 40, "width": 40}},
        {"do_resize": False},
        {"size": {"longest_edge": 40, "shortest_edge": 32}},
        {"crop_size": {"height": 48, "width": 48}},
        {"do_rescale": False},
    ],
)
def test_settings_that_say_more_are_left_to_the_library(changes: dict[str, Any]) -> None:
    processor = transformers_model("clip")[2]
    for name, value in changes.items():
        setattr(processor, name, value)
    pixels = ProcessorPixels(processor)
    picture = noise(50, 40)
    np.testing.assert_array_equal(pixels(picture), whole(processor, picture))


def test_a_processor_that_does_something_else_is_believed() -> None:
    processor = transformers_model("clip")[2]

    class Flipping(type(processor)):  # type: ignore[misc]
        def _preprocess(self, *args: Any, **options: Any) -> Any:
            prepared = super()._preprocess(*args, **options)
            prepared["pixel_values"] = prepared["pixel_values"][..., ::-1].copy()
            return prepared

    flipping = Flipping(**{key: value for key, value in processor.to_dict().items() if "type" not in key})
    pixels = ProcessorPixels(flipping)
    assert pixels._direct is None
    np.testing.assert_array_equal(pixels(noise(50, 40)), whole(processor, noise(50, 40))[..., ::-1])


def test_pictures_that_keep_their_shape_are_not_prepared() -> None:
    from transformers import Siglip2ImageProcessorPil

    pixels = ProcessorPixels(Siglip2ImageProcessorPil())
    assert not pixels.one_size
    assert ProcessorPixels(CLIP).one_size
    with pytest.raises(UsageError, match="makes .*spatial_shapes.* of a picture"):
        pixels(noise(50, 40))


def test_a_compose_of_torchvision_is_done_directly_with_the_same_bits() -> None:
    from torchvision import transforms as steps

    compose = steps.Compose(
        [
            steps.Resize(32, interpolation=steps.InterpolationMode.BICUBIC),
            steps.CenterCrop(32),
            steps.ToTensor(),
            steps.Normalize((0.48, 0.45, 0.4), (0.26, 0.26, 0.27)),
        ]
    )
    pixels = ComposedPixels(compose)
    assert pixels._direct is not None
    for picture in (noise(50, 40), noise(33, 90), noise(20, 20)):
        np.testing.assert_array_equal(pixels(picture), compose(picture).numpy())
        np.testing.assert_array_equal(pixels(picture, Square()), composed_pixels(compose, picture, Square()))
    random = steps.Compose([steps.Resize((32, 32)), steps.ToTensor(), steps.RandomErasing(p=1.0, value=9.0)])
    assert ComposedPixels(random)._direct is None
    no_tensor = ComposedPixels(steps.Compose([steps.Resize(32)]))
    assert no_tensor._direct is None
    with pytest.raises(UsageError, match="Compose does not crop first"):
        no_tensor(noise(50, 40), Square())
