"""Frozen encoders of titles, attributes and categories: any kind of target model, and a dual encoder's text side."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.row_store import keyed_rows, text_keys
from diptych.encoders.targets import TargetModel

logger = logging.getLogger(__name__)

DEFAULT_WIDTH = 256
"""Of ``lsa``, where no width is given."""

_TOKENS: Final = "titles"
"""Words are read as BM25 reads them, so that "Dresses" and "dress" are one."""

_BATCH = 64


def learning_texts(catalogue: Catalogue) -> list[str]:
    """What ``lsa`` learns from, of a catalogue to train on: each product's title with its attributes, so that words
    of both stand together, and the name of every category of the tree once."""
    products = (
        ". ".join(part for part in (title, *attributes) if part.strip())
        for title, attributes in zip(catalogue.titles, catalogue.attributes, strict=True)
    )
    names = dict.fromkeys(path[-1] for path in catalogue.tree.paths)
    return [*(text for text in products if text), *names]


def make_text_encoder(
    source: str, learn_from: Sequence[str] = (), *, root: Path, precision: str = "float32"
) -> TargetModel:
    """The encoder that a source asks for."""
    from diptych.encoders.targets import TargetOptions, make_target_model

    name, _, rest = source.partition(":")
    if name == "lsa":
        return _lsa(rest, [text for text in learn_from if text.strip()], root)
    if name == "sentence":
        given = {"model": str(Path(rest).expanduser()) if Path(rest).expanduser().is_dir() else rest}
        options = {"kind": "sentence", "precision": precision, **(given if rest else {})}
        return make_target_model(TargetOptions.model_validate(options), [])
    options = {"kind": "dual", "model": source, "precision": precision}
    return make_target_model(TargetOptions.model_validate(options), [])


def _lsa(width: str, texts: list[str], root: Path) -> TargetModel:
    from diptych.core.errors import StorageError
    from diptych.encoders.targets import open_target_model
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    if width and not (width.isdecimal() and int(width) >= 1):
        raise UsageError(f"lsa of width {width!r}", f"give lsa:WIDTH, e.g. lsa:{DEFAULT_WIDTH}")
    if not texts:
        raise UsageError(
            "lsa without texts to learn from", "give learn_from: titles, attributes, category names"
        )
    asked = int(width or DEFAULT_WIDTH)
    folder = root / "lsa" / fingerprint(asked, _TOKENS, iter(texts))
    try:
        return open_target_model(folder)
    except StorageError:  # not there, or damaged: learned again
        model = LatentSemanticAnalysis.learn(texts, asked, or_less=True, tokens=_TOKENS)
    model.save(folder)
    return model


def text_rows(model: TargetModel, texts: Sequence[str], root: Path, unit: str) -> np.ndarray:
    """(n, width) float32 unit rows, one per text, memory-mapped; each distinct text is computed once, ever.

    A blank text has a row of zeros, and so has one of which the model knows no word.
    """
    if not len(texts):
        return np.empty((0, model.width), dtype=np.float32)

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        blank = np.array([not texts[place].strip() for place in places], dtype=bool)
        if blank.any():
            numbers = np.flatnonzero(blank)
            yield numbers, np.zeros((len(numbers), model.width), dtype=np.float32)
        said = np.flatnonzero(~blank)
        for numbers, rows in model.encode_batches([texts[place] for place in places[said]], _BATCH):
            yield said[numbers], rows

    rows, _ = keyed_rows(
        root / model.fingerprint,
        text_keys(texts),
        model.width,
        make,
        doing=f"encoding {unit}",
        unit=unit,
    )
    return rows
