"""One example of every artifact of encoders, index, analysis and sparse, for the contract of artifacts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.analysis.cocos_report import CocosProtocol, CocosReport, Spread, WeightHistogram
from diptych.analysis.granularity.result import (
    Effect,
    Example,
    FeatureDifference,
    FeatureSummary,
    Granularity,
    GranularityComparison,
)
from diptych.analysis.information.audit import (
    Audit,
    AuditProtocol,
    GroupFigure,
    Held,
    Probing,
    QuestionFigure,
    Side,
)
from diptych.core.artifact import Artifact
from diptych.data.row_store import RowPlan
from diptych.encoders.adapted import LinearMaps
from diptych.encoders.dual_encoder import EncoderHeader
from diptych.encoders.embeddings import Embeddings, EncodedCollection, SparseEmbeddings, canonical_rows
from diptych.encoders.targets.contract import TargetHeader
from diptych.evaluation import evaluate
from diptych.evaluation.agreement import Faithfulness
from diptych.index.storage import FileRecord, Header
from diptych.metrics import GroundTruth
from diptych.sparse.evaluate import SparseMeasures
from diptych.sparse.measures import Deviation
from diptych.training.features import FeatureOptions, FeatureStore

_ROWS = np.eye(4, 3, dtype=np.float32)


def embeddings(kind: str = "image") -> Embeddings:
    return Embeddings(["a", "é", "", "a b\nc"], _ROWS, "e", "d", kind, {"split": "test"}, "order")


def sparse(kind: str = "image") -> SparseEmbeddings:
    return SparseEmbeddings(list("abcd"), canonical_rows(_ROWS), ("dog", "cat", "##s"), "h", "d", kind, {})


def encoded() -> EncodedCollection:
    return EncodedCollection(embeddings(), embeddings("text"), np.arange(4), {"dataset": "made"})


def cocos() -> CocosReport:
    histogram = WeightHistogram()
    histogram.add(np.array([0.0, 0.2, 3e4]), 1)
    protocol = CocosProtocol(
        "infonce", {"temperature": 0.1}, "cosine", 0.01, "temperature", "none", 2, (3, 4), (5, 6)
    )
    return CocosReport(
        protocol, {"i2t": {"in_batch": Spread(1.5, 0.5, 2)}}, {"i2t": {"negatives": histogram}}
    )


def audit() -> Audit:
    held = Held(0.5, 0.25, 0.75, 2.0) if len(Held.__dataclass_fields__) == 4 else _held()
    probing = Probing(held, 0.9, 0.5, 0.6, 0.0, 1.0)
    question = QuestionFigure("shape", 3, (400, 200), 1.5, 0.4, {"shared": 1.0}, {"linear": probing})
    side = Side(
        (4, 5, 6), (GroupFigure("shared", {"linear": held}, {"linear": 0.0}),), (question,), ("note",)
    )
    protocol = AuditProtocol("facts", {"linear": "ridge"}, 400, 0, 200, 0.95, (4, 5, 6))
    return Audit(protocol, {"without": {"image": side}})


def _held() -> Held:
    return Held(*(0.5 for _ in Held.__dataclass_fields__))


def granularity() -> Granularity:
    summary = FeatureSummary("words", "words of a caption", "words", 3.0, None, 2.0, 4.0, 2, {"empty": 1})
    example = Example("c", "a dog", 1.5)
    return Granularity(
        "made",
        {"samples": 0},
        (summary,),
        np.array([[3.0], [np.nan]]),
        np.array([1.0, np.nan]),
        np.array([0, 1]),
        ["i", "j"],
        ["c", "d"],
        (example,),
        (example,),
    )


def comparison() -> GranularityComparison:
    effect = Effect(0.5, 0.25)
    one = FeatureDifference("words", 3.0, None, effect, effect, effect, effect, None, effect, 0.01, None)
    return GranularityComparison("a", "b", 0, (one,), ("note",))


def measures() -> SparseMeasures:
    result = evaluate(_ROWS, _ROWS, GroundTruth.from_caption_image(np.arange(4), 4))
    faithful = Faithfulness("t2i", {"R@1": float("nan")}, 10, 0.5, float("nan"), 1, 4)
    return SparseMeasures(
        {"dataset": "made"},
        result,
        result,
        1.5,
        {"images": 2.0},
        {"images": 0.0},
        Deviation(10, 0.5),
        {"t2i": faithful},
        {"t2i R@1": None},
        {"exact": np.ones(4)},
    )


EXAMPLES: list[Callable[[], Artifact]] = [
    embeddings,
    sparse,
    encoded,
    lambda: RowPlan({"encoder": "e"}, 10, (3, 2), 4, "float16", "captions"),
    lambda: FeatureStore(FeatureOptions(views=1), np.ones((2, 2, 3), np.float16)),
    cocos,
    audit,
    granularity,
    comparison,
    measures,
    lambda: LinearMaps.identity(3),
    lambda: EncoderHeader("length", "f", {"name": "x"}),
    lambda: TargetHeader("lsa", "f", {}),
    lambda: Header(
        "exact", "e", 3, 4, {"m": 16, "url": ""}, {"kind": "image"}, {"a.npy": FileRecord(3, "f")}
    ),
]
