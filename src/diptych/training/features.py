"""Features of a frozen backbone, computed once per image and view; trainings and validations read them."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import Field

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import NumericalError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.data.images import split_overlay
from diptych.data.loading import default_workers, picture_contents
from diptych.data.row_store import RowPlan, RowStore
from diptych.encoders.image_tower import ImageTower, RegionTower
from diptych.encoders.inputs import weights_fingerprint
from diptych.encoders.preprocessing import Augmentation

logger: logging.Logger = logging.getLogger(__name__)

_BLOCK_IMAGES = 32


class FeatureOptions(Options):
    """Options of cached features."""

    views: int = Field(0, ge=0, le=1000)  # random crops stored per image next to the central one
    augmentation: Augmentation = Augmentation()  # what a random view is
    precision: Literal["float32", "bfloat16"] = "float32"  # of the backbone; bfloat16: 2 to 3 digits
    storage: Literal["float32", "float16"] = "float32"  # on disk
    seed: int = 0  # of the random views


@dataclass(frozen=True, eq=False)
class FeatureStore(Artifact, kind="features", version=2, mapped=("rows",)):
    """(n, 1 + views, features) backbone features; view 0 is the central crop. Open one with :meth:`of`."""

    options: FeatureOptions
    rows: np.ndarray
    folder: Path = field(init=False)

    @classmethod
    def of(
        cls,
        tower: ImageTower | RegionTower,
        collection: Collection,
        root: Path | str,
        options: FeatureOptions,
    ) -> Self:
        """Open the store of this tower and these images, computing what is not there yet."""
        if isinstance(tower, RegionTower) or collection.holds == "regions":
            raise UsageError(
                f"features are cached from images; the tower takes {tower.takes}, "
                f"{collection.name} holds {collection.holds}",
                "leave [features] out of the recipe: region features are read as they are",
            )
        contents = picture_contents(collection)
        folder = Path(root) / _key(tower, contents, options)
        with taking_turns(folder):
            if not cls.is_at(folder):
                block = max(1, _BLOCK_IMAGES // (1 + options.views)) * 4
                shape = (1 + options.views, tower.feature_width)
                plan = RowPlan({}, collection.n_images, shape, block, options.storage, "features")
                store = RowStore.begin(folder, plan)
                logger.info("features %s: %d of %d are there", folder.name, store.done(), plan.count)
                _compute(tower, collection, contents, options, store)
                store.finish(lambda rows: cls(options, rows))
        return cls.open(folder)


def _key(tower: ImageTower, contents: list[str], options: FeatureOptions) -> str:
    # The seed and the augmentation of views that do not exist change nothing.
    settings = options.model_dump(
        mode="json", include=None if options.views else {"views", "precision", "storage"}
    )
    return fingerprint(
        weights_fingerprint(tower.backbone.state_dict()),
        tower.config.grid,
        tower.config.backbone,
        tower.config.backbone_options,
        tower.config.preprocessing.model_dump(mode="json"),
        settings,
        contents,
    )


def _compute(
    tower: ImageTower, collection: Collection, contents: list[str], options: FeatureOptions, store: RowStore
) -> None:
    preprocessing = tower.config.preprocessing
    device = next(tower.parameters()).device
    was_training = tower.training
    tower.eval()
    tower.backbone.to(memory_format=torch.channels_last)

    def views_of(row: int) -> np.ndarray:
        # The overlay of an image that has one is over every view; ``contents`` knows it.
        image, overlay = split_overlay(collection.item(row))
        views = [preprocessing(image, overlay)]
        for view in range(1, options.views + 1):
            # Seeded by the image's content: its views do not depend on its place in the collection.
            random = np.random.default_rng([options.seed, view, int(contents[row], 16)])
            views.append(preprocessing.augmented(image, options.augmentation, random, overlay))
        return np.stack(views)

    plan, missing = store.plan, store.missing().tolist()
    ahead = plan.read_blocks(views_of, missing, default_workers(), device.type != "cpu")
    with task("computing features", plan.count, "images", store.done()) as bar, store, torch.inference_mode():
        for number, views in zip(missing, ahead, strict=True):
            rows = plan.rows_of(number)
            pixels = torch.from_numpy(np.concatenate(views)).to(device, memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
                features = tower.features(pixels).float().cpu().numpy()
            stored = features.reshape(len(rows), *plan.shape).astype(options.storage)
            bad = np.flatnonzero(~np.isfinite(stored).all(axis=(1, 2)))
            if len(bad):
                raise NumericalError(
                    f"features of {collection.image_ids[rows[int(bad[0])]]} are not finite",
                    "store float32 instead of float16, or check the backbone's weights",
                )
            store.write(number, stored)
            bar.advance(len(rows))
    tower.train(was_training)
