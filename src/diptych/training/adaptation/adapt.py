"""A dual encoder adapted to another kind of data, from a few pairs of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import MismatchError
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.loading import batched, read_ahead
from diptych.encoders.adapted import LinearlyAdapted, LinearMaps, check_adaptable
from diptych.encoders.dual_encoder import DualEncoder
from diptych.training.adaptation.fit import Fitted, fit_linear
from diptych.training.adaptation.options import AdaptationOptions, Method
from diptych.training.adaptation.pairs import Captions, draw_pairs

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
    """Learn a linear map per side from a few pictures and their captions.

    The pairs are encoded once; learning takes seconds on a processor. With no pairs the encoder's rows
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
    with task("embedding pictures", len(rows), "pictures") as bar:
        for items in batched(read_ahead(collection.item, rows.tolist()), _BATCH):
            found.append(encoder.encode_images(items))
            bar.advance(len(items))
    return np.concatenate(found)


def _chosen(fitted: Fitted) -> dict[str, Any]:
    """The strength, JSON-able, and how it came about."""
    return {
        "strength": None if fitted.strength == np.inf else fitted.strength,
        "held_out_losses": {
            "as it is" if strength == np.inf else f"{strength:g}": round(loss, 4)
            for strength, loss in fitted.losses.items()
        },
    }
