"""Measure an encoder without and with the shortcuts that it was trained with, on the same split.

Only shortcuts on both sides have a second condition: what is on only one side links nothing, and is
evaluated without, as published.

Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), section 4.3, evaluation method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.table import Table, Tabular
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.result import BOTH, Result
from diptych.metrics import DEFAULT_MEASURES, measure

WITH = "with-shortcuts"  # ends the name of what was embedded or evaluated with shortcuts


@dataclass(frozen=True, eq=False)
class BothConditions(Tabular):
    """Retrieval of one encoder on one split."""

    without: Result
    with_shortcuts: Result | None = None  # None where training had none on both sides
    shortcuts: str = ""  # what they are, in one line; empty without any

    def tables(self) -> list[Table]:
        """Return every measure and direction, both conditions and chance side by side."""
        rows = []
        for direction, given in self.without.scores.items():
            for name, score in given.items():
                show, other = measure(name).show, self.with_shortcuts
                second = "–" if other is None else show(other.value(name, direction))
                way = "" if direction == BOTH else direction
                rows.append((name, way, show(score.value), second, show(score.chance)))
        columns = ("measure", "direction", "without shortcuts", "with", "chance")
        return [Table.of(f"with the shortcuts of training: {self.shortcuts}", "", columns, rows)]

    def protocol_line(self) -> str:
        line = self.without.protocol_line()
        return f"{line}; with shortcuts: {self.shortcuts}" if self.with_shortcuts is not None else line


def evaluate_both(
    encoder: DualEncoder,
    collection: Collection,
    split: str,
    embeddings: Path,
    evaluations: Path,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    shortcuts: Shortcuts | None,
    name: str | None = None,
    without: Result | None = None,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> BothConditions:
    """Embed and measure a split without shortcuts, and with those given; None for none on both sides."""
    for option in ("positives", "ground_truth"):
        if options.get(option) is not None:
            text = f"{option} are of what was embedded without shortcuts"
            raise UsageError(text, "evaluate each condition separately with evaluate_encoded")
    part, name = collection.split(split), name or safe_name(f"{collection.name}-{split}")
    if without is None:
        encoded = encode_collection(encoder, part, embeddings / name, split)
        without = evaluate_encoded(encoded, evaluations / name, measures, about=about, **options)
    if shortcuts is None:
        return BothConditions(without)
    name = f"{name}-{WITH}"
    carrying = encode_collection(
        encoder, shortcuts.injected(part, encoder.with_endings), embeddings / name, split
    )
    line = shortcuts.line().removeprefix("shortcuts: ")
    result = evaluate_encoded(
        carrying, evaluations / name, measures, about={**(about or {}), "shortcuts": line}, **options
    )
    return BothConditions(without, result, line)
