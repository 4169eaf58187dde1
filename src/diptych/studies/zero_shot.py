"""Measuring an encoder as it is on the test split of a collection, re-ranked where it has a matching head."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.studies.dense import taken
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measurement, Measuring
from diptych.studies.retrieval import RECALLS, columns_of
from diptych.studies.sources import Source, Subject, cost_of, encoder_of, given_encoder, logger
from diptych.studies.study import Row
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    import numpy as np

    from diptych.data.collection import Collection
    from diptych.encoders.adapted import LinearMap
    from diptych.encoders.embeddings import Embeddings, EncodedCollection
    from diptych.evaluation import Result


_CANDIDATES = 128
_MEASURES = (*RECALLS, "rsum")


class Chosen(Options):
    """What a user chose about measuring (``--set measure.KEY=VALUE``)."""

    captions: Literal["all", "first", "random"] = "all"
    seed: int = Field(0, ge=0)  # of the random captions
    k_test: int | None = Field(None, ge=0)  # candidates that a matching head scores again; 0 for none
    unranked: Literal["miss", "published"] = "miss"  # what becomes of the others; published: they tie at −100
    split: str = "test"


@dataclass(frozen=True)
class ZeroShot(Measuring):
    """Recalls and their sums in both directions, of whatever encoder a row is."""

    k_test: Mapping[str, int] = field(default_factory=lambda: {"coco": 256})

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        """See that what is chosen is there."""
        chosen = Chosen.read(measuring, MEASURE)
        for collection in collections.values():
            collection.split(chosen.split)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; embeddings and values per query are kept in the row's folder.

        Nothing comes of a row that is adapted to each collection where one has nothing to adapt on.
        """
        from diptych.encoders.encode import encode_collection
        from diptych.evaluation.evaluate_encoder import evaluate_encoded

        chosen = Chosen.read(subject.measuring, MEASURE)
        if isinstance(subject.run, Adapted) and not subject.run.possible_on(subject.collection):
            return ()
        part, folder = subject.collection.split(chosen.split), subject.run.folder
        name = safe_name(f"{part.name}-{chosen.split}")
        if isinstance(subject.run, Adapted):
            encoder = None
            encoded = subject.run.encoded(subject.collection, chosen.split, name)
        else:
            encoder = encoder_of(subject.run)
            encoded = encode_collection(encoder, part, folder / "embeddings" / name, chosen.split)
        # Where every image has one caption there is nothing to choose.
        how = "all" if (part.captions_per_image <= 1).all() else chosen.captions
        shown, about = _shown(part, how, chosen.seed), {}
        if how != "all":
            about = {"captions": how if how == "first" else f"random, seed {chosen.seed}"}
            name += f"-{how}" if how == "first" else f"-{how}-{chosen.seed}"
        encoded = with_captions(encoded, shown)
        k = self._candidates(encoder, part.name, chosen)
        if k:
            stored = folder / "reranked" / name
            result = _reranked(subject, encoder, shown, encoded, k, chosen.unranked, stored, about)
            name += f"-k{k}-{chosen.unranked}"
        else:
            result = evaluate_encoded(encoded, None, _MEASURES, samples=0, trec=False, about=about)
        result.save(folder / "evaluation" / name)
        told = result.protocol
        on = Measured(
            part.name,
            chosen.split,
            told.n_images,
            told.n_texts,
            chosen=how,
            reranked=k,
            unranked=chosen.unranked if k else "",
            centric=part.centric or "",
        )
        return (
            Measurement(
                with_sums(columns_of(result)),
                on,
                result.protocol_line(),
                kept=f"evaluation/{name}",
            ),
        )

    def _candidates(self, encoder: Any, dataset: str, chosen: Chosen) -> int:
        """How many candidates are scored again; 0 for an encoder without a matching head."""
        from diptych.encoders.matching import MatchingEncoder

        if not isinstance(encoder, MatchingEncoder):
            return 0
        return self.k_test.get(dataset.lower(), _CANDIDATES) if chosen.k_test is None else chosen.k_test


def with_sums(values: Mapping[str, float]) -> dict[str, float]:
    """With the sum of each direction's recalls."""
    sums = {
        f"{direction} rsum": sum(values[f"{direction} {name}"] for name in RECALLS)
        for direction in ("t2i", "i2t")
    }
    return {**values, **sums}


def _shown(part: Collection, how: str, seed: int) -> Collection:
    """The part with the captions that are taken."""
    if how == "all":
        return part
    return part.first_captions() if how == "first" else part.random_captions(seed=seed)


def with_captions(encoded: EncodedCollection, part: Collection) -> EncodedCollection:
    """Return the rows of a part with fewer captions than were embedded."""
    from diptych.encoders.embeddings import EncodedCollection

    if len(part.captions) == len(encoded.texts):
        return encoded
    texts = taken(encoded.texts, part.caption_ids)
    about = {**encoded.about, "data": fingerprint(encoded.about["data"], part.text_fingerprint)}
    return EncodedCollection(encoded.images, texts, part.caption_image, about)


def _reranked(
    subject: Subject,
    encoder: Any,
    part: Collection,
    encoded: EncodedCollection,
    k: int,
    unranked: str,
    stored: Path,
    about: dict[str, Any],
) -> Result:
    from diptych.encoders.rerank import rerank
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    candidates = rerank(encoder, part, encoded, k, folder=stored)
    return evaluate_encoded(
        encoded, None, _MEASURES, reranked=candidates, unranked=unranked, samples=0, trec=False, about=about
    )


_TRAIN = "train"
_NOT_OPTIONS = ("encoder", "collection", "seed")
_BLOCK = 65_536


@dataclass(frozen=True)
class Adapted:
    """A base that is adapted to whatever it is measured on."""

    folder: Path
    base: Any
    seed: int
    options: Mapping[str, Any]

    def possible_on(self, collection: Collection) -> bool:
        """Whether there is a training split with as many pictures that have captions; says so where not."""
        there, wanted = collection.split_sizes.get(_TRAIN, 0), self.options["pairs"]
        if there:
            there = int((collection.split(_TRAIN).captions_per_image > 0).sum())
        if there < wanted:
            logger.info(f"{collection.name} has {there:,} pairs to adapt on, not {wanted:,}")
        return bool(there >= wanted)

    def encoded(self, collection: Collection, split: str, name: str) -> EncodedCollection:
        """Rows of a split by the base adapted to the collection; ``name`` is of the folder of its embeddings."""
        from diptych.encoders.embeddings import EncodedCollection
        from diptych.encoders.encode import encode_collection
        from diptych.training.adaptation import adapt_linear

        base, part = encoder_of(self.base), collection.split(split)
        plain = encode_collection(base, part, self.base.folder / "embeddings" / name, split)
        logger.info(f"adapting to {self.options['pairs']} pairs of {collection.name}")
        with cost_of(self.folder):
            adapted = adapt_linear(base, collection.split(_TRAIN), seed=self.seed, **self.options)
        about = {**plain.about, "encoder": adapted.describe()}
        folder = self.folder / "embeddings" / name
        images, texts = (
            _mapped(folder / f"{rows.kind}s", rows, side, adapted.fingerprint, about)
            for rows, side in ((plain.images, adapted.maps.image), (plain.texts, adapted.maps.text))
        )
        return EncodedCollection(images, texts, plain.caption_image, about)


def _mapped(
    folder: Path, rows: Embeddings, side: LinearMap, fingerprint: str, about: dict[str, Any]
) -> Embeddings:
    from diptych.encoders.embeddings import Embeddings

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(rows), _BLOCK):
            part = rows.rows[start : start + _BLOCK]
            yield side(part, rows.kind, range(start, start + len(part)))

    return Embeddings.stream(
        folder,
        rows.ids,
        int(side.matrix.shape[1]),
        blocks(),
        encoder=fingerprint,
        data=rows.data,
        kind=rows.kind,
        about=about,
    )


class Adaptations(Source):
    """A base that is adapted to each collection anew, when it is measured."""

    def check(self, plan: Plan, row: Row) -> None:
        """See that the options exist, and that nothing is measured on what it is adapted on."""
        if plan.choices.values.get("measure.split") == _TRAIN:
            raise UsageError(
                f"{row.name} is adapted on the training split, and would be measured on it",
                "measure another split, or leave the row out: --rows",
            )
        _options(plan, row)

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return how it is adapted."""
        from diptych.training.adaptation import adapt_linear

        defaults = {key: one.default for key, one in inspect.signature(adapt_linear).parameters.items()}
        return {"adapt": {**defaults, **_options(plan, row)}}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Say what is adapted."""
        from diptych.training.run import Run

        base = plan.base_of(row)
        assert base is not None  # what is adapted has a base, or its row is wrong
        run: Any
        stands_for = source = ""
        if plan.is_given(base):
            run = given_encoder(plan, base)
            state: tuple[Any, ...] = (run.encoder.fingerprint,)
            source = f"{run.source} (fingerprint {run.encoder.fingerprint})"
        else:
            run = Run.open(plan.target(base))
            state, stands_for = (
                (run.numbers["step"], run.numbers["best"]),
                f"{run.recipe.description}, adapted",
            )
        options = _options(plan, row)
        adapted = Adapted(plan.target(row, seed), run, seed, options)
        return Subject(
            adapted,
            None,
            plan.features,
            state=("adapted", *state, seed, options),
            given=source,
            stands_for=stands_for,
        )


def _options(plan: Plan, row: Row) -> dict[str, Any]:
    """Return what a row is adapted with."""
    from diptych.training.adaptation import adapt_linear

    options = plan.options_of(row)
    known = [name for name in inspect.signature(adapt_linear).parameters if name not in _NOT_OPTIONS]
    for key in options:
        if key not in known:
            raise UnknownNameError("option of adaptations", key, known)
    return options
