"""Checks of images and texts that come in, and bytes as normalised floats."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image as pillow
from PIL.Image import Image

from diptych.core.errors import CaptionError, ImageError, MismatchError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.reading import file_errors, open_regular
from diptych.data.images import OverlaidPicture, Overlay, read_image, split_overlay, to_rgb

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_COUNTS = "num_batches_tracked"
MAX_ASPECT = 500  # scaling the shorter side of longer images to 224 pixels would need gigabytes


def split_picture(item: Any, position: int | str) -> tuple[Image, Overlay | None]:
    """Split one item into its RGB image and what is laid over it."""
    picture, overlay = split_overlay(item)
    return as_picture(picture, position), overlay


def as_picture(item: Any, position: int | str) -> Image:
    if isinstance(item, str | Path):
        try:
            item = read_image(Path(item))
        except ImageError as error:
            raise ImageError(f"image {position} cannot be read: {error.message}", error.fix) from None
    if isinstance(item, OverlaidPicture):
        raise ImageError(
            f"image {position} has something laid over it (the digits of a shortcut), which this encoder "
            "does not paste",
            "evaluate it without shortcuts, or split the item with diptych.data.images.split_overlay and "
            "paste it where images are prepared",
        )
    if isinstance(item, np.ndarray):
        if item.dtype != np.uint8 or not (item.ndim == 2 or (item.ndim == 3 and item.shape[2] == 3)):
            raise ImageError(
                f"image {position} is a {item.dtype} array of shape {item.shape}",
                "this encoder takes images: Pillow images or (height, width, 3) uint8 arrays; "
                "region features are for an encoder with a region tower",
            )
        if item.size == 0:
            raise ImageError(f"image {position} has no pixels: its shape is {item.shape}")
        item = pillow.fromarray(item)
    if not isinstance(item, Image):
        raise ImageError(
            f"image {position} is a {type(item).__name__}, not an image of Pillow or an array",
            "give a path, a Pillow image or an array of pixels",
        )
    width, height = item.size
    if not width or not height or max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(
            f"image {position} is {width} × {height} pixels, a shape that cannot be scaled",
            f"crop it to at most {MAX_ASPECT} times its shorter side",
        )
    return to_rgb(item)


def as_regions(item: Any, position: int | str, regions: int, width: int) -> np.ndarray:
    """Turn one item into a (regions, width) float32 matrix of region features."""
    if not isinstance(item, np.ndarray) or item.dtype.kind != "f":
        what = f"a {item.dtype} array" if isinstance(item, np.ndarray) else f"a {type(item).__name__}"
        raise ImageError(
            f"image {position} is {what}, not a matrix of region features",
            f"this encoder takes ({regions}, {width}) float arrays: read the data with the reader's "
            "option regions, or use an encoder that takes images",
        )
    if item.shape != (regions, width):
        raise ImageError(
            f"image {position} has region features of shape {item.shape}, not ({regions}, {width})",
            "set model.image.regions and model.image.feature_width to those of the data",
        )
    if not np.isfinite(item).all():
        row, column = np.argwhere(~np.isfinite(item))[0]
        raise ImageError(
            f"image {position}: feature {column} of region {row} is {item[row, column]}", "extract it again"
        )
    return item.astype(np.float32)


def check_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return ``texts`` when each of them is a text; of a single text a list."""
    if isinstance(texts, str):
        texts = [texts]
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise CaptionError(f"text {position} is a {type(text).__name__} ({text!r}), not a text")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise CaptionError(
                    f"text {position} ({text[:40]!r}) holds half a surrogate pair",
                    "decode the file it comes from as UTF-8",
                ) from None
    return texts


class ByteTable:
    """(height, width, 3) uint8 pixels → (3, height, width) float32, by (3, 256) values of each channel's bytes."""

    def __init__(self, values: np.ndarray) -> None:
        self.values: np.ndarray = np.ascontiguousarray(values, dtype=np.float32)

    @classmethod
    def of(cls, finish: Callable[[np.ndarray], np.ndarray]) -> ByteTable | None:
        """Return the table of ``finish``; None when that is not a function of only channel and byte."""
        every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
        values = finish(every)
        if values.shape != (3, 16, 16) or values.dtype != np.float32:
            return None
        table = cls(values.reshape(3, 256))
        mixed = np.random.default_rng(0).integers(0, 256, (37, 23, 3), dtype=np.uint8)
        found = finish(mixed)
        return table if found.shape == (3, 37, 23) and np.array_equal(table(mixed), found) else None

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        found = np.empty((3, *pixels.shape[:2]), dtype=np.float32)
        for channel in range(3):
            # "clip" never clips a byte of 256; it spares a check of every index.
            np.take(self.values[channel], pixels[:, :, channel], out=found[channel], mode="clip")
        return found


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        content = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(content, path, metadata)
    except SafetensorError as error:
        # The library wraps the system's error: every failed write of ours is a full disk or a quota.
        raise OSError(errno.ENOSPC, str(error)) from error


def load_tensors(path: Path, fix: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with file_errors(path, fix=fix):
            open_regular(path).close()  # the library would wait for a pipe
            return load_file(str(path))
    except SafetensorError as error:
        raise StorageError(f"{path} is not a safetensors file: {error}", fix) from None


def load_fitting(
    network: torch.nn.Module, path: Path, what: str, fix: str, ignore: tuple[str, ...] = ()
) -> None:
    """Load a state dict whose names and shapes are the network's, but for names that begin as in ``ignore``."""
    take_weights(network, load_tensors(path, fix), f"{path} does not fit {what}", fix, ignore)


def take_weights(
    network: torch.nn.Module, state: Mapping[str, Tensor], misfit: str, fix: str, ignore: tuple[str, ...] = ()
) -> None:
    """Load weights as :func:`load_fitting` does; counts of batches, which old files lack, may be missing."""
    expected = network.state_dict()
    missing = sorted(name for name in expected.keys() - state.keys() if not name.endswith(_COUNTS))
    surplus = sorted(name for name in state.keys() - expected.keys() if not name.startswith(ignore))
    other = sorted(
        name for name in state.keys() & expected.keys() if state[name].shape != expected[name].shape
    )
    if missing or surplus or other:
        raise MismatchError(
            f"{misfit}: {len(missing)} tensors missing, {len(surplus)} unknown, "
            f"{len(other)} of another shape (e.g. {(missing or surplus or other)[0]})",
            fix,
        )
    kept = {name: state[name].to(value.dtype) for name, value in expected.items() if name in state}
    network.load_state_dict(kept, strict=False)


def weights_fingerprint(state: Mapping[str, Tensor]) -> str:
    """Return the fingerprint of named tensors on any device."""
    return fingerprint_arrays({name: value.detach().cpu().numpy() for name, value in state.items()})


def pick_device(device: str | None) -> torch.device:
    """Return the device called ``device``, or the GPU where there is one, else the CPU."""
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"device {device!r} cannot be used: {reason}", "try cpu or cuda") from None
    return chosen
