"""The dense rows of a dataset's parts, made once, for what learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import DataChoice, Origin, check_still_there, encode_part, encoder_of
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.encode import EncodedCollection

__all__ = ["DensePart", "dense_parts"]


@dataclass(frozen=True)
class DensePart:
    """One split with its dense rows.

    Attributes:
        encoded: rows of pictures and captions.
        collection: the pictures and captions themselves.
        origin: which encoder, data and split.
    """

    encoded: EncodedCollection
    collection: Collection
    origin: Origin

    @property
    def captions(self) -> Sequence[str]:
        """In the order of their rows."""
        return self.collection.captions


def dense_parts(source: str, choice: DataChoice, splits: Sequence[str], out: Path) -> dict[str, DensePart]:
    """Some splits as ``source`` encodes them, by their names; what is encoded already is used.

    Args:
        source: a run, an encoder, or a folder that ``diptych embed`` wrote, of whichever split.
        choice: the data; the run's or folder's own when none is named.
        splits: the first must be there, others that are not are left out.
        out: where rows go that ``source`` has no place for.

    Raises:
        UsageError: no data, no such first split, or another process that makes these rows.
    """
    from diptych.encoders.encode import EncodedCollection
    from diptych.encoders.family import rooted
    from diptych.training.lock import training_lock

    folder = Path(source)
    kept = Origin.read(folder)
    if kept is not None and choice.data is not None:
        raise UsageError(f"{source} is embedded already", "leave --data out")
    model = source if kept is None else kept.model
    if kept is not None:
        check_still_there(model, source)
    encoder, run = encoder_of(model)
    given = kept
    if given is None:
        given = Origin(rooted(source), choice.section(run), None)
    whole = replace(given, split=None).collection()
    there = whole.split_sizes
    if splits[0] not in there:
        raise UsageError(
            f"{whole.name} has no split {splits[0]!r} to learn from, only {', '.join(there)}",
            "name one with --train",
        )
    parts = {}
    for split in dict.fromkeys(split for split in splits if split in there):
        origin = replace(given, split=split)
        if kept is not None and kept.split == split:
            encoded = EncodedCollection.open(folder)
        else:
            home = (Path(model) if run is not None else out) / "embeddings"
            with training_lock(home):  # of two at once each would take the other's unfinished rows away
                encoded = encode_part(encoder, whole, origin, home / f"{whole.name}-{split}")
        parts[split] = DensePart(encoded, whole.split(split), origin)
    return parts
