"""Scoring one encoder without and with the shortcuts that it was trained with, on the same split.

Only shortcuts on both sides have a second condition: what is on one side alone links nothing, and is
evaluated without, as published.

Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), section 4.3, evaluation method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from diptych.analysis.shortcuts import Shortcuts
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.encoded import EncodedCollection
from diptych.evaluation import BOTH, Result
from diptych.evaluation.testing import evaluate_encoded
from diptych.metrics import DEFAULT_MEASURES, measure
from diptych.training.recipe import Recipe

WITH = "with-shortcuts"
"""Ends the name of what was embedded or evaluated with shortcuts."""


class ConditionRow(NamedTuple):
    """One measure in both conditions as tables print it; a sum of both directions has no direction."""

    measure: str
    direction: str
    without: str
    with_shortcuts: str
    chance: str


@dataclass(frozen=True, eq=False)
class BothConditions:
    """Retrieval of one encoder on one split.

    Attributes:
        without: pictures and captions as they are.
        with_shortcuts: with the shortcuts of training; None where it had none on both sides.
        shortcuts: what they are, in one line; empty without any.
    """

    without: Result
    with_shortcuts: Result | None = None
    shortcuts: str = ""

    def table(self) -> Iterator[ConditionRow]:
        """Every measure and direction, both conditions and chance side by side."""
        for direction, given in self.without.scores.items():
            for name, score in given.items():
                show = measure(name).show
                second = "–"
                if self.with_shortcuts is not None:
                    second = show(self.with_shortcuts.value(name, direction))
                yield ConditionRow(
                    name,
                    "" if direction == BOTH else direction,
                    show(score.value),
                    second,
                    show(score.chance),
                )

    def protocol_line(self) -> str:
        """One line, to be printed with the numbers."""
        line = self.without.protocol_line()
        return f"{line}; with shortcuts: {self.shortcuts}" if self.with_shortcuts is not None else line


def shortcuts_to_evaluate(
    recipe: Recipe, collection: Collection, begun_with: Mapping[str, Any] | None = None
) -> Shortcuts | None:
    """The shortcuts that a run's encoder is evaluated with; None for none, and for those on one side."""
    options = recipe.shortcuts
    if options is None or not (options.on_images and options.on_captions):
        return None
    shortcuts = Shortcuts.of(options, collection, recipe.data.train, recipe.seed)
    check_digits(shortcuts, begun_with)
    return shortcuts


def check_digits(shortcuts: Shortcuts, begun_with: Mapping[str, Any] | None) -> None:
    """See that pictures of digits are those that a run was begun with."""
    if begun_with is None:
        return
    trained_on, these = (said.get("digits") for said in (begun_with, shortcuts.describe()))
    if trained_on != these:
        raise MismatchError(
            f"the run was trained on digits {trained_on}, these are {these}",
            "put the old file of digits back",
        )


def encode_with_shortcuts(
    encoder: DualEncoder, part: Collection, shortcuts: Shortcuts, folder: Path | str, split: str | None = None
) -> EncodedCollection:
    """Embed ``part`` with its shortcuts; arguments and errors as of :func:`encode_collection`."""
    return encode_collection(encoder, shortcuts.injected(part, encoder.with_endings), folder, split)


def evaluate_both(
    encoder: DualEncoder,
    collection: Collection,
    recipe: Recipe,
    split: str,
    embeddings: Path,
    evaluations: Path,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    encoded: EncodedCollection | None = None,
    without: Result | None = None,
    begun_with: Mapping[str, Any] | None = None,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> BothConditions:
    """Embed and measure a split without shortcuts, and with those of the recipe where it has any."""
    for name in ("positives", "ground_truth"):
        if options.get(name) is not None:
            raise UsageError(
                f"{name} are of what was embedded without shortcuts",
                "evaluate each condition alone with evaluate_encoded",
            )
    part, name = collection.split(split), safe_name(f"{collection.name}-{split}")
    if without is None:
        if encoded is None:
            encoded = encode_collection(encoder, part, embeddings / name, split)
        without = evaluate_encoded(encoded, evaluations / name, measures, about=about, **options)
    shortcuts = shortcuts_to_evaluate(recipe, collection, begun_with)
    if shortcuts is None:
        return BothConditions(without)
    name = f"{name}-{WITH}"
    carrying = encode_with_shortcuts(encoder, part, shortcuts, embeddings / name, split)
    line = shortcuts.line().removeprefix("shortcuts: ")
    result = evaluate_encoded(
        carrying, evaluations / name, measures, about={**(about or {}), "shortcuts": line}, **options
    )
    return BothConditions(without, result, line)
