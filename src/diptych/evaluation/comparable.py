"""Whether two evaluations can be compared: same test set, same queries, same galleries, same ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.evaluation.protocol import OWN_GAINS
from diptych.evaluation.result import Result
from diptych.metrics.ground_truth import DIRECTIONS

_ABOUT = ("dataset", "split", "data", "positives")
_FIELDS = {
    "name": "protocol",
    "n_images": "images",
    "n_texts": "texts",
    "galleries": "galleries",
    "texts_per_image": "positives per image",
    "images_per_text": "positives per text",
    "ties": "tie rule",
    "asked": "queries asked",
    "without_positive": "queries without a positive",
}


def _said(result: Result) -> dict[str, Any]:
    """Everything of a protocol that two runs of one test must have in common."""
    protocol = result.protocol
    said = {what: getattr(protocol, name) for name, what in _FIELDS.items()}
    return said | {name: protocol.about[name] for name in _ABOUT if name in protocol.about}


def check_comparable(results: Sequence[Result], names: Sequence[str]) -> None:
    """Refuse results that were not measured on the same thing; encoders and seeds may differ."""
    first = _said(results[0])
    home = text_image_of(results[0], names[0])
    for result, name in zip(results[1:], names[1:], strict=True):
        said = _said(result)
        for what in dict.fromkeys([*first, *said]):
            if first.get(what) != said.get(what):
                raise MismatchError(
                    f"{names[0]} and {name} cannot be compared: {what} {first.get(what, 'not said')} "
                    f"and {said.get(what, 'not said')}",
                    "evaluate both on the same split with the same options",
                )
        other = text_image_of(result, name)
        if not np.array_equal(home, other):
            row = int(np.flatnonzero(home != other)[0])
            raise MismatchError(
                f"{names[0]} and {name} cannot be compared: text {row} belongs to image {int(home[row])} "
                f"and to {int(other[row])}",
                "evaluate both on the same split",
            )


def check_same_gains(results: Sequence[Result], names: Sequence[str], measures: Sequence[str]) -> list[str]:
    """Refuse to compare a measure of gains by different relevance models; gives what a reader should know."""
    first, own = results[0].protocol.gains, []
    for measure in measures:
        for result, name in zip(results[1:], names[1:], strict=True):
            mine, theirs = (gains.get(measure, "not said") for gains in (first, result.protocol.gains))
            if mine != theirs:
                raise MismatchError(
                    f"{names[0]} and {name} cannot be compared by {measure}: gains {mine}, and {theirs}",
                    "evaluate both with the same --relevance, or leave it out with --measure",
                )
        if OWN_GAINS in first.get(measure, ""):
            own.append(measure)
    if not own:
        return []
    return [f"{', '.join(own)} by each run's own cosines: a difference may be one of scale"]


def text_image_of(result: Result, name: str) -> np.ndarray:
    """The image each text was written for."""
    if result.text_image is None or not all(result.per_query.get(way) for way in DIRECTIONS):
        raise StorageError(
            f"{name} has no values per query, or does not say which texts belong to an image",
            "evaluate it again with this version of diptych",
        )
    return result.text_image


def common_measures(
    results: Sequence[Result], names: Sequence[str], asked: Sequence[str] | None
) -> list[str]:
    """The measures that all results hold, or those asked for."""
    held = [{name: None for given in result.scores.values() for name in given} for result in results]
    if asked is None:
        common = [name for name in held[0] if all(name in other for other in held)]
        if not common:
            raise UsageError(
                f"{' and '.join(names)} have no measure in common", "evaluate them with the same measures"
            )
        return common
    for measure in asked:
        for name, known in zip(names, held, strict=True):
            if measure not in known:
                raise UsageError(
                    f"{name} was not evaluated by {measure}",
                    f"it has {', '.join(known)}; evaluate again with --measure {measure}",
                )
    return list(dict.fromkeys(asked))
