"""A kind of picture encoder per file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from diptych.commerce.category_to_image.features.pictures.contract import (
    PICTURES,
    NoOptions,
    PictureEncoder,
    PictureKind,
    Precision,
)
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.options import Options
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import rooted
from diptych.encoders.targets import TargetModel

if TYPE_CHECKING:
    from PIL.Image import Image


# A picture in numbers without any weights: where its colours and edges are, and which colours it has.
#
# Shops show a product in the middle of a white page, so white margins are cut first: how much room a product got
# says nothing of it. Shapes and colours on an 8 × 8 grid are those of SIFT's and HOG's family, the histogram of
# colours is Swain and Ballard's.
#
# Sources: Dalal and Triggs, Histograms of Oriented Gradients for Human Detection, CVPR 2005; Swain and Ballard, Color
# Indexing, IJCV 1991.


WHITE = 240
"""A pixel whose channels are all at least this is of the page."""


MAX_SIDE = 8192
"""Of a square page: a picture of 100,000 × 10 pixels would need 30 GB of white around it."""


def without_white_margins(picture: Image) -> Image:
    """The smallest part of an RGB picture that holds every pixel which is not white; all of a white one."""
    inked = np.asarray(picture).min(axis=2) < WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return picture
    return picture.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))


def on_square_page(picture: Image) -> Image:
    """An RGB picture in the middle of a white square, as large as its longer side; nothing of it is lost.

    A longer side than :data:`MAX_SIDE` is scaled down to it first.
    """
    from PIL import Image as pillow

    if max(picture.size) > MAX_SIDE:
        scale = MAX_SIDE / max(picture.size)
        smaller = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(smaller, pillow.Resampling.BILINEAR, reducing_gap=2.0)
    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return page


_SIDE, _CELLS, _ORIENTATIONS, _SHADES = 64, 8, 8, 4

GRID_WIDTH = _CELLS**2 * (3 + _ORIENTATIONS) + _SHADES**3
"""Length of a description: 768."""


def describe_grid(picture: Image) -> np.ndarray:
    """(768,) float32 of unit length: cells' mean colours, cells' edges by orientation, histogram of colours.

    Each of the three has the same weight; the page's white counts as nothing in the first and the last. A picture
    that is white altogether is described by its white.
    """
    from PIL import Image as pillow

    square = on_square_page(without_white_margins(picture))
    pixels = np.asarray(square.resize((_SIDE, _SIDE), pillow.Resampling.BILINEAR, reducing_gap=2.0))
    parts = (_colours(pixels), _edges(pixels), _histogram(pixels))
    row = np.concatenate([part / max(float(np.linalg.norm(part)), 1e-12) for part in parts])
    unit: np.ndarray = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def _by_cell(values: np.ndarray) -> np.ndarray:
    """(side, side, c) → (cells, cells, c) sums over each cell."""
    step = _SIDE // _CELLS
    sums: np.ndarray = values.reshape(_CELLS, step, _CELLS, step, -1).sum(axis=(1, 3))
    return sums


def _colours(pixels: np.ndarray) -> np.ndarray:
    found: np.ndarray = _by_cell(1.0 - pixels / 255.0).ravel()
    return found


def _edges(pixels: np.ndarray) -> np.ndarray:
    down, right = np.gradient(pixels @ np.array([0.299, 0.587, 0.114]))
    strength = np.hypot(down, right)
    # An edge and its opposite are one orientation.
    turn = (np.arctan2(down, right) / np.pi) % 1.0
    bins = np.minimum((turn * _ORIENTATIONS).astype(np.int64), _ORIENTATIONS - 1)
    spread = np.zeros((*strength.shape, _ORIENTATIONS))
    np.put_along_axis(spread, bins[..., None], strength[..., None], axis=2)
    # Roots, so that one hard edge does not outshine all others.
    found: np.ndarray = np.sqrt(_by_cell(spread)).ravel()
    return found


def _histogram(pixels: np.ndarray) -> np.ndarray:
    flat = pixels.reshape(-1, 3)
    inked = flat[flat.min(axis=1) < WHITE]
    shades = (inked if len(inked) else flat).astype(np.int64) * _SHADES // 256
    code = shades @ np.array([_SHADES**2, _SHADES, 1])
    return np.sqrt(np.bincount(code, minlength=_SHADES**3).astype(np.float64))


# Pictures through a frozen classifier network of timm, without its last layer.
#
# Weights are a file, or those that timm fetches; never random ones. What the network sees is as timm says of it where
# no option says otherwise: weights of another source may want another mean, and small pictures a smaller size.
_NO_WIDTH = 2
"""Of the tower's head, which plays no part here."""


class BackboneOptions(Options):
    """What a backbone can be told; what is not given is as timm says of the network.

    Attributes:
        weights: a safetensors file of its state dict; fetched by timm when not given.
        size: side of the square that it sees, in pixels.
        resize: length to which the shorter side is resized before the central square is cut; as ``size`` when
            only that is given.
        interpolation: ``bilinear`` or ``bicubic``.
        mean, std: per channel, of values in [0, 1]; as text with commas between.
        timm: keyword arguments for ``timm.create_model``, e.g. ``{"pad_type": "same"}``; each can be given as
            an option of its own, ``timm.pad_type``.
    """

    weights: str | None = None
    size: int | None = Field(None, ge=8, le=4096)
    resize: int | None = Field(None, ge=8, le=8192)
    interpolation: Literal["bilinear", "bicubic"] | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    timm: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _dotted(cls, given: dict[str, Any]) -> dict[str, Any]:
        inner = {key.removeprefix("timm."): value for key, value in given.items() if key.startswith("timm.")}
        if not inner:
            return given
        outer = {key: value for key, value in given.items() if not key.startswith("timm.")}
        return {**outer, "timm": {**outer.get("timm", {}), **inner}}

    @field_validator("mean", "std", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value

    @field_validator("weights")
    @classmethod
    def _whole(cls, value: str | None) -> str | None:
        return None if value is None else str(Path(value).expanduser().resolve())


class BackbonePictures(PictureEncoder):
    """A frozen network's pooled features, divided by their length; open one with :meth:`load`."""

    kind: ClassVar[str] = "backbone"

    def __init__(self, tower: Any, name: str, options: BackboneOptions, precision: Precision) -> None:
        self.tower, self.source, self.precision = tower, f"{self.kind}:{name}", precision
        self.options = options.model_dump(mode="json", exclude_none=True)

    @classmethod
    def load(cls, name: str, options: BackboneOptions, precision: Precision = "float32") -> BackbonePictures:
        """The network with its weights, on the graphics card where there is one."""
        from diptych.encoders.hub import LOADING_ERRORS, loading_failure
        from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
        from diptych.encoders.inputs import pick_device

        config = ImageTowerConfig(
            backbone=name,
            backbone_options=options.timm,
            weights=options.weights,
            pretrained=options.weights is None,
            preprocessing=_preprocessing(name, options),
        )
        try:
            tower = ImageTower(config, _NO_WIDTH)
        except (MismatchError, StorageError) as error:
            raise type(error)(error.message, "check the image options weights and timm") from error
        except LOADING_ERRORS as error:
            fix = "give the image option weights=FILE, a safetensors file of the network, and timm.* as it needs"
            raise loading_failure(f"timm's {name}", None, error, fix) from error
        tower.eval().requires_grad_(False)
        return cls(tower.to(pick_device(None)), name, options, precision)

    @property
    def width(self) -> int:
        """Length of a row."""
        return int(self.tower.feature_width)

    @cached_property
    def fingerprint(self) -> str:
        """Of weights, network, preprocessing and precision."""
        weights = {name: value.cpu().numpy() for name, value in self.tower.backbone.state_dict().items()}
        config = self.tower.config
        return fingerprint(
            self.kind,
            fingerprint_arrays(weights),
            config.backbone,
            config.backbone_options,
            config.preprocessing.model_dump(mode="json"),
            self.precision,
        )

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {
            "kind": self.kind,
            "source": self.source,
            "weights": self.options.get("weights", "timm's own"),
            "width": self.width,
            **self.tower.describe(),
            "timm": self.tower.config.backbone_options,
            "precision": self.precision,
            "fingerprint": self.fingerprint,
        }

    def prepared(self, item: Any, name: str) -> np.ndarray:
        """(3, size, size) float32."""
        pixels: np.ndarray = self.tower.prepare(item, name)
        return pixels

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows."""
        import torch

        from diptych.encoders.dual_encoder import unit_rows

        device = next(self.tower.parameters()).device
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(device, memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
                features = self.tower.features(pixels)
            return unit_rows(features.float().cpu().numpy(), "image", list(names))


def _preprocessing(name: str, options: BackboneOptions) -> Any:
    """What the network sees."""
    import math

    import timm
    from timm.data import resolve_data_config

    from diptych.core.errors import UnknownNameError
    from diptych.encoders.preprocessing import Preprocessing

    if not timm.is_model(name):
        raise UnknownNameError("timm backbone", name, timm.list_models(f"{name[:4]}*"))
    pretrained = timm.get_pretrained_cfg(name)
    said = resolve_data_config({}, pretrained_cfg=pretrained.to_dict() if pretrained else {})
    size = options.size or int(said["input_size"][1])
    resize = options.resize or (options.size or math.floor(size / said["crop_pct"]))
    interpolation = options.interpolation or said["interpolation"]
    if interpolation not in ("bilinear", "bicubic"):
        raise UsageError(
            f"timm prepares pictures for {name} by {interpolation} interpolation",
            "give the image option interpolation: bilinear or bicubic",
        )
    if resize < size:
        raise UsageError(
            f"pictures resized to {resize} and cut to {size} pixels", "give resize of at least size"
        )
    return Preprocessing(
        size=size,
        resize=resize,
        interpolation=interpolation,
        mean=options.mean or said["mean"],
        std=options.std or said["std"],
    )


def _make(rest: str, options: BackboneOptions, precision: Precision) -> PictureEncoder:
    if not rest:
        raise UsageError("backbone without a name", "give backbone:NAME, a network of timm")
    return BackbonePictures.load(rest, options, precision)


PICTURES.add(
    PictureKind(
        "backbone",
        "backbone:NAME",
        "pooled features of a frozen classifier of timm",
        "Wightman, PyTorch Image Models, 2019",
        BackboneOptions,
        _make,
    )
)


class DualPictures(PictureEncoder):
    """The image side of a dual encoder."""

    kind: ClassVar[str] = "dual"

    def __init__(self, encoder: DualEncoder, source: str) -> None:
        from diptych.encoders.targets.kinds.dual import DualTexts

        self.encoder, self.source = encoder, source
        self.options: dict[str, Any] = {}
        self._texts = DualTexts(encoder, source)

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.encoder.width

    @property
    def fingerprint(self) -> str:
        """The encoder's own."""
        return self.encoder.fingerprint

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        """What an item is."""
        return self.encoder.takes

    @property
    def texts(self) -> TargetModel:
        """The encoder's other side."""
        return self._texts

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {"kind": self.kind, "source": self.source, **self.encoder.describe()}

    def prepared(self, item: Any, name: str) -> Any:
        """What the encoder prepares."""
        return self.encoder.prepared(item, name)

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows."""
        return self.encoder.encode_prepared(prepared, names)


def _dual_make(rest: str, options: NoOptions, precision: Precision) -> PictureEncoder:
    if precision != "float32":
        raise UsageError(f"precision {precision} with a dual encoder", "leave it out: its rows are float32")
    source = rooted(rest)
    return DualPictures(DualEncoder.load(source), source)


PICTURES.add(
    PictureKind(
        "dual",
        "FOLDER or PREFIX:NAME",
        "the image side of a dual encoder (CLIP as published); its text side then reads categories, too",
        "Radford et al. 2021",
        NoOptions,
        _dual_make,
    )
)


_VERSION = 1
"""Of the description: another one makes other rows."""


class GridPictures(PictureEncoder):
    """Colours and edges on a grid."""

    kind: ClassVar[str] = "grid"
    source = "grid"

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    @property
    def width(self) -> int:
        """Length of a row."""
        return GRID_WIDTH

    @property
    def fingerprint(self) -> str:
        """Of its version."""
        return fingerprint(self.kind, _VERSION, GRID_WIDTH)

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {
            "kind": self.kind,
            "source": self.source,
            "model": "colours and edges on an 8 × 8 grid: a stand-in without weights",
            "width": self.width,
            "fingerprint": self.fingerprint,
        }

    def prepared(self, item: Any, name: str) -> np.ndarray:
        """The row itself."""
        from diptych.encoders.inputs import as_picture

        return describe_grid(as_picture(item, name))

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows."""
        return np.stack(prepared)


def _grid_make(rest: str, options: NoOptions, precision: Precision) -> PictureEncoder:
    if rest:
        raise UsageError(f"grid takes nothing behind it, got {rest!r}", "give grid alone")
    return GridPictures()


PICTURES.add(
    PictureKind(
        "grid",
        "grid",
        "colours and edges on an 8 × 8 grid: a stand-in without weights, which runs anywhere",
        "Dalal and Triggs 2005; Swain and Ballard 1991",
        NoOptions,
        _grid_make,
    )
)
