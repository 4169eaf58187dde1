"""Embeddings of product images by a frozen encoder: a dual encoder, a timm backbone, or a grid without weights."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.context import track
from diptych.core.errors import ImageError, MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.loading import NO_PICTURE, batched, read_ahead
from diptych.encoders.dual_encoder import DualEncoder, unit_rows
from diptych.encoders.family import rooted
from diptych.encoders.given_rows import GivenRows
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.row_store import keyed_rows, release_pages, text_keys
from diptych.encoders.targets import TargetModel
from diptych.metrics.runs import blocks

if TYPE_CHECKING:
    from PIL.Image import Image

logger = logging.getLogger(__name__)

Missing = Literal["error", "none"]  # a product without an image that can be read: refused, or a row of zeros

GRID_WIDTH = 8 * 8 * (3 + 8) + 4**3  # of 8 × 8 cells a colour and 8 orientations, and 4 shades per channel
_WHITE = 240  # a pixel whose channels are all at least this is of the page
_MAX_SIDE = 8192  # of a square page: an image of 100,000 × 10 pixels would need 30 GB of white around it
_BATCH = 64
_BLOCK = 8192


def describe_grid(image: Image) -> np.ndarray:
    """(768,) float32 of unit length: mean colour and edges by orientation of 8 × 8 cells, and a colour histogram.

    White margins are cut, what is left is set in the middle of a white square. The three parts have the same weight;
    white counts as nothing in colours and histogram, unless the image is white altogether.

    Sources: Dalal and Triggs, Histograms of Oriented Gradients for Human Detection, CVPR 2005; Swain and Ballard,
    Color Indexing, IJCV 1991.
    """
    from PIL import Image as pillow

    box = pillow.fromarray(np.asarray(image).min(axis=2) < _WHITE).getbbox()
    image = image if box is None else image.crop(box)
    if max(image.size) > _MAX_SIDE:
        scale = _MAX_SIDE / max(image.size)
        smaller = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(smaller, pillow.Resampling.BILINEAR, reducing_gap=2.0)
    side = max(image.size)
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    pixels = np.asarray(page.resize((64, 64), pillow.Resampling.BILINEAR, reducing_gap=2.0))
    parts = (_by_cell(1.0 - pixels / 255.0), _edges(pixels), _histogram(pixels))
    row = np.concatenate([part / max(float(np.linalg.norm(part)), 1e-12) for part in parts])
    unit: np.ndarray = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def _by_cell(values: np.ndarray) -> np.ndarray:
    sums: np.ndarray = values.reshape(8, 8, 8, 8, -1).sum(axis=(1, 3)).ravel()
    return sums


def _edges(pixels: np.ndarray) -> np.ndarray:
    down, right = np.gradient(pixels @ np.array([0.299, 0.587, 0.114]))
    turn = (np.arctan2(down, right) / np.pi) % 1.0  # an edge and its opposite are one orientation
    spread = np.zeros((64, 64, 8))
    bins = np.minimum((turn * 8).astype(np.int64), 7)
    np.put_along_axis(spread, bins[..., None], np.hypot(down, right)[..., None], axis=2)
    edges: np.ndarray = np.sqrt(_by_cell(spread))  # roots, so that one hard edge does not outshine all others
    return edges


def _histogram(pixels: np.ndarray) -> np.ndarray:
    flat = pixels.reshape(-1, 3)
    inked = flat[flat.min(axis=1) < _WHITE]
    shades = (inked if len(inked) else flat).astype(np.int64) * 4 // 256
    return np.sqrt(np.bincount(shades @ np.array([16, 4, 1]), minlength=64).astype(np.float64))


class BackboneOptions(Preprocessing):
    """Options of a backbone; of its preprocessing those that are not given are as timm has them for the network."""

    weights: str | None = None  # a safetensors file of its state dict; fetched by timm when not given
    timm: dict[str, Any] = Field(default_factory=dict)  # for timm.create_model; each also as timm.KEY

    @field_validator("mean", "std", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class ImageEncoder:
    """A frozen encoder of images, and what opens it again."""

    kind: Literal["grid", "backbone", "rows", "dual"]
    source: str
    fingerprint: str
    width: int
    prepare: Callable[[Any, str], Any]  # from an item and its name to what is encoded; in threads
    encode: Callable[[Sequence[Any], Sequence[str]], np.ndarray]  # a batch and its names to (n, width) rows
    about: Mapping[str, Any]  # metadata, JSON-able
    takes: str = "pictures"
    options: Mapping[str, Any] = field(default_factory=dict)
    given: GivenRows | None = None  # embeddings made elsewhere, by image id
    texts: TargetModel | None = None  # its text side, whose embeddings can be compared with those of images

    def describe(self) -> dict[str, Any]:
        """Return the metadata of numbers made of its embeddings, JSON-able."""
        own = {"width": self.width, "fingerprint": self.fingerprint, **self.about}
        return {"kind": self.kind, "source": self.source, **own}


def _grid_of(item: Any, name: str) -> np.ndarray:
    from diptych.encoders.inputs import as_picture

    return describe_grid(as_picture(item, name))


def open_image_encoder(source: str, options: Mapping[str, Any] | None = None) -> ImageEncoder:
    """Open ``grid``, ``backbone:NAME``, or whatever ``DualEncoder.load`` takes."""
    name, _, rest = source.partition(":")
    if name == "backbone":
        return _open_backbone(source, rest, options or {})
    Options.read(dict(options or {}), f"image options of {source}")
    if source == "grid":
        about = {"model": "colours and edges on an 8 × 8 grid: a stand-in without weights"}
        made = fingerprint("grid", 1, GRID_WIDTH)
        return ImageEncoder(
            "grid", source, made, GRID_WIDTH, _grid_of, lambda prepared, names: np.stack(prepared), about
        )
    from diptych.encoders.targets.kinds.dual import DualTexts

    source = rooted(source)
    encoder = DualEncoder.load(source)
    own = (
        source,
        encoder.fingerprint,
        encoder.width,
        encoder.prepared,
        encoder.encode_prepared,
        encoder.describe(),
    )
    if isinstance(encoder, GivenRows):
        return ImageEncoder("rows", *own, takes=encoder.takes, given=encoder)
    return ImageEncoder("dual", *own, takes=encoder.takes, texts=DualTexts(encoder, source))


def _open_backbone(source: str, name: str, given: Mapping[str, Any]) -> ImageEncoder:
    """Return the pooled features of a frozen timm network."""
    import timm
    import torch
    from timm.data import resolve_data_config

    from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
    from diptych.encoders.inputs import pick_device, weights_fingerprint

    if not name:
        raise UsageError("backbone without a name", "give backbone:NAME, a network of timm")
    if not timm.is_model(name):
        raise UnknownNameError("timm backbone", name, timm.list_models(f"{name[:4]}*"))
    pretrained = timm.get_pretrained_cfg(name)
    own = resolve_data_config({}, pretrained_cfg=pretrained.to_dict() if pretrained else {})
    size = own["input_size"][1]
    chosen: dict[str, Any] = {key: own[key] for key in ("interpolation", "mean", "std")}
    chosen |= {"size": size, "resize": given.get("size", int(size / own["crop_pct"])), "timm": {}}
    chosen |= {key: value for key, value in given.items() if not key.startswith("timm.")}
    chosen["timm"] |= {key[5:]: value for key, value in given.items() if key.startswith("timm.")}
    options = BackboneOptions.read(chosen, f"image options of {source}")
    if options.resize < options.size:
        problem = f"images resized to {options.resize} and cut to {options.size} pixels"
        raise UsageError(problem, "give resize of at least size")
    weights = None if options.weights is None else str(Path(options.weights).expanduser().resolve())
    kept = options.model_dump(mode="json", exclude_none=True) | (
        {} if weights is None else {"weights": weights}
    )
    preprocessing = Preprocessing(**options.model_dump(include=set(Preprocessing.model_fields)))
    settings = {"backbone_options": options.timm, "weights": weights, "pretrained": weights is None}
    device = pick_device(None)
    try:  # the width is of a head that is not used
        tower = ImageTower(ImageTowerConfig(backbone=name, preprocessing=preprocessing, **settings), 2)
    except (MismatchError, StorageError) as error:
        raise type(error)(error.message, "check the image options weights and timm") from error
    tower.eval().requires_grad_(False).to(device)
    made = weights_fingerprint(tower.backbone.state_dict())

    def encode(prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(device, memory_format=torch.channels_last)
            return unit_rows(tower.features(pixels).cpu().numpy(), "image", names)

    key = fingerprint("backbone", made, name, options.timm, preprocessing.model_dump(mode="json"))
    about = {"weights": weights or "timm's own", **tower.describe(), "timm": options.timm}
    parts = (key, tower.feature_width, tower.prepare, encode, about)
    return ImageEncoder("backbone", source, *parts, options=kept)


def image_rows(
    encoder: ImageEncoder, catalogue: Catalogue, root: Path, missing: Missing = "error"
) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, width) float32 embeddings of products' images, memory-mapped, and (n,) which products have one.

    They are stored under the fingerprint of the image's bytes: another split, or a shop with new products, computes
    what is new. Zeros stand for an image that is not there or cannot be read, unless ``missing`` is an error.
    """
    collection, n = catalogue.collection, len(catalogue)
    if encoder.takes != collection.holds:
        problem = f"the encoder takes {encoder.takes}, {catalogue.name} holds {collection.holds}"
        raise MismatchError(problem, "choose another image encoder")
    refusal = "leave them out, or let products have none (missing='none')"
    if missing == "error" and not catalogue.pictured.all():
        absent = np.flatnonzero(~catalogue.pictured)
        problem = f"{len(absent):,} of the {n:,} products of {catalogue.name} have no picture"
        raise ImageError(f"{problem}, {catalogue.ids[absent[0]]!r} the first", refusal)
    if not n:
        return np.empty((0, encoder.width), dtype=np.float32), np.empty(0, dtype=bool)

    def content(product: int) -> str:
        row = int(catalogue.picture_rows[product])
        if row < 0:
            return NO_PICTURE
        if encoder.given is not None:
            return collection.image_ids[row]
        try:
            return collection.source.content(int(collection.source_rows[row]))
        except ImageError as error:
            _warn(catalogue, product, error)
            return NO_PICTURE

    def prepared(product: int) -> Any:
        try:
            item = collection.item(int(catalogue.picture_rows[product]))
            return encoder.prepare(item, catalogue.ids[product])
        except ImageError as error:
            return _warn(catalogue, product, error)

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        absent = keys[places] == text_keys([NO_PICTURE])[0]
        yield np.flatnonzero(absent), np.zeros((int(absent.sum()), encoder.width), dtype=np.float32)
        there = np.flatnonzero(~absent)
        if encoder.given is not None:
            part = collection.subset(catalogue.picture_rows[places[there]])
            yield there, next(encoder.given.blocks(part, "image", [range(len(there))]))
            return
        ahead = read_ahead(prepared, places[there].tolist())
        for batch in batched(zip(there, ahead, strict=True), _BATCH):
            rows = np.zeros((len(batch), encoder.width), dtype=np.float32)
            good = [at for at, (_, item) in enumerate(batch) if item is not None]
            if good:
                names = [catalogue.ids[places[batch[at][0]]] for at in good]
                rows[good] = encoder.encode([batch[at][1] for at in good], names)
            yield np.array([number for number, _ in batch]), rows

    keys = text_keys(track(read_ahead(content, range(n)), "reading images", n, "images"))
    folder = root / encoder.fingerprint
    rows, _ = keyed_rows(folder, keys, encoder.width, make, doing="encoding images", unit="images")
    has = np.empty(n, dtype=bool)
    for here in blocks(n, _BLOCK):
        has[here] = rows[here].any(axis=1)
        release_pages(rows)
    if missing == "error" and not has.all():
        unreadable = catalogue.ids[int(np.flatnonzero(~has)[0])]
        raise ImageError(f"the picture of product {unreadable!r} cannot be read", f"replace it; {refusal}")
    return rows, has


def _warn(catalogue: Catalogue, product: int, error: ImageError) -> None:
    logger.warning("the picture of product %r cannot be read: %s", catalogue.ids[product], error.message)
