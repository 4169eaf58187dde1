"""Rows that are heads: trained on the dense rows of their base, which stay as they are.

::

    rows/ROW/seed-N/
      training/     what diptych.sparse.training writes: options, metrics, checkpoint, the head
      sparse/       the sparse rows of a split
      cost.json     its processor time

A finished head is used again, an interrupted one goes on, one with other options or of other dense rows is
refused.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.context import stop_when
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name
from diptych.studies.dense import DenseRows, dense_rows
from diptych.studies.making import Made, Wanted
from diptych.studies.measurement import Subject
from diptych.studies.trained import Collections, Machine, cost_of
from diptych.studies.ways import measuring_of, section_of

if TYPE_CHECKING:
    from diptych.sparse.options import SparsifyOptions
    from diptych.sparse.sparsified import SparsifiedCollection
    from diptych.sparse.sparsifier import Sparsifier


@dataclass(frozen=True)
class Head:
    """A trained head.

    Attributes:
        folder: of its row.
        dense: the rows it was trained on.
        options: what it was trained with.
        sparsifier: the head.
    """

    folder: Path
    dense: DenseRows
    options: SparsifyOptions
    sparsifier: Sparsifier

    def sparsified(self, split: str) -> SparsifiedCollection:
        """The sparse rows of a split; they are kept in the head's folder."""
        from diptych.sparse.sparsified import sparsify_collection

        part = self.dense.collection.split(split)
        folder = self.folder / "sparse" / safe_name(f"{part.name}-{split}")
        return sparsify_collection(self.sparsifier, self.dense.encoded(split), part.captions, folder)


def options_of(wanted: Wanted) -> SparsifyOptions:
    """What a head is trained with."""
    from diptych.sparse.options import sparsify_options

    chosen = wanted.study.settings[wanted.setting]
    values = section_of(wanted.row, chosen, wanted.choices.values, "sparsify")
    return sparsify_options({**values, "seed": wanted.seed})


def head_of(wanted: Wanted, collections: Collections, machine: Machine) -> Head:
    """The head of a row that is there."""
    from diptych.sparse.sparsifier import Sparsifier
    from diptych.sparse.task import HeadFolder

    dense = _dense(wanted, collections, machine)
    sparsifier = Sparsifier.load(HeadFolder(wanted.target / "training").head)
    return Head(wanted.target, dense, options_of(wanted), sparsifier)


def make_head(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Train it, go on with it, or find it there."""
    from diptych.sparse.task import HeadFolder

    options, dense = options_of(wanted), _dense(wanted, collections, machine)
    folder = HeadFolder(wanted.target / "training")
    doing = "there already" if folder.finished else "goes on" if folder.begun else "training"
    machine.tell(f"{wanted.what}: {doing}")
    # Of a finished one it sees that it is the same.
    _train(wanted, dense, options, machine, nullcontext() if folder.finished else cost_of(wanted.target))
    head = head_of(wanted, collections, machine)
    epochs = options.training.epochs
    best = int(folder.numbers.get("best_epoch", epochs)) if options.training.select == "best" else epochs
    return Made(
        Subject(
            head,
            dense.collection,
            machine.features_root,
            wanted.choices.positives,
            measuring=measuring_of(wanted.choices.values),
        ),
        (head.sparsifier.fingerprint,),
        (epochs, best),
        changed_of_head(wanted),
        dense.source,
    )


def changed_of_head(wanted: Wanted) -> tuple[str, ...]:
    """What the person who ran it changed, of the head or of what its dense rows were trained with."""
    others = ("search.", "measure.")
    return tuple(sorted(key for key in wanted.choices.values if not key.startswith(others)))


def _dense(wanted: Wanted, collections: Collections, machine: Machine) -> DenseRows:
    base = wanted.base
    assert base is not None  # a head has a base, or its row is wrong
    return dense_rows(base, collections, machine)


def _train(
    wanted: Wanted,
    dense: DenseRows,
    options: SparsifyOptions,
    machine: Machine,
    cost: AbstractContextManager[None],
) -> None:
    """Train the head; dense rows that are embedded for the first time are no part of its ``cost``."""
    from diptych.sparse.training import train_sparsifier
    from diptych.sparse.validation import ValidationRows

    splits = dense.data.train, dense.data.validation
    train, validation = (dense.encoded(split) for split in splits)
    captions, others = (dense.collection.split(split).captions for split in splits)
    try:
        with cost, stop_when(machine.should_stop):
            train_sparsifier(
                train.images,
                train.texts,
                captions,
                train.caption_image,
                options,
                wanted.target / "training",
                validation=ValidationRows.of(validation, others),
                accelerator=machine.accelerator,
            )
    except MismatchError as error:
        raise UsageError(error.message, wanted.elsewhere) from None
