from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diptych.core.errors import ImageError, UsageError
from diptych.data.overlay import OverlaidPicture, Patch
from diptych.encoders.direct_pixels import composed_pixels, processed_pixels
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.pretrained import PretrainedEncoder

from .tiny_pretrained import open_clip_folder, pictures, transformers_folder, transformers_model

KINDS = ["clip", "siglip", "altclip", "align", "groupvit", "chinese_clip", "metaclip_2"]


@dataclass(frozen=True)
class Square:
    """A block of one colour at (left, top) = (3, 5), ``side`` pixels wide."""

    side: int = 8
    colour: int = 200

    @property
    def key(self) -> str:
        return f"square {self.side} {self.colour}"

    def patches(self, width: int, height: int) -> Sequence[Patch]:
        if 3 + self.side > width or 5 + self.side > height:
            raise ImageError(f"a square of {self.side} does not fit {width} × {height}")
        block = np.full((self.side, self.side, 3), self.colour, dtype=np.uint8)
        return [Patch(3, 5, block)] if self.side else []


def inside() -> np.ndarray:
    mask = np.zeros((32, 32), dtype=bool)
    mask[5:13, 3:11] = True
    return mask


@pytest.fixture(scope="module")
def open_clip_encoder(tmp_path_factory: pytest.TempPathFactory) -> PretrainedEncoder:
    encoder = DualEncoder.load(open_clip_folder(tmp_path_factory.mktemp("open") / "tiny"), device="cpu")
    assert isinstance(encoder, PretrainedEncoder)
    return encoder


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_pasted_is_normalised_and_nothing_else_changes(kind: str) -> None:
    _, _, processor = transformers_model(kind)
    for picture in (image.convert("RGB") for image in pictures(3)):
        whole = processor(images=[picture], return_tensors="np")["pixel_values"][0]
        np.testing.assert_array_equal(processed_pixels(processor, picture), whole)
        np.testing.assert_array_equal(processed_pixels(processor, picture, Square(side=0)), whole)
        pasted = processed_pixels(processor, picture, Square())
        np.testing.assert_array_equal(pasted[:, ~inside()], whole[:, ~inside()])
        expected = (200 / 255 - np.asarray(processor.image_mean)) / np.asarray(processor.image_std)
        if kind == "align":  # EfficientNet's processor divides once more, as its own first layer expects
            expected = expected / np.asarray(processor.image_std)
        np.testing.assert_allclose(pasted[:, inside()], np.repeat(expected[:, None], 64, axis=1), atol=1e-5)


def test_open_clips_transform_is_taken_apart_too(open_clip_encoder: PretrainedEncoder) -> None:
    preprocess = open_clip_encoder.preprocess  # type: ignore[attr-defined]
    for picture in pictures(3):
        whole = preprocess(picture).numpy()
        np.testing.assert_array_equal(composed_pixels(preprocess, picture), whole)
        np.testing.assert_array_equal(composed_pixels(preprocess, picture, Square(side=0)), whole)
        pasted = composed_pixels(preprocess, picture, Square())
        np.testing.assert_array_equal(pasted[:, ~inside()], whole[:, ~inside()])
        expected = (200 / 255 - np.array([0.5, 0.4, 0.3])) / np.array([0.2, 0.3, 0.4])
        np.testing.assert_allclose(pasted[:, inside()], np.repeat(expected[:, None], 64, axis=1), atol=1e-5)


def test_rows_see_what_lies_over_a_picture(open_clip_encoder: PretrainedEncoder, tmp_path: Path) -> None:
    clip = DualEncoder.load(transformers_folder("clip", tmp_path / "clip"), device="cpu")
    for encoder in (open_clip_encoder, clip):
        plain = encoder.encode_images(pictures(3))
        some = [
            OverlaidPicture(pictures(3)[0], Square()),
            pictures(3)[1],
            OverlaidPicture(pictures(3)[2], Square(0)),
        ]
        rows = encoder.encode_images(some)
        np.testing.assert_allclose(rows[1:], plain[1:], atol=1e-6)
        assert np.abs(rows[0] - plain[0]).max() > 1e-2


def test_an_overlay_that_does_not_fit_is_named(open_clip_encoder: PretrainedEncoder) -> None:
    with pytest.raises(ImageError, match="a square of 30 does not fit 32 × 32"):
        open_clip_encoder.encode_images([OverlaidPicture(pictures(1)[0], Square(30))])


def test_a_preprocessing_that_cannot_be_taken_apart_is_refused() -> None:
    from transformers import Siglip2ImageProcessorPil

    with pytest.raises(UsageError, match="Siglip2ImageProcessorPil makes .*spatial_shapes.* of a picture"):
        processed_pixels(Siglip2ImageProcessorPil(), pictures(1)[0].convert("RGB"))

    def pads_last(images: list[Any], return_tensors: str, **options: bool) -> dict[str, np.ndarray]:
        values = np.moveaxis(np.asarray(images[0]), -1, 0)
        if options.get("do_rescale", True):
            values = values.astype(np.float32) / 255 - 0.5
        # Zeros after normalisation are the mean colour, zeros before it are black.
        return {"pixel_values": np.pad(values, ((0, 0), (0, 0), (0, 2)))[None]}

    with pytest.raises(UsageError, match="does not crop first and normalise last"):
        processed_pixels(pads_last, pictures(1)[0].convert("RGB"), Square(4))
    with pytest.raises(UsageError, match="SimpleNamespace does not crop first"):
        composed_pixels(SimpleNamespace(transforms=[]), pictures(1)[0], Square(4))
