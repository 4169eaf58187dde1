"""Measuring an encoder as it is on the test split of a collection, re-ranked where it has a matching head.

What a person may choose (``--set measure.KEY=VALUE``), and what is taken when nobody does:

============ ========== ==================================================================================
``captions`` ``all``    ``all`` captions of each image, the ``first``, or one at ``random``
``seed``     0          of the random captions
``k_test``   128, 256   candidates per query that a matching head scores again: 256 for MS COCO; 0 for none
``unranked`` ``miss``   what becomes of the others; ``published``: they tie at −100
``split``    ``test``   which part is measured on
============ ========== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.studies.given import encoder_of
from diptych.studies.measurement import Measurement, Subject
from diptych.studies.results import file_name
from diptych.studies.retrieval import RECALLS, columns_of
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    import numpy as np

    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import Embeddings
    from diptych.encoders.encoded import EncodedCollection
    from diptych.evaluation import Result

MEASURED_BY = ("captions", "seed", "k_test", "unranked", "split")
"""What a person may choose."""

_CAPTIONS = ("all", "first", "random")
_CANDIDATES = 128
_MEASURES = (*RECALLS, "rsum")


@dataclass(frozen=True)
class Chosen:
    """What a person chose about measuring.

    Attributes:
        captions: ``all``, ``first`` or ``random``.
        seed: of random captions.
        k_test: how many candidates are scored again; None for what is usual on the collection.
        unranked: what becomes of the others.
        split: the part.
    """

    captions: str = "all"
    seed: int = 0
    k_test: int | None = None
    unranked: str = "miss"
    split: str = "test"


def chosen_of(values: Mapping[str, Any]) -> Chosen:
    """The choices that were made, checked."""
    from diptych.evaluation.reranking import check_unranked

    chosen = Chosen(**values)
    if chosen.captions not in _CAPTIONS:
        raise UsageError(f"measure.captions is {chosen.captions!r}", f"give one of {', '.join(_CAPTIONS)}")
    for name, least in (("seed", 0), ("k_test", 0)):
        value = getattr(chosen, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise UsageError(f"measure.{name} is {value!r}", f"give a whole number from {least}")
    check_unranked(chosen.unranked)
    return chosen


def check_zero_shot(values: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
    """See that the choices are possible, and that every collection has the part that is measured on."""
    chosen = chosen_of(values)
    for name, collection in collections.items():
        if not collection.split_sizes.get(chosen.split):
            raise UnknownNameError(f"split of {name}", chosen.split, collection.split_sizes)


@dataclass(frozen=True)
class ZeroShot:
    """Recalls and their sums in both directions, of whatever encoder a row is.

    Attributes:
        k_test: dataset → how many candidates are usually scored again, where that is not 128.
    """

    k_test: Mapping[str, int] = field(default_factory=lambda: {"coco": 256})

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the encoder and the person's choices."""
        return {"kind": "zero-shot", "candidates": _CANDIDATES, "k_test": dict(self.k_test)}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; embeddings and values per query are kept in the row's folder.

        Nothing comes of a row that is adapted to each collection where one has nothing to adapt on.
        """
        from diptych.encoders.encode import encode_collection
        from diptych.evaluation.evaluate_encoder import evaluate_encoded
        from diptych.studies.adapted import Adapted

        chosen = chosen_of(subject.measuring)
        if isinstance(subject.run, Adapted) and not subject.run.possible_on(subject.collection):
            return ()
        part, folder = subject.collection.split(chosen.split), subject.run.folder
        name = f"{file_name(part.name)}-{chosen.split}"
        if isinstance(subject.run, Adapted):
            encoder = None
            encoded = subject.run.encoded(subject.collection, chosen.split, name)
        else:
            encoder = encoder_of(subject.run)
            encoded = encode_collection(
                encoder, part, folder / "embeddings" / name, chosen.split, should_stop=subject.should_stop
            )
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
    """The rows of a part with fewer captions than were embedded."""
    from diptych.encoders.encoded import EncodedCollection

    if len(part.captions) == len(encoded.texts):
        return encoded
    places = {name: place for place, name in enumerate(encoded.texts.ids)}
    texts = _taken(encoded.texts, [places[name] for name in part.caption_ids])
    about = {**encoded.about, "data": fingerprint(encoded.about["data"], part.text_fingerprint)}
    return EncodedCollection(encoded.images, texts, part.caption_image, about)


def _taken(texts: Embeddings, places: list[int]) -> Embeddings:
    import numpy as np

    rows: np.ndarray = np.asarray(texts.rows)[np.array(places, dtype=np.int64)]
    return replace(texts, ids=[texts.ids[place] for place in places], rows=rows)


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

    candidates = rerank(encoder, part, encoded, k, folder=stored, should_stop=subject.should_stop)
    return evaluate_encoded(
        encoded, None, _MEASURES, reranked=candidates, unranked=unranked, samples=0, trec=False, about=about
    )
