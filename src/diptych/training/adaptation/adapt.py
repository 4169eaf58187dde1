"""Adapt a dual encoder to another kind of data, from a few pairs of it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.core.context import task
from diptych.core.draws import draw_below, draw_uniform
from diptych.core.errors import MismatchError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.loading import batched, read_ahead
from diptych.encoders.adapted import LinearlyAdapted, LinearMaps, check_adaptable
from diptych.encoders.dual_encoder import DualEncoder
from diptych.training.adaptation.fit import AdaptationOptions, Fitted, Method, fit_linear

# Of each image one caption, drawn too, or all it has.
Captions = Literal["one", "all"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Images with their captions, as rows of a collection.

    Attributes:
        images: (n,) int64 rows of images, each once.
        captions: (m,) int64 rows of captions.
        caption_image: (m,) int64 place in ``images`` of each caption's image.
    """

    images: np.ndarray
    captions: np.ndarray
    caption_image: np.ndarray

    @property
    def positives(self) -> np.ndarray:
        """Return (n, m) boolean: which caption describes which image."""
        return np.asarray(np.arange(len(self.images))[:, None] == self.caption_image[None])


def draw_pairs(collection: Collection, pairs: int, seed: int = 0, captions: Captions = "one") -> Pairs:
    """Draw images that have captions; those of fewer pairs of the same seed are among those of more."""
    if captions not in ("one", "all"):
        raise UsageError(f"captions {captions!r}", "'one' or 'all' of each image's")
    collection.require_captions("adaptation")
    able = np.flatnonzero(collection.captions_per_image > 0)
    if not 0 <= pairs <= len(able):
        raise UsageError(
            f"{pairs:,} pairs of {collection.name}, which has {len(able):,} images with captions to draw from",
            f"ask for 0 to {len(able):,} pairs",
        )
    order = np.argsort(draw_uniform(seed, 0, able), kind="stable")
    images = able[order][:pairs].astype(np.int64)
    starts, counts = collection.caption_start[images], collection.captions_per_image[images]
    if captions == "one":
        return Pairs(images, starts + draw_below(counts, seed, 1, images), np.arange(pairs))
    places = np.repeat(np.arange(pairs), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(images, starts[places] + within, places)


_BATCH = 64


def adapt_linear(
    encoder: DualEncoder,
    collection: Collection,
    *,
    pairs: int = 16,
    seed: int = 0,
    captions: Captions = "one",
    method: Method = "gaussian",
    strength: float | None = None,
) -> LinearlyAdapted:
    """Learn a linear map per side from a few images and their captions.

    The pairs are encoded once; learning takes seconds on a CPU. With no pairs the encoder's rows
    are what they were, to the bit.
    """
    check_adaptable(encoder)
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
            "read the data with the reader's option regions=FILE.npy, or without it",
        )
    options = AdaptationOptions.read({"method": method, "strength": strength}, "adaptation")
    drawn = draw_pairs(collection, pairs, seed, captions)
    texts = [collection.captions[row] for row in drawn.captions.tolist()]
    if pairs:
        images = _image_rows(encoder, collection, drawn.images)
        fitted = fit_linear(images, encoder.encode_texts(texts), drawn.positives, options)
    else:
        fitted = Fitted(LinearMaps.identity(encoder.width), np.inf, {})
    about = {
        "dataset": collection.name,
        "split": ", ".join(sorted(set(collection.splits))),
        "pairs": pairs,
        "captions": captions,
        "seed": seed,
        "drawn": fingerprint([collection.image_ids[row] for row in drawn.images.tolist()], texts),
        "method": options.method,
        **_chosen(fitted),
    }
    return LinearlyAdapted(encoder, fitted.maps, about)


def _image_rows(encoder: DualEncoder, collection: Collection, rows: np.ndarray) -> np.ndarray:
    found = []
    with task("embedding images", len(rows), "images") as bar:
        for items in batched(read_ahead(collection.item, rows.tolist()), _BATCH):
            found.append(encoder.encode_images(items))
            bar.advance(len(items))
    return np.concatenate(found)


def _chosen(fitted: Fitted) -> dict[str, Any]:
    return {
        "strength": None if fitted.strength == np.inf else fitted.strength,
        "held_out_losses": {
            "as it is" if strength == np.inf else f"{strength:g}": round(loss, 4)
            for strength, loss in fitted.losses.items()
        },
    }
