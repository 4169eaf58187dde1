"""The embedding store: frozen backbone features, computed once, memory-mapped, resumable.

A store is keyed by what is in it: the backbone's weights, the preprocessing and augmentation, the
precision, and every picture's bytes. Beside the central view it can hold several random views per
picture, so that augmentation survives caching. Killed half-way, it goes on where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from diptych.core.context import task
from diptych.core.errors import NumericalError, StorageError, UsageError
from diptych.core.files import create_array, write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import file_errors, map_array, read_json
from diptych.data.collection import Collection
from diptych.data.contents import picture_contents
from diptych.data.loading import batched, default_workers, read_ahead
from diptych.data.overlay import split_overlay
from diptych.encoders.image_tower import ImageTower
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.region_tower import RegionTower

logger = logging.getLogger(__name__)

_FORMAT = 1
_BLOCK_PICTURES = 32


class FeatureOptions(BaseModel):
    """How features are cached.

    Attributes:
        views: random crops stored per picture beside the central one.
        augmentation: what a random view is.
        precision: ``float32``, or ``bfloat16`` arithmetic in the backbone: faster on processors that
            have it, with two to three significant digits.
        storage: ``float32`` or ``float16`` on disk.
        seed: of the random views.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    views: int = Field(0, ge=0, le=1000)
    augmentation: Augmentation = Augmentation()
    precision: Literal["float32", "bfloat16"] = "float32"
    storage: Literal["float32", "float16"] = "float32"
    seed: int = 0


class FeatureStore:
    """(n, 1 + views, features) backbone features; view 0 is the central crop.

    Open one with :meth:`FeatureStore.of`.
    """

    def __init__(self, folder: Path, rows: np.ndarray) -> None:
        self.folder = folder
        self.rows = rows

    @property
    def views(self) -> int:
        """Random views per picture."""
        return int(self.rows.shape[1]) - 1

    @classmethod
    def of(
        cls,
        tower: ImageTower | RegionTower,
        collection: Collection,
        root: Path | str,
        options: FeatureOptions,
    ) -> FeatureStore:
        """Open the store of this tower and these pictures, computing what is not there yet."""
        if isinstance(tower, RegionTower) or collection.holds == "regions":
            raise UsageError(
                f"features are cached from pictures; the tower takes {tower.takes}, "
                f"{collection.name} holds {collection.holds}",
                "leave [features] out of the recipe: region features are read as they are",
            )
        contents = picture_contents(collection)
        key = _key(tower, contents, options)
        folder = Path(root) / key
        shape = (collection.n_images, 1 + options.views, tower.feature_width)
        done = _finished(folder, shape, options)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "features.npy"
            if done is None:
                rows = create_array(path, options.storage, shape)
                done = 0
                _mark(folder, shape, options, done)
            elif done < shape[0]:
                rows = map_array(path, options.storage, shape, fix="delete the folder", mode="r+")
            if done < shape[0]:
                logger.info("features %s: %d of %d pictures are there", key, done, shape[0])
                _compute(tower, collection, contents, options, rows, done, folder)
        except OSError as error:
            raise StorageError(
                f"cannot write {folder}: {error.strerror or error}",
                "free some space or set another feature folder; what is computed stays",
            ) from error
        return cls(folder, map_array(folder / "features.npy", fix="delete the folder"))


def _key(tower: ImageTower, contents: list[str], options: FeatureOptions) -> str:
    weights = {name: value.detach().cpu().numpy() for name, value in tower.backbone.state_dict().items()}
    settings = options.model_dump(mode="json")
    if not options.augmentation.erasing:
        # Stores from before erasing was known keep their names.
        for name in ("erasing", "erasing_area", "erasing_ratio"):
            del settings["augmentation"][name]
    if options.views == 0:
        settings = {name: settings[name] for name in ("views", "precision", "storage")}
    grid = [] if tower.config.grid is None else [list(tower.config.grid)]  # without it, names are as before
    return fingerprint(
        _FORMAT,
        *grid,
        fingerprint_arrays(weights),
        tower.config.backbone,
        tower.config.backbone_options,
        tower.config.preprocessing.model_dump(mode="json"),
        settings,
        contents,
    )


def _finished(folder: Path, shape: tuple[int, int, int], options: FeatureOptions) -> int | None:
    """How many pictures a store already holds; None when there is no store to go on with."""
    if not (folder / "store.json").is_file() or not (folder / "features.npy").is_file():
        return None
    header = read_json(folder / "store.json")
    rows = map_array(folder / "features.npy", fix="delete the folder")
    with file_errors(folder / "store.json", fix="delete the folder"):
        said, done = header["shape"], int(header["done"])
    if said != list(shape) or rows.shape != shape or rows.dtype != np.dtype(options.storage):
        raise StorageError(f"{folder} holds features of shape {rows.shape}, not {shape}", "delete the folder")
    return done


def _mark(folder: Path, shape: tuple[int, ...], options: FeatureOptions, done: int) -> None:
    header = {"format": _FORMAT, "shape": list(shape), "done": done, **options.model_dump(mode="json")}
    write_json(folder / "store.json", header)


def _compute(
    tower: ImageTower,
    collection: Collection,
    contents: list[str],
    options: FeatureOptions,
    rows: np.ndarray,
    done: int,
    folder: Path,
) -> None:
    preprocessing = tower.config.preprocessing
    device = next(tower.parameters()).device
    was_training = tower.training
    tower.eval()
    tower.backbone.to(memory_format=torch.channels_last)

    def views_of(row: int) -> np.ndarray:
        # The overlay of a picture that has one is over every view; ``contents`` knows it.
        picture, overlay = split_overlay(collection.item(row))
        views = [preprocessing(picture, overlay)]
        for view in range(1, options.views + 1):
            # Seeded by the picture's content: its views do not depend on its place in the collection.
            random = np.random.default_rng([options.seed, view, int(contents[row], 16)])
            views.append(preprocessing.augmented(picture, options.augmentation, random, overlay))
        return np.stack(views)

    per_block = max(1, _BLOCK_PICTURES // (1 + options.views)) * 4
    remaining = range(done, collection.n_images)
    # Beside a graphics card the next block is prepared while the backbone computes this one; on a processor
    # both would take turns on the same cores.
    depth = 4 * default_workers() + (0 if device.type == "cpu" else per_block)
    ahead = read_ahead(views_of, remaining, depth=depth)
    blocks: Iterator[list[np.ndarray]] = batched(ahead, per_block)
    with task("computing features", collection.n_images, "pictures", done) as bar, torch.inference_mode():
        for block in blocks:
            pixels = torch.from_numpy(np.concatenate(block)).to(device, memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
                features = tower.features(pixels).float().cpu().numpy()
            features = features.reshape(len(block), 1 + options.views, -1)
            stored = features.astype(options.storage)
            bad = np.flatnonzero(~np.isfinite(stored).all(axis=(1, 2)))
            if len(bad):
                raise NumericalError(
                    f"features of {collection.image_ids[done + int(bad[0])]} are not finite",
                    "store float32 instead of float16, or check the backbone's weights",
                )
            rows[done : done + len(block)] = stored
            rows.flush()  # type: ignore[attr-defined]
            done += len(block)
            _mark(folder, rows.shape, options, done)
            bar.advance(len(block))
    tower.train(was_training)
