"""Audit an encoder: its embeddings of three splits, with and without shortcuts, and what they hold.

An encoder that was trained with shortcuts is audited twice: on images and captions with them, as it was
trained, and without them, which shows what is left when they are taken away. Each condition's probes
are trained on embeddings of that condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.information import MOST_ROWS, Audit, Encoded, ProbeName, audit
from diptych.analysis.information.answers import has_facts
from diptych.analysis.shortcuts import Shortcuts
from diptych.core.draws import draw_uniform
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation.shortcuts import WITH
from diptych.metrics import Bootstrap

USUAL = ("train", "val", "test")
"""Names of splits, unless others are given."""

_IMAGES = int.from_bytes(b"images")


def audit_encoder(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,
    *,
    splits: tuple[str, str, str] = USUAL,
    shortcuts: Shortcuts | None = None,
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    seed: int = 0,
    most: int = MOST_ROWS,
    samples: int = 1000,
    tested: Collection | None = None,
    about: dict[str, Any] | None = None,
) -> Audit:
    """Audit any encoder on a collection that says facts, or on the words of any other.

    Args:
        encoder: makes the rows; its embeddings are kept and used again when nothing has changed.
        collection: all splits.
        folder: one folder of embeddings per split and condition goes there.
        splits: names of what probes are trained, chosen and tested on.
        shortcuts: what the encoder was trained with; both conditions are audited.
        probes: which.
        seed: of the training images that are drawn, of probes and of control tasks.
        most: training images, and training rows per question.
        samples: bootstrap resamples of the intervals.
        tested: other data that the probes of ``collection`` are tested on, instead of its test split.
        about: what else the figures depend on.

    Raises:
        UsageError: a split that the collection does not have.
        DataError: nothing can be asked of the rows.
    """
    folder = Path(folder)
    needed = splits if tested is None else splits[:2]
    if missing := [name for name in needed if name not in collection.split_sizes]:
        raise UsageError(
            f"{collection.name} has no split {missing[0]!r}; an audit needs splits to train, choose and test",
            f"it has: {', '.join(collection.split_sizes)}",
        )
    plain = [collection.split(name) for name in needed]
    names = [safe_name(f"{collection.name}-{name}") for name in needed]
    if tested is not None:
        plain.append(tested)
        names.append(safe_name(f"{tested.name}-{tested.text_fingerprint[:8]}"))
        if not has_facts(tested):  # its words are asked then, of the probes' data too
            plain = [replace(part, records=None, caption_records=None) for part in plain]
    drawn = _drawn(plain[0], most, seed)
    if drawn is not None:
        names[0] += f"-{most}-of-{plain[0].n_images}-seed-{seed}"
        plain[0] = plain[0].subset(drawn)
    conditions = {
        "without": tuple(
            _encoded(part, encode_collection(encoder, part, folder / place, split))
            for part, split, place in zip(plain, splits, names, strict=True)
        )
    }
    if shortcuts is not None:
        parts = [shortcuts.injected(part, encoder.with_endings) for part in plain]
        conditions["with"] = tuple(
            _encoded(part, encode_collection(encoder, part, folder / f"{place}-{WITH}", split))
            for part, split, place in zip(parts, splits, names, strict=True)
        )
    return audit(
        conditions,  # type: ignore[arg-type]
        probes,
        seed=seed,
        most=most,
        bootstrap=Bootstrap(samples),
        about={
            "dataset": collection.name if tested is None else f"{tested.name}, probes of {collection.name}",
            "splits": ", ".join(needed),
            "encoder": encoder.fingerprint,
            "shortcuts": None if shortcuts is None else shortcuts.line().removeprefix("shortcuts: "),
            **(about or {}),
        },
    )


def _drawn(part: Collection, most: int, seed: int) -> np.ndarray | None:
    """Return the rows of ``most`` images in their order; None for all of them."""
    if part.n_images <= most:
        return None
    return np.sort(np.argsort(draw_uniform(seed, _IMAGES, np.arange(part.n_images)), kind="stable")[:most])


def _encoded(part: Collection, rows: EncodedCollection) -> Encoded:
    return Encoded(part, rows.images.rows, rows.texts.rows)
