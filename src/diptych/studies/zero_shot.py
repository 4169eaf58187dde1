"""Measuring encoders as they are, re-ranked where they have a matching head, and adapted to a few pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.captions import choose_captions
from diptych.data.collection import Collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.rerank import MatchingEncoder, rerank
from diptych.metrics import DIRECTIONS
from diptych.studies.dense import encode_split
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measurement, Measuring
from diptych.studies.retrieval import RECALLS, evaluate_split
from diptych.studies.sources import Source, Subject, cost_of, encoder_of, given_encoder, logger
from diptych.studies.study import Row
from diptych.training.adaptation import AdaptationOptions, adapt_linear

_CANDIDATES = 128
_TRAIN = "train"


class MeasureOptions(Options):
    """Options of measuring (``--set measure.KEY=VALUE``)."""

    captions: Literal["all", "first", "random"] = "all"
    seed: int = Field(0, ge=0)  # of the random captions
    k_test: int | None = Field(None, ge=0)  # candidates that a matching head scores again; 0 for none
    unranked: Literal["miss", "published"] = "miss"  # what becomes of the others; published: they tie at −100
    split: str = "test"


class AdaptOptions(AdaptationOptions):
    """Options of adapting a base (``--set adapt.KEY=VALUE``)."""

    pairs: int = 16
    captions: Literal["one", "all"] = "one"


@dataclass(frozen=True)
class ZeroShot(Measuring):
    """Recalls and their sums in both directions, of whatever encoder a row is."""

    k_test: Mapping[str, int] = field(default_factory=lambda: {"coco": 256})

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        chosen = MeasureOptions.read(measuring, MEASURE)
        for collection in collections.values():
            collection.split(chosen.split)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        chosen, run, collection = (
            MeasureOptions.read(subject.measuring, MEASURE),
            subject.run,
            subject.collection,
        )
        part = collection.split(chosen.split)
        encoder = None if isinstance(run, Adapted) else encoder_of(run)
        if encoder is not None:
            encoded = encode_split(encoder, collection, run.folder, chosen.split)
        elif (encoded := run.encoded(collection, chosen.split)) is None:
            return ()
        name, options, on = safe_name(f"{part.name}-{chosen.split}"), dict[str, Any](), dict[str, Any]()
        # Where every image has one caption there is nothing to choose.
        which = "all" if (part.captions_per_image <= 1).all() else chosen.captions
        if which != "all":
            captions = f"random:{chosen.seed}" if which == "random" else which
            part = choose_captions(part, captions)
            metadata = {**encoded.about, "data": fingerprint(encoded.about["data"], part.text_fingerprint)}
            texts = encoded.texts.select(part.caption_ids)
            encoded = EncodedCollection(encoded.images, texts, part.caption_image, metadata)
            options["about"] = {"captions": captions.replace(":", ", seed ")}
            name += f"-{captions.replace(':', '-')}"
        k = self.k_test.get(part.name.lower(), _CANDIDATES) if chosen.k_test is None else chosen.k_test
        if k and isinstance(encoder, MatchingEncoder):
            candidates = rerank(encoder, part, encoded, k, folder=run.folder / "reranked" / name)
            options |= {"reranked": candidates, "unranked": chosen.unranked}
            on = {"reranked": k, "unranked": chosen.unranked}
            name += f"-k{k}-{chosen.unranked}"
        found = evaluate_split(subject, encoded, name, **options)
        recalls = {way: [found.values[f"{way} {recall}"] for recall in RECALLS] for way in DIRECTIONS}
        values = {**found.values, **{f"{way} rsum": sum(each) for way, each in recalls.items()}}
        measured_on = replace(found.on, chosen=which, centric=part.centric or "", **on)
        return (replace(found, values=values, on=measured_on),)


@dataclass(frozen=True)
class Adapted:
    """A base that is adapted to whatever it is measured on."""

    folder: Path
    base: Any
    seed: int
    options: Mapping[str, Any]

    def encoded(self, collection: Collection, split: str) -> EncodedCollection | None:
        """Return the base's embeddings of a split, adapted to the collection: no image is encoded again.

        None where too few images of its training split have captions.
        """
        available, pairs = 0, self.options["pairs"]
        if _TRAIN in collection.split_sizes:
            available = int((collection.split(_TRAIN).captions_per_image > 0).sum())
        if available < pairs:
            logger.info(f"{collection.name} has {available:,} pairs to adapt on, not {pairs:,}")
            return None
        base = encoder_of(self.base)
        plain = encode_split(base, collection, self.base.folder, split)
        logger.info(f"adapting to {pairs} pairs of {collection.name}")
        with cost_of(self.folder):
            adapted = adapt_linear(base, collection.split(_TRAIN), seed=self.seed, **self.options)
        about = {**plain.about, "encoder": adapted.describe()}
        images, texts = (
            replace(old, rows=side(old.rows, old.kind, old.ids), encoder=adapted.fingerprint, about=about)
            for old, side in ((plain.images, adapted.maps.image), (plain.texts, adapted.maps.text))
        )
        return replace(plain, images=images, texts=texts, about=about)


class Adaptations(Source):
    """A base that is adapted to each collection anew, when it is measured."""

    def check(self, plan: Plan, row: Row) -> None:
        if plan.choices.values.get("measure.split") == _TRAIN:
            raise UsageError(
                f"{row.name} is adapted on the training split, and would be measured on it",
                "measure another split, or leave the row out: --rows",
            )
        AdaptOptions.read(plan.options_of(row), "adapt")

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        return {"adapt": AdaptOptions.read(plan.options_of(row), "adapt").model_dump()}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        from diptych.training.run import Run

        base, options = plan.base_of(row), plan.options_of(row)
        assert base is not None  # what is adapted has a base, or its row is wrong
        if plan.is_given(base):
            run: Any = given_encoder(plan, base)
            state, about = [run.encoder.fingerprint], {"given": run.name}
        else:
            run = Run.open(plan.target(base))
            state = [run.numbers["step"], run.numbers["best"]]
            about = {"stands_for": f"{run.recipe.description}, adapted"}
        adapted = Adapted(plan.target(row, seed), run, seed, options)
        return Subject(adapted, None, plan.features, state=("adapted", *state, seed, options), **about)
