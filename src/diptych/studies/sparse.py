"""Heads that make bags of terms of dense rows: trained, and measured by what they keep, cost and say.

Several studies measure the same heads: what one has measured lies in the row's folder, ``measured/``, and the next one
takes it from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import ImageError, MismatchError, StorageError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.studies.dense import DenseRows, dense_of, dense_rows
from diptych.studies.evidence import keep
from diptych.studies.plan import BASE_SEED, MEASURE, Plan
from diptych.studies.results import Measurement
from diptych.studies.sources import Made, Source, Subject, cost_of, logger
from diptych.studies.study import Row
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    import numpy as np

    from diptych.evaluation import Result
    from diptych.sparse.evaluate import SparseMeasures
    from diptych.sparse.options import SparsifyOptions
    from diptych.sparse.sparsified import SparsifiedCollection
    from diptych.sparse.sparsifier import Sparsifier
    from diptych.sparse.static import StaticEmbedding

_MEASURES = ("R@1", "R@5", "R@10", "MRR@10")
_KEPT = ("R@1", "R@5", "MRR@10")  # per caption
_FOLDER = "measured"
_WIDTH = 100  # of static embeddings that are made of captions
_EXAMPLES, _TERMS, _SIDE = 6, 10, 112


class Chosen(Options):
    """What a person chose about measuring (``--set measure.KEY=VALUE``)."""

    words: str | None = None  # word vectors or a masked language model, for Semantic@k


@dataclass(frozen=True)
class Head:
    """A trained head."""

    folder: Path
    dense: DenseRows
    sparsifier: Sparsifier

    def sparsified(self, split: str) -> SparsifiedCollection:
        """Return the sparse rows of a split; they are kept in the head's folder."""
        from diptych.sparse.sparsified import sparsify_collection

        part = self.dense.collection.split(split)
        folder = self.folder / "sparse" / safe_name(f"{part.name}-{split}")
        return sparsify_collection(self.sparsifier, self.dense.encoded(split), part.captions, folder)


def dense_base(plan: Plan, row: Row) -> DenseRows:
    """Return the dense rows that a head or a search starts from."""
    base = plan.base_of(row)
    assert base is not None  # or the row is declared wrongly
    return dense_rows(plan, base)


def head_of(plan: Plan, row: Row, seed: int = BASE_SEED, dense: DenseRows | None = None) -> Head:
    """Return the head of a row that is there."""
    from diptych.sparse.sparsifier import Sparsifier
    from diptych.sparse.task import HeadFolder

    folder = plan.target(row, seed)
    return Head(folder, dense or dense_base(plan, row), Sparsifier.load(HeadFolder(folder / "training").head))


def refuse_positives(named: str | None) -> None:
    """See that no further judgements are asked for."""
    if named is not None:
        raise UsageError(
            f"--positives {named}: heads are measured on the collection's own pairs", "leave --positives out"
        )


class Heads(Source):
    """A head that is trained on the dense rows of its base."""

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """See that word vectors can be opened: heads are trained before they are measured by them."""
        if (words := _chosen(plan).words) is not None:
            from diptych.sparse.static import StaticEmbedding

            StaticEmbedding.open(words)
        return {}

    def check(self, plan: Plan, row: Row) -> None:
        """See that the options exist."""
        refuse_positives(plan.choices.positives)
        _chosen(plan)
        _options(plan, row)

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Made:
        """Train it, go on with it, or find it there."""
        from diptych.sparse.pairs import PairedRows
        from diptych.sparse.task import HeadFolder
        from diptych.sparse.training import train_sparsifier

        options, target, dense = _options(plan, row, seed), plan.target(row, seed), dense_base(plan, row)
        folder = HeadFolder(target / "training")
        logger.info(
            f"{what}: {'there already' if folder.finished else 'goes on' if folder.begun else 'training'}"
        )
        # Embedding is no part of a head's cost.
        train, validation = (
            PairedRows.of(dense.encoded(split), dense.collection.split(split).captions)
            for split in (dense.data.train, dense.data.validation)
        )
        try:
            with (
                nullcontext() if folder.finished else cost_of(target)
            ):  # of a finished one it sees that it is the same
                train_sparsifier(
                    train, options, folder.folder, validation=validation, accelerator=plan.accelerator
                )
        except MismatchError as error:
            raise UsageError(error.message, plan.elsewhere(row)) from None
        head, epochs = head_of(plan, row, seed, dense), options.training.epochs
        best = int(folder.numbers.get("best_epoch", epochs)) if options.training.select == "best" else epochs
        measuring = plan.choices.below(MEASURE)
        return Made(
            Subject(head, dense.collection, plan.features, plan.choices.positives, measuring=measuring),
            (head.sparsifier.fingerprint,),
            (epochs, best),
            dense.source,
        )


def _chosen(plan: Plan) -> Chosen:
    return Chosen.read(plan.choices.below(MEASURE), MEASURE)


def _options(plan: Plan, row: Row, seed: int = BASE_SEED) -> SparsifyOptions:
    from diptych.sparse.options import sparsify_options

    return sparsify_options({**plan.options_of(row), "seed": seed})


@dataclass(frozen=True)
class SparseRetrieval:
    """Captions asking for images, on the test split: by dense rows, or by a head's.

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
        refuse_positives(subject.positives)
        if not isinstance(subject.run, Head):
            return (_of_dense(subject),)
        head, words = subject.run, Chosen.read(subject.measuring, MEASURE).words
        # Other words are another measurement, and studies may differ in them.
        kept = _FOLDER if words is None else f"{_FOLDER}/{fingerprint(words)}"
        found = _measured(head, words, head.folder / kept, self.about)
        part = head.dense.collection.split(head.dense.data.test)
        on = Measured(part.name, head.dense.data.test, part.n_images, part.n_captions)
        return (Measurement(_values(found), on, found.line(), kept=kept),)


def _of_dense(subject: Subject) -> Measurement:
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    run, is_given = subject.run, isinstance(subject.run, DenseRows)
    split = (run if is_given else run.recipe).data.test
    encoded = dense_of(subject, split)
    result = evaluate_encoded(encoded, None, _MEASURES, samples=0, trec=False)
    keep(run.folder / _FOLDER, _per_caption(result), encoded.caption_image)
    on = Measured(subject.collection.name, split, result.protocol.n_images, result.protocol.n_texts)
    commands = () if is_given else ("diptych evaluate {run}",)
    return Measurement(_retrieval(result), on, result.protocol_line(), commands, kept=_FOLDER)


def _measured(head: Head, words: str | None, folder: Path, about: dict[str, Any]) -> SparseMeasures:
    """Return what is measured of a head; what is there already is opened."""
    from diptych.sparse.evaluate import SparseMeasures, measure_sparsified
    from diptych.sparse.measures import exact_at

    split, vocabulary = head.dense.data.test, head.sparsifier.vocabulary
    encoded, file = head.dense.encoded(split), folder / "measures.npz"
    key = fingerprint(about, head.sparsifier.fingerprint, encoded.about["data"], words)
    try:
        return SparseMeasures.open(file, of=key)
    except StorageError:
        pass
    rows, captions = head.sparsified(split), head.dense.collection.split(split).captions
    embedding = static_embedding(head, words)
    found = measure_sparsified(encoded, rows, vocabulary, captions, embedding=embedding)
    exact = exact_at(rows.texts.rows, rows.caption_terms, _TERMS, left_out=vocabulary.special)
    found = replace(found, values={**found.values, "exact of 10": exact})
    columns = {"exact": "Exact@20", "semantic": "Semantic@20", "overlap t2i": "overlap@10"}
    values = {column: 100 * found.values[name] for name, column in columns.items() if name in found.values}
    keep(folder, _per_caption(found.sparse) | values, encoded.caption_image, _examples(head, rows, split))
    found.save(file, of=key)  # last: a folder with it is complete
    return found


def _values(found: SparseMeasures) -> dict[str, float]:
    faithful, deviation = found.faithful["t2i"], found.deviation
    values = {
        **_retrieval(found.sparse),
        "FLOPs": found.flops,
        "terms per image": found.nonzeros["images"],
        "terms per caption": found.nonzeros["texts"],
        "Exact@10": 100 * float(found.values["exact of 10"].mean()),
        "Exact@20": 100 * deviation.exact,
        "Semantic@20": math.nan if deviation.semantic is None else 100 * deviation.semantic,
        **{f"ρ-{name}": 100 * value for name, value in faithful.pearson.items()},
        "overlap@10": 100 * faithful.overlap,
        "Kendall τ": faithful.kendall,
    }
    # What is not defined, as the correlation with a constant, is no value.
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _retrieval(result: Result) -> dict[str, float]:
    return {f"t2i {name}": 100 * result.value(name, "t2i") for name in _MEASURES}


def _per_caption(result: Result) -> dict[str, np.ndarray]:
    return {f"t2i {name}": 100 * result.per_query["t2i"][name] for name in _KEPT}


def static_embedding(head: Head, named: str | None) -> StaticEmbedding:
    """Return what Semantic@k holds terms against.

    That is a file or model that is named, else the model whose vocabulary the head has, else vectors made of which
    terms stand together in the training captions.
    """
    from diptych.sparse.initialise import term_vectors
    from diptych.sparse.static import StaticEmbedding

    source = named or head.sparsifier.options.vocabulary.source
    if source is not None:
        return StaticEmbedding.open(source)
    vocabulary = head.sparsifier.vocabulary
    captions = head.dense.collection.split(head.dense.data.train).captions
    vectors = term_vectors(vocabulary.caption_terms(captions), _WIDTH, seed=0)
    rows = {term: row for row, term in enumerate(vocabulary.terms) if row not in vocabulary.special}
    name = f"co-occurrence in {len(captions):,} training captions"
    return StaticEmbedding(name, rows, vectors, of_pieces=True)


def _examples(head: Head, rows: SparsifiedCollection, split: str) -> list[dict[str, Any]]:
    """Return the heaviest terms of evenly spaced images and of the first caption of each, whatever the head."""
    import numpy as np

    from diptych.report.pictures import Thumbnail, read_picture
    from diptych.sparse.explain import Bag

    part, vocabulary, shown = head.dense.collection.split(split), head.sparsifier.vocabulary, []
    places = np.linspace(0, part.n_images - 1, min(_EXAMPLES, part.n_images)).round().astype(int)
    for place in places.tolist():
        image = Bag.of(rows, part, "images", place)
        caption = Bag.of(rows, part, "texts", int(part.caption_start[place]))
        try:
            picture = str(Thumbnail.of(read_picture(image.picture, image.name), _SIDE))  # type: ignore[arg-type]
        except ImageError:  # region features alone, or embeddings of images that are not here
            picture = ""
        terms = {
            f"{kind} terms": [[term, is_own] for term, _, is_own in bag.top(vocabulary, _TERMS)]
            for kind, bag in (("caption", caption), ("image", image))
        }
        shown.append({"image": image.name, "picture": picture, "caption": caption.captions[0], **terms})
    return shown
