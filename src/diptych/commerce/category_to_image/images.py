"""Embeddings of product images by a frozen encoder: a dual encoder, a timm backbone, or a grid without weights."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image as pillow
from PIL.Image import Image

from diptych.commerce.catalogue import Catalogue
from diptych.core.context import track
from diptych.core.errors import ImageError, MismatchError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.loading import NO_PICTURE, batched, read_ahead
from diptych.data.row_store import keyed_rows, release_pages, text_keys
from diptych.encoders.dual_encoder import DualEncoder, unit_rows
from diptych.encoders.given_rows import GivenRows
from diptych.encoders.inputs import as_picture, pick_device, weights_fingerprint
from diptych.encoders.preprocessing import Preprocessing

logger: logging.Logger = logging.getLogger(__name__)

GRID_WIDTH = 8 * 8 * (3 + 8) + 4**3  # of 8 × 8 cells a colour and 8 orientations, and 4 shades per channel
_WHITE = 240  # a pixel whose channels are all at least this is of the page
_MAX_SIDE = 8192  # of a square page: an image of 100,000 × 10 pixels would need 30 GB of white around it
_BATCH = 64


def describe_grid(image: Image) -> np.ndarray:
    """(768,) float32 of unit length: mean colour and edges by orientation of 8 × 8 cells, and a colour histogram.

    White margins are cut, what is left is set in the middle of a white square. The three parts have the same weight;
    white counts as nothing in colours and histogram, unless the image is white altogether.

    Sources: Dalal and Triggs, Histograms of Oriented Gradients for Human Detection, CVPR 2005; Swain and Ballard,
    Color Indexing, IJCV 1991.
    """
    box = pillow.fromarray(np.asarray(image).min(axis=2) < _WHITE).getbbox()
    image = image if box is None else image.crop(box)
    if max(image.size) > _MAX_SIDE:
        width, height = (max(1, round(side * _MAX_SIDE / max(image.size))) for side in image.size)
        image = image.resize((width, height), pillow.Resampling.BILINEAR, reducing_gap=2.0)
    side = max(image.size)
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    pixels = np.asarray(page.resize((64, 64), pillow.Resampling.BILINEAR, reducing_gap=2.0))
    down, right = np.gradient(pixels @ np.array([0.299, 0.587, 0.114]))
    turn = (np.arctan2(down, right) / np.pi) % 1.0  # an edge and its opposite are one orientation
    spread = np.zeros((64, 64, 8))
    bins = np.minimum((turn * 8).astype(np.int64), 7)
    np.put_along_axis(spread, bins[..., None], np.hypot(down, right)[..., None], axis=2)
    flat = pixels.reshape(-1, 3)
    inked = flat[flat.min(axis=1) < _WHITE]
    shades = (inked if len(inked) else flat).astype(np.int64) * 4 // 256
    histogram = np.bincount(shades @ np.array([16, 4, 1]), minlength=64).astype(np.float64)
    # Roots, so that one hard edge does not outshine all others.
    parts = _by_cell(1.0 - pixels / 255.0), np.sqrt(_by_cell(spread)), np.sqrt(histogram)
    row = np.concatenate([part / max(float(np.linalg.norm(part)), 1e-12) for part in parts])
    return np.asarray(row / np.linalg.norm(row), dtype=np.float32)


def _by_cell(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.reshape(8, 8, 8, 8, -1).sum(axis=(1, 3)).ravel())


class Grid:
    """Colours and edges on an 8 × 8 grid: a stand-in without weights."""

    takes, width, fingerprint = "pictures", GRID_WIDTH, fingerprint("grid", 1, GRID_WIDTH)

    def prepared(self, item: Any, position: int | str) -> np.ndarray:
        return describe_grid(as_picture(item, position))

    def encode_prepared(self, prepared: Sequence[Any], positions: Sequence[str]) -> np.ndarray:
        return np.stack(prepared)

    def describe(self) -> dict[str, Any]:
        return {"kind": "grid", "model": "colours and edges on an 8 × 8 grid: a stand-in without weights"}


class BackboneOptions(Preprocessing):
    """Options of a backbone; of its preprocessing those that are not given are as timm has them for the network."""

    weights: Path | None = None  # a safetensors file of its state dict; fetched by timm when not given


class Backbone:
    """The pooled features of a frozen timm network."""

    takes = "pictures"

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        import timm
        from timm.data import resolve_data_config

        from diptych.encoders.image_tower import ImageTower, ImageTowerConfig

        if not timm.is_model(name):
            raise UnknownNameError("timm backbone", name, timm.list_models(f"{name[:4]}*"))
        pretrained = timm.get_pretrained_cfg(name)
        own = resolve_data_config({}, pretrained_cfg=pretrained.to_dict() if pretrained else {})
        side = own["input_size"][1]
        usual: dict[str, Any] = {key: own[key] for key in ("interpolation", "mean", "std")}
        usual |= {"size": side, "resize": given.get("size", int(side / own["crop_pct"]))}
        options = BackboneOptions.read(usual | dict(given), f"image options of backbone:{name}")
        if options.resize < options.size:
            problem = f"images resized to {options.resize} and cut to {options.size} pixels"
            raise UsageError(problem, "give resize of at least size")
        weights = None if options.weights is None else str(options.weights.expanduser().resolve())
        seen = options.model_dump(exclude={"weights"}, mode="json")
        look: dict[str, Any] = {"backbone": name, "preprocessing": seen, "weights": weights}
        tower = ImageTower(ImageTowerConfig(**look, pretrained=weights is None), 2)  # its head is not used
        self._device = pick_device(None)
        self._tower = tower.eval().requires_grad_(False).to(self._device)
        self.width, self.prepared = tower.feature_width, tower.prepare
        self.fingerprint: str = fingerprint(
            "backbone", weights_fingerprint(tower.backbone.state_dict()), name, {}, seen
        )
        self.options = seen | ({} if weights is None else {"weights": weights})

    def encode_prepared(self, prepared: Sequence[Any], positions: Sequence[str]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared))
            pixels = pixels.to(self._device, memory_format=torch.channels_last)
            return unit_rows(self._tower.features(pixels).cpu().numpy(), "image", positions)

    def describe(self) -> dict[str, Any]:
        return {"kind": "backbone", "weights": "timm's own", **self.options, **self._tower.describe()}


ImageEncoder: TypeAlias = DualEncoder | Grid | Backbone


def open_image_encoder(source: str, options: Mapping[str, Any] | None = None) -> ImageEncoder:
    """Open ``grid``, ``backbone:NAME``, or whatever ``DualEncoder.load`` takes."""
    name, _, rest = source.partition(":")
    if name == "backbone":
        return Backbone(rest, options or {})
    Options.read(dict(options or {}), f"image options of {source}")
    return Grid() if source == "grid" else DualEncoder.load(source)


def image_rows(encoder: ImageEncoder, catalogue: Catalogue, root: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, width) float32 embeddings of products' images, memory-mapped, and (n,) which products have one.

    They are stored under the fingerprint of the image's bytes: another split, or a shop with new products, computes
    what is new. Zeros stand for an image that is not there or cannot be read.
    """
    collection, n = catalogue.collection, len(catalogue)
    if encoder.takes != collection.holds:
        problem = f"the encoder takes {encoder.takes}, {catalogue.name} holds {collection.holds}"
        raise MismatchError(problem, "choose another image encoder")
    if isinstance(encoder, GivenRows) or not n:
        given, there = np.zeros((n, encoder.width), dtype=np.float32), np.flatnonzero(catalogue.pictured)
        if isinstance(encoder, GivenRows) and len(there):
            part = collection.subset(catalogue.picture_rows[there])
            given[there] = next(encoder.blocks(part, "image", [range(len(there))]))
        return given, np.asarray(given.any(axis=1))

    def attempt(read: Callable[[int], Any], product: int, otherwise: Any = None) -> Any:
        try:
            row = int(catalogue.picture_rows[product])
            return otherwise if row < 0 else read(row)
        except ImageError as error:
            name = catalogue.ids[product]
            logger.warning("the image of product %r cannot be read: %s", name, error.message)
            return otherwise

    def content(row: int) -> str:
        return collection.source.content(int(collection.source_rows[row]))

    def prepared(product: int) -> Any:
        return attempt(lambda row: encoder.prepared(collection.item(row), catalogue.ids[product]), product)

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        ahead = read_ahead(prepared, places.tolist())
        for batch in batched(zip(range(len(places)), ahead, strict=True), _BATCH):
            rows = np.zeros((len(batch), encoder.width), dtype=np.float32)
            if good := {at: item for at, (_, item) in enumerate(batch) if item is not None}:
                names = [catalogue.ids[places[batch[at][0]]] for at in good]
                rows[[*good]] = encoder.encode_prepared([*good.values()], names)
            yield np.array([number for number, _ in batch]), rows

    contents = read_ahead(lambda product: attempt(content, product, NO_PICTURE), range(n))
    keys = text_keys(track(contents, "reading images", n, "images"))
    folder = root / encoder.fingerprint
    rows, _ = keyed_rows(folder, keys, encoder.width, make, doing="encoding images", unit="images")
    has: np.ndarray = np.asarray(rows.any(axis=1))
    release_pages(rows)
    return rows, has
