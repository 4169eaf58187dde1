"""An encoder, or its stored embeddings, on a collection, with everything written that a number depends on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diptych.core.errors import MismatchError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.data.collection import Collection
from diptych.data.extended_positives import ExtendedPositives, read_extended_positives
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.given_rows import GivenRows
from diptych.evaluation.evaluate import evaluate
from diptych.evaluation.reranking import RerankedScores
from diptych.evaluation.result import Result
from diptych.metrics import (
    DEFAULT_MEASURES,
    DIRECTIONS,
    Bootstrap,
    Grades,
    GroundTruth,
    Relevance,
    Reranked,
    ScoreSource,
    similarity,
    write_trec,
)
from diptych.metrics.measuring import Names

_TREC_DEPTH = 100  # items per query in a TREC run file


def evaluate_encoder(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,
    measures: Sequence[str] = DEFAULT_MEASURES,
    **options: Any,
) -> Result:
    """Embed a collection into ``folder/embeddings``, used again when nothing has changed, and measure it.

    Args:
        measures: names such as ``"R@5"``.
        options: as of :func:`evaluate_encoded`.

    Raises:
        MismatchError: the encoder takes another kind of input than the collection holds.
    """
    encoded = encode_collection(encoder, collection, Path(folder) / "embeddings")
    return evaluate_encoded(encoded, Path(folder) / "evaluation", measures, **options)


def _pairs(truth: GroundTruth) -> str:
    sides = {way: truth.positives(way) for way in DIRECTIONS}
    arrays = {
        f"{way} {name}": getattr(side, name) for way, side in sides.items() for name in ("start", "rows")
    }
    return fingerprint_arrays(arrays)


def evaluate_encoded(
    encoded: EncodedCollection,  # the embeddings
    folder: Path | str | None = None,  # where the result goes, with TREC files; nothing is written without it
    measures: Names = DEFAULT_MEASURES,  # names such as ``"R@5"``
    *,
    reranked: Reranked | None = None,  # scored by a matching head, and measured instead of the first stage
    k: int | None = None,  # as if so many candidates of each query had been re-ranked
    unranked: str = "miss",  # of positives that are no candidates; see :mod:`diptych.evaluation.reranking`
    positives: ExtendedPositives | None = None,  # extended positives of what was embedded
    ground_truth: GroundTruth | None = None,  # instead of the collection's pairs
    protocol: str = "full",  # how the test set is cut into galleries
    ties: str | None = None,  # the tie rule
    relevance: Relevance | None = None,  # the model that says how relevant an item without a label is
    samples: int = 1000,  # resamples for 95 % intervals; 0 for none
    trec: bool = True,  # write TREC runs and qrels too
    about: dict[str, Any] | None = None,  # what else the numbers depend on
) -> Result:
    """Measure retrieval in both directions on stored embeddings."""
    if positives is not None and ground_truth is not None:
        raise UsageError("both extended positives and a ground truth are given", "give one of them")
    truth = ground_truth_of(encoded, positives) if ground_truth is None else ground_truth
    images, texts = encoded.images, encoded.texts
    source: ScoreSource = similarity(encoded.similarity).source(
        images.rows, texts.rows, images.ids, texts.ids
    )
    ranker: ScoreSource | RerankedScores = source
    if reranked is not None:
        for what, have in (("encoder", images.encoder), ("data", encoded.about["data"])):
            if (made := reranked.about.get(what)) != have:
                text = f"the candidates are of {what} {made}, the embeddings of {have}"
                raise MismatchError(text, "re-rank these embeddings: diptych evaluate --rerank")
        ranker = RerankedScores(reranked, truth, k=k, unranked=unranked, first=source)
    metadata = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"] or "all",
        "encoder": images.encoder,
        "data": encoded.about["data"],
    }
    if encoded.about.get("encoder", {}).get("stage") == "pre-training":  # rows made by hand say nothing
        metadata["stage"] = "pre-training"
    if positives is not None:
        metadata["positives"] = positives.line()
    if ground_truth is not None and (given := _pairs(truth)) != _pairs(ground_truth_of(encoded)):
        metadata["positives"] = f"given, {given}"
    result = evaluate(
        ranker,
        None,
        truth,
        measures,
        protocol=protocol,
        ties=ties,
        relevance=relevance,
        grades=grades_of(positives),
        bootstrap=Bootstrap(samples),
        about=metadata | (about or {}),
    )
    items = fingerprint(iter(images.ids), iter(texts.ids))
    result = replace(result, protocol=replace(result.protocol, items=items, data_kind=kind_of_data(encoded)))

    def write_runs(folder: Path) -> None:
        names = [["_".join(name.split()) for name in side.ids] for side in (images, texts)]
        ranked = source if reranked is None else reranked if k is None else reranked.first(k)
        write_trec(folder, ranked, truth, *names, k=_TREC_DEPTH)

    if folder is not None:
        result.save(folder, also=write_runs if trec else None)
    return result


def positives_of(encoded: EncodedCollection, source: str, **options: Any) -> ExtendedPositives:
    """Read extended positives of what was embedded; ``source`` is ``FORMAT:PATH``."""
    ids = encoded.images.ids, encoded.texts.ids
    return read_extended_positives(source, *ids, encoded.caption_image, **options)


def ground_truth_of(encoded: EncodedCollection, positives: ExtendedPositives | None = None) -> GroundTruth:
    """Return which caption describes which image: the collection's pairs, or extended ones."""
    if positives is None:
        return GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))
    return GroundTruth.from_directions(
        positives.i2t,
        positives.t2i,
        len(encoded.images),
        len(encoded.texts),
        text_image=encoded.caption_image,
        evaluated={name: positives.evaluated[name] for name in DIRECTIONS if name in positives.evaluated},
    )


def grades_of(positives: ExtendedPositives | None) -> Grades | None:
    if positives is None or positives.grades is None:
        return None
    return Grades(*positives.grades, what=positives.what.split(",")[0])


def relevance_of(encoded: EncodedCollection, by: EncodedCollection) -> Relevance:
    """Return how relevant an item is by another model's embeddings of the same images and captions."""
    if by.similarity != "cosine":
        text = f"the relevance model compares by similarity {by.similarity!r}, which gives penalties and no gains"
        raise MismatchError(text, "name a model of cosines, for example hf:openai/clip-vit-base-patch32")
    encoder = by.about.get("encoder", {})
    name = f"{encoder.get('name', encoder.get('family', 'relevance model'))} {by.images.encoder}"
    source, fix = f"relevance model {name}", "embed the same data and split with it"
    images = by.images.select(encoded.images.ids, source, fix).rows
    texts = by.texts.select(encoded.texts.ids, source, fix).rows
    mine, theirs = encoded.about["data"], by.about["data"]
    if mine == theirs:
        return Relevance(images, texts, name)
    kind = kind_of_data(encoded)
    if images is by.images.rows and texts is by.texts.rows and kind == kind_of_data(by) != GivenRows.family:
        text = f"relevance model {name} has rows of other images or captions of the same ids"
        raise MismatchError(f"{text}: of data {theirs}, and {mine} is evaluated", fix)
    return Relevance(images, texts, f"{name} (rows of data {theirs})")


def kind_of_data(encoded: EncodedCollection) -> str:
    """Return what the fingerprint of the data is of: ``"pictures"``, ``"regions"``, or given ``"rows"``."""
    encoder = encoded.about.get("encoder", {})
    image = encoder.get("image")
    if encoder.get("family") == GivenRows.family:
        return GivenRows.family
    return str(image.get("takes", "pictures")) if isinstance(image, dict) else "pictures"
