"""Measuring what a head keeps of its dense rows, what it costs and what its terms say.

Several studies measure the same heads: what one has measured lies in the row's folder, ``measured/``, and
the next one takes it from there.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.studies.given import DenseRows, dense_of, dense_rows
from diptych.studies.making import Collections, Machine, Made, Wanted, cost_of, logger
from diptych.studies.results import keep
from diptych.studies.rows import measuring_of, section_of
from diptych.studies.sparse_rows import examples_of
from diptych.studies.study import Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    import numpy as np

    from diptych.evaluation import Result
    from diptych.sparse.evaluate import SparseMeasures
    from diptych.sparse.options import SparsifyOptions
    from diptych.sparse.sparsified import SparsifiedCollection
    from diptych.sparse.sparsifier import Sparsifier
    from diptych.sparse.static import StaticEmbedding


@dataclass(frozen=True)
class Head:
    """A trained head."""

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
    logger.info(f"{wanted.what}: {doing}")
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
    from diptych.sparse.pairs import PairedRows
    from diptych.sparse.training import train_sparsifier

    splits = dense.data.train, dense.data.validation
    train, validation = (dense.encoded(split) for split in splits)
    captions, others = (dense.collection.split(split).captions for split in splits)
    try:
        with cost:
            train_sparsifier(
                PairedRows.of(train, captions),
                options,
                wanted.target / "training",
                validation=PairedRows.of(validation, others),
                accelerator=machine.accelerator,
            )
    except MismatchError as error:
        raise UsageError(error.message, wanted.elsewhere) from None


RETRIEVAL = ("t2i R@1", "t2i R@5", "t2i MRR@10")
"""What captions asking for pictures are measured by (thesis, Table 3.1)."""

PER_QUERY = (*RETRIEVAL, "Exact@20", "Semantic@20", "overlap@10")
"""Columns whose values per caption are kept."""

_MEASURES = ("R@1", "R@5", "R@10", "MRR@10")
_FOLDER = "measured"
_WIDTH = 100  # of static embeddings that are made of captions


@dataclass(frozen=True)
class SparseRetrieval:
    """Captions asking for pictures, on the test split: by dense rows, or by a head's.

    A head has ``FLOPs``, ``terms per image`` and ``terms per caption``, ``Exact@10``, ``Exact@20`` and
    ``Semantic@20``, and ``ρ-R@1`` and its like, ``overlap@10`` and ``Kendall τ`` against its dense rows. Shares and
    correlations are in per cent, τ is not.
    """

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {"kind": "sparse retrieval", "version": 1}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure; values per caption are kept in the row's folder."""
        if subject.positives is not None:
            raise UsageError(
                f"--positives {subject.positives}: heads are measured on the collection's own pairs",
                "leave --positives out",
            )
        head = subject.run if isinstance(subject.run, Head) else None
        return (_of_dense(subject) if head is None else _of_head(subject, head, self.about),)


def _of_dense(subject: Subject) -> Measurement:
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    run = subject.run
    data = run.data if hasattr(run, "data") else run.recipe.data
    encoded = dense_of(subject, data.test)
    result = evaluate_encoded(encoded, None, _MEASURES, samples=0, trec=False)
    keep(run.folder / _FOLDER, _queries(result), encoded.caption_image)
    told = result.protocol
    return Measurement(
        values=_retrieval(result),
        on=Measured(subject.collection.name, data.test, told.n_images, told.n_texts),
        protocol=result.protocol_line(),
        commands=("diptych evaluate {run}",) if (run.folder / "run.json").is_file() else (),
        kept=_FOLDER,
    )


def _of_head(subject: Subject, head: Head, about: dict[str, Any]) -> Measurement:
    from diptych.sparse.evaluate import measure_sparsified

    split = head.dense.data.test
    part, encoded, sparsified = (
        head.dense.collection.split(split),
        head.dense.encoded(split),
        head.sparsified(split),
    )
    words = subject.measuring.get("words")
    # Other words are another measurement, and studies may differ in them.
    kept = _FOLDER if words is None else f"{_FOLDER}/{fingerprint(words)}"
    folder = head.folder / kept
    key = fingerprint(about, head.sparsifier.fingerprint, encoded.about["data"], words)
    file = folder / "values.json"
    if not file.is_file() or read_json(file)["key"] != key:
        file.unlink(missing_ok=True)
        found = measure_sparsified(
            encoded,
            sparsified,
            head.sparsifier.vocabulary,
            part.captions,
            embedding=static_embedding(head, words),
        )
        found.save(folder / "measures.npz")
        values = _values(found) | {"Exact@10": 100 * float(_exact(head, split, 10).mean())}
        keep(folder, _kept(found), encoded.caption_image, examples_of(head, split))
        # Written last: a folder with it is complete.
        write_json(file, {"key": key, "values": values, "protocol": found.line()})
    there = read_json(file)
    return Measurement(
        values=there["values"],
        on=Measured(part.name, split, part.n_images, part.n_captions),
        protocol=there["protocol"],
        commands=(),
        kept=kept,
    )


def _values(found: SparseMeasures) -> dict[str, float]:
    faithful, deviation = found.faithful["t2i"], found.deviation
    values = {
        **_retrieval(found.sparse),
        "FLOPs": found.flops,
        "terms per image": found.nonzeros["images"],
        "terms per caption": found.nonzeros["texts"],
        f"Exact@{deviation.k}": 100 * deviation.exact,
        **{f"ρ-{name}": 100 * value for name, value in faithful.pearson.items()},
        f"overlap@{faithful.k}": 100 * faithful.overlap,
        "Kendall τ": faithful.kendall,
    }
    if deviation.semantic is not None:
        values[f"Semantic@{deviation.k}"] = 100 * deviation.semantic
    # What is not defined, as the correlation with a constant, is no value.
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _kept(found: SparseMeasures) -> dict[str, np.ndarray]:
    names = {"exact": "Exact@20", "semantic": "Semantic@20", "overlap t2i": "overlap@10"}
    there = {column: 100 * found.values[name] for name, column in names.items() if name in found.values}
    return {**_queries(found.sparse), **there}


def _retrieval(result: Result) -> dict[str, float]:
    return {f"t2i {name}": 100 * result.value(name, "t2i") for name in _MEASURES}


def _queries(result: Result) -> dict[str, np.ndarray]:
    return {column: 100 * result.per_query["t2i"][column.removeprefix("t2i ")] for column in RETRIEVAL}


def _exact(head: Head, split: str, k: int) -> np.ndarray:
    from diptych.sparse.measures import exact_at

    rows = head.sparsified(split)
    return exact_at(rows.texts.rows, rows.caption_terms, k, left_out=head.sparsifier.vocabulary.special)


def static_embedding(head: Head, named: str | None) -> StaticEmbedding:
    """What Semantic@k holds terms against: a file or model that is named, else the model whose vocabulary the
    head has, else vectors made of which terms stand together in the training captions.
    """
    from diptych.sparse.static import StaticEmbedding

    source = named or head.options.vocabulary.source
    if source is not None:
        return StaticEmbedding.open(source)
    from diptych.sparse.initialise import term_vectors

    vocabulary = head.sparsifier.vocabulary
    captions = head.dense.collection.split(head.dense.data.train).captions
    vectors = term_vectors(vocabulary.caption_terms(captions), _WIDTH, seed=0)
    rows = {term: row for row, term in enumerate(vocabulary.terms) if row not in vocabulary.special}
    return StaticEmbedding(
        f"co-occurrence in {len(captions):,} training captions", rows, vectors, of_pieces=True
    )
