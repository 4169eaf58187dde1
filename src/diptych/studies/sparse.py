"""Heads that make bags of terms of dense rows: trained, and measured by what they keep, cost and mean."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import ImageError, MismatchError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.sparse.initialise import term_vectors
from diptych.sparse.measures import StaticEmbedding, exact_at
from diptych.sparse.options import PUBLISHED, SparsifyOptions, sparsify_options
from diptych.studies.evidence import KEPT, Kept
from diptych.studies.plan import BASE_SEED, MEASURE, Plan
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.sources import DenseRows, Source, Subject, cost_of, dense_rows, rows_of, tell_of
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.sparse.sparsified import SparsifiedCollection
    from diptych.sparse.sparsifier import Sparsifier

_MEASURES = ("R@1", "R@5", "R@10", "MRR@10")
_PER_CAPTION = ("R@1", "R@5", "MRR@10")
_FOLDER = "measured"
_WIDTH = 100  # of static embeddings that are made of captions
_EXAMPLES, _TERMS, _SIDE = 6, 10, 112
_open_embedding = lru_cache(1)(StaticEmbedding.open)


class MeasureOptions(Options):
    """Options of measuring (``--set measure.KEY=VALUE``)."""

    words: str | None = None  # word vectors or a masked language model, for Semantic@k


@dataclass(frozen=True)
class Head:
    """A trained head."""

    folder: Path
    dense: DenseRows
    sparsifier: Sparsifier

    def sparsified(self, split: str) -> SparsifiedCollection:
        from diptych.sparse.sparsified import sparsify_collection

        part = self.dense.collection.split(split)
        folder = self.folder / "sparse" / safe_name(f"{part.name}-{split}")
        return sparsify_collection(self.sparsifier, self.dense.encoded(split), part.captions, folder)


def dense_base(plan: Plan, row: Row) -> DenseRows:
    base = plan.base_of(row)
    assert base is not None  # or the row is declared wrongly
    return dense_rows(plan, base)


def head_of(plan: Plan, row: Row, seed: int = BASE_SEED) -> Head:
    from diptych.sparse.sparsifier import Sparsifier

    folder = plan.target(row, seed)
    return Head(folder, dense_base(plan, row), Sparsifier.load(folder / "training" / "head"))


class Heads(Source):
    """A head that is trained on the dense rows of its base."""

    def check(self, plan: Plan, row: Row) -> None:
        """See that the options exist, and that word vectors can be opened."""
        _options(plan, row)
        words = MeasureOptions.read(plan.choices.below(MEASURE), MEASURE).words
        if words is not None:
            _open_embedding(words)

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        return {"sparsify": _options(plan, row).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        from diptych.sparse.task import HeadFolder, PairedRows
        from diptych.sparse.training import train_sparsifier

        target, dense, options = plan.target(row, seed), dense_base(plan, row), _options(plan, row, seed)
        folder = HeadFolder(target / "training")
        tell_of(folder, what)
        train, validation = (  # embedding them is no part of the head's cost
            PairedRows.of(dense.encoded(split), dense.collection.split(split).captions)
            for split in dense.splits[:2]
        )
        try:
            with nullcontext() if folder.finished else cost_of(target):
                # Of a finished one it sees that it is the same.
                train_sparsifier(
                    train, options, folder.folder, validation=validation, accelerator=plan.accelerator
                )
        except MismatchError as error:
            raise UsageError(error.message, plan.elsewhere(row)) from None
        head, epochs = head_of(plan, row, seed), options.training.epochs
        best = int(folder.numbers.get("best_epoch", epochs)) if options.training.select == "best" else epochs
        return Subject(
            head,
            dense.collection,
            plan.features,
            measuring=plan.choices.below(MEASURE),
            state=(head.sparsifier.fingerprint,),
            epochs=(epochs, best),
            given=dense.source,
        )


def _options(plan: Plan, row: Row, seed: int = BASE_SEED) -> SparsifyOptions:
    return sparsify_options({**PUBLISHED, **plan.options_of(row), "seed": seed})


@dataclass(frozen=True)
class SparseRetrieval(Measuring):
    """Captions asking for images of the test split, by dense rows or by a head's; of a head also what it costs and
    means, and how far it agrees with its dense rows. Shares and correlations are in per cent, Kendall's τ is not."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        if isinstance(subject.run, Head):
            return (_of_head(subject.run, MeasureOptions.read(subject.measuring, MEASURE).words),)
        return (_of_dense(subject),)


def _of_dense(subject: Subject) -> Measurement:
    rows = rows_of(subject)
    encoded, split = rows.encoded(rows.data.test), rows.data.test
    result = evaluate_encoded(encoded, None, _MEASURES, samples=0, trec=False)
    Kept(_per_caption(result), encoded.caption_image).save(rows.folder / _FOLDER / KEPT)
    on = Measured(rows.collection.name, split, result.protocol.n_images, result.protocol.n_texts)
    commands = () if rows.source else ("diptych evaluate {run}",)
    return Measurement(_retrieval(result), on, result.protocol_line(), commands, kept=_FOLDER)


def _of_head(head: Head, words: str | None) -> Measurement:
    from diptych.sparse.evaluate import measure_sparsified

    split, vocabulary = head.dense.data.test, head.sparsifier.vocabulary
    part, encoded = head.dense.collection.split(split), head.dense.encoded(split)
    rows, embedding = head.sparsified(split), _static_embedding(head, words)
    found = measure_sparsified(encoded, rows, vocabulary, part.captions, embedding=embedding)
    exact = exact_at(rows.texts.rows, rows.caption_terms, _TERMS, left_out=vocabulary.special)
    faithful = found.faithful["t2i"]
    names = {"Exact@20": "exact", "Semantic@20": "semantic", "overlap@10": "overlap t2i"}
    shares = {column: found.values[name] for column, name in names.items()}
    values = {
        **_retrieval(found.sparse),
        "FLOPs": found.flops,
        "terms per image": found.nonzeros["images"],
        "terms per caption": found.nonzeros["texts"],
        "Exact@10": 100 * float(exact.mean()),
        **{name: 100 * float(values.mean()) for name, values in shares.items()},
        **{f"ρ-{name}": 100 * value for name, value in faithful.pearson.items()},
        "Kendall τ": faithful.kendall,
    }
    # What is not defined, as the correlation with a constant, is no value.
    values = {name: value for name, value in values.items() if not math.isnan(value)}
    # Other words are another measurement, and studies may differ in them.
    kept = _FOLDER if words is None else f"{_FOLDER}/{fingerprint(words)}"
    places = np.linspace(0, part.n_images - 1, min(_EXAMPLES, part.n_images)).round().astype(int)
    examples = [_example(head, rows, part, place) for place in places.tolist()]
    per_caption = _per_caption(found.sparse) | {name: 100 * values for name, values in shares.items()}
    Kept(per_caption, encoded.caption_image, examples).save(head.folder / kept / KEPT)
    on = Measured(part.name, split, part.n_images, part.n_captions)
    return Measurement(values, on, found.lines()[0], kept=kept)


def _retrieval(result: Result) -> dict[str, float]:
    return {f"t2i {name}": 100 * result.value(name, "t2i") for name in _MEASURES}


def _per_caption(result: Result) -> dict[str, np.ndarray]:
    return {f"t2i {name}": 100 * result.per_query["t2i"][name] for name in _PER_CAPTION}


def _static_embedding(head: Head, named: str | None) -> StaticEmbedding:
    """Return what is named, else the model whose terms the head has, else terms' co-occurrence in training captions."""
    source = named or head.sparsifier.options.vocabulary.source
    if source is not None:
        return _open_embedding(source)
    vocabulary = head.sparsifier.vocabulary
    captions = head.dense.collection.split(head.dense.data.train).captions
    vectors = term_vectors(vocabulary.caption_terms(captions), _WIDTH, seed=0)
    rows = {term: row for row, term in enumerate(vocabulary.terms) if row not in vocabulary.special}
    name = f"co-occurrence in {len(captions):,} training captions"
    return StaticEmbedding(name, rows, vectors, of_pieces=True)


def _example(head: Head, rows: SparsifiedCollection, part: Collection, place: int) -> dict[str, Any]:
    """Return the heaviest terms of an image and of its first caption, and a small picture for pages."""
    from diptych.report.pictures import Thumbnail, read_picture
    from diptych.sparse.explain import Bag, top_terms

    vocabulary = head.sparsifier.vocabulary

    def terms(bag: Bag) -> list[list[Any]]:
        own = {vocabulary.terms[column] for column in vocabulary.caption_terms(bag.captions).indices}
        found = top_terms(bag.row, vocabulary.terms, _TERMS, vocabulary.special)
        return [[term, term in own] for term, _ in found]

    caption = Bag.of(rows, part, "texts", int(part.caption_start[place]))
    image = Bag.of(rows, part, "images", place)
    try:
        picture = str(Thumbnail.of(read_picture(lambda: part.image(place), image.name), _SIDE))
    except ImageError:  # only region features, or embeddings of images that are not here
        picture = ""
    shown = {"caption terms": terms(caption), "image terms": terms(image)}
    return {"image": image.name, "picture": picture, "caption": caption.captions[0], **shown}
