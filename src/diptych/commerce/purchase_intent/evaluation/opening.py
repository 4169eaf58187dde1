"""Begin an evaluation's folder, or go on with one of the same protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.result import FORMAT, MARKER, RESULTS, SESSIONS, Evaluation
from diptych.core.arrays import write_arrays
from diptych.core.errors import MismatchError, StorageError
from diptych.core.files import read_json, write_json
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


def begin(folder: Path, features: FeatureTable, protocol: Protocol, about: dict[str, Any]) -> None:
    """Write what is evaluated, unless it is written already."""
    if (folder / MARKER).is_file():
        _check_same(folder, protocol)
    else:
        write_json(
            folder / MARKER,
            {
                "format": FORMAT,
                "key": protocol.key,
                "protocol": protocol.to_dict(),
                "features": {
                    "name": features.about["name"],
                    "line": features.describe(),
                    "kind": features.about["kind"],
                    "compat": features.compat,
                    "fingerprint": features.fingerprint,
                },
                "diptych": __version__,
                **about,
                "notes": [*features.about.get("notes", ()), *about["notes"]],
            },
        )
    if not (folder / SESSIONS).is_file():
        write_arrays(folder / SESSIONS, labels=features.labels, persons=features.persons)


def _check_same(folder: Path, protocol: Protocol) -> None:
    about = read_json(folder / MARKER)
    new = "give another --out, or remove the folder"
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise MismatchError(f"{folder} holds no evaluation of format {FORMAT}", new)
    there = Protocol.from_dict(about["protocol"])
    if there != protocol:
        said = "; ".join(there.differences(protocol))
        raise MismatchError(f"{folder} holds another evaluation; there and asked for: {said}", new)


def finished(folder: Path, how: Bootstrap) -> Evaluation | None:
    """The evaluation in a folder, if its numbers are there and have intervals of this kind."""
    if not (folder / RESULTS).is_file():
        return None
    try:
        found = Evaluation.open(folder)
    except StorageError:
        return None  # damaged numbers are made again from the predictions
    return found if found.results.get("intervals") == intervals_of(how) else None


def intervals_of(how: Bootstrap) -> dict[str, Any]:
    """How intervals are made, as ``results.json`` says it."""
    return {"samples": how.samples, "confidence": how.confidence, "seed": how.seed}
