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

from diptych.analysis.information.audit import Audit, Encoded, audit
from diptych.analysis.information.questions import MOST_ROWS, ProbeName, has_facts
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.draws import draw_uniform
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.evaluation.shortcuts import WITH
from diptych.metrics import Bootstrap

USUAL = ("train", "val", "test")
_IMAGES = int.from_bytes(b"images")


def audit_encoder(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,  # for embeddings, which are used again when nothing has changed
    *,
    splits: tuple[str, str, str] = USUAL,  # that probes are trained, chosen and tested on
    shortcuts: Shortcuts | None = None,  # what the encoder was trained with; both conditions are audited
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    seed: int = 0,  # of the training images that are drawn, of probes and of control tasks
    most: int = MOST_ROWS,  # training images, and training rows per question
    samples: int = 1000,  # bootstrap resamples of the intervals
    tested: Collection | None = None,  # other data to test the probes on, instead of the test split
    about: dict[str, Any] | None = None,  # what else the figures depend on
) -> Audit:
    """Audit any encoder on a collection that says facts, or on the words of any other."""
    folder, collection = Path(folder), collection.divided()
    collection.require_captions("an audit")
    needed = splits if tested is None else splits[:2]
    if missing := [name for name in needed if name not in collection.split_sizes]:
        text = f"{collection.name} has no split {missing[0]!r}; an audit trains, chooses and tests"
        raise UsageError(text, f"it has: {', '.join(collection.split_sizes)}")
    plain = [collection.split(name) for name in needed]
    names = [safe_name(f"{collection.name}-{name}") for name in needed]
    if tested is not None:
        plain.append(tested)
        names.append(safe_name(f"{tested.name}-{tested.text_fingerprint[:8]}"))
        if not has_facts(tested):  # its words are then probed, of the probes' data too
            plain = [replace(part, records=None, caption_records=None) for part in plain]
    if (n := plain[0].n_images) > most:
        names[0] += f"-{most}-of-{n}-seed-{seed}"
        order = np.argsort(draw_uniform(seed, _IMAGES, np.arange(n)), kind="stable")
        plain[0] = plain[0].subset(np.sort(order[:most]))

    def encoded(parts: list[Collection], ending: str = "") -> tuple[Encoded, ...]:
        rows = [
            encode_collection(encoder, part, folder / f"{name}{ending}", split)
            for part, name, split in zip(parts, names, splits, strict=True)
        ]
        return tuple(
            Encoded(part, one.images.rows, one.texts.rows) for part, one in zip(parts, rows, strict=True)
        )

    conditions = {"without": encoded(plain)}
    if shortcuts is not None:
        parts = [shortcuts.injected(part, encoder.with_endings) for part in plain]
        conditions["with"] = encoded(parts, f"-{WITH}")
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
