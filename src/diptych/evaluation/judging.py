"""Human judgements of what was embedded: how relevance and measures of an evaluation agree with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.core.files import write_json
from diptych.data.extended_positives import ExtendedPositives
from diptych.data.judgements import Judged, match_judgements
from diptych.encoders.encoded import EncodedCollection
from diptych.evaluation import Result
from diptych.evaluation.judgements import HumanAgreement, JudgedPairs, agreement_with_people
from diptych.evaluation.testing import grades_of, ground_truth_of
from diptych.metrics import Bootstrap, Relevance, similarity
from diptych.metrics.grade_table import GradeTable
from diptych.metrics.relevance import unit_rows
from diptych.metrics.sources import RowProducts

JUDGEMENTS_FILE = "judgements.json"


def judge_encoded(
    encoded: EncodedCollection,
    result: Result,
    judged: Judged,
    folder: Path | str | None = None,
    *,
    positives: ExtendedPositives | None = None,
    relevance: Relevance | None = None,
    samples: int = 1000,
) -> HumanAgreement:
    """Correlate an evaluation with what people said of pairs.

    Kinds of gain: the label; label or similarity, which is the gain of DCG_CM; the similarity alone (both by
    the relevance model where one is given); the score, where that is another number; the grade, where the
    positives have any.
    """
    chosen = str(result.protocol.about.get("captions", "all"))
    found = match_judgements(
        judged,
        encoded.images.ids,
        encoded.texts.ids,
        encoded.caption_image,
        in_order=not chosen.startswith("random"),
    )
    pairs = JudgedPairs(found.images, found.captions, found.ratings, found.lowest, found.line())
    truth = ground_truth_of(encoded, positives)
    images, texts = encoded.images.rows, encoded.texts.rows
    scores = similarity(encoded.similarity).source(images, texts, encoded.images.ids, encoded.texts.ids)
    pair = found.images, found.captions
    label = truth.i2t.holds(*pair).astype(np.float64)
    gains = {"label": label}
    similar: np.ndarray | None
    if relevance is not None:
        similar = relevance.source(truth.n_images, truth.n_texts).positives(*pair)
        by = relevance.name
    elif encoded.similarity == "cosine":
        similar = RowProducts(unit_rows(images, "image"), unit_rows(texts, "text")).positives(*pair)
        by = "the evaluated model"
    else:
        similar, by = None, ""  # penalties
    if similar is not None:
        gains["label or similarity (DCG_CM)"] = np.where(label > 0, 1.0, np.clip(similar, 0.0, 1.0))
        gains[f"similarity by {by}"] = similar
    if relevance is not None or similar is None:
        gains["score of the evaluated model"] = scores.positives(*pair)
    grades = grades_of(positives)
    if grades is not None:
        gains["grade"] = GradeTable(truth.i2t, "i2t", grades).of(*pair)
    agreement = agreement_with_people(pairs, scores, truth, gains, result.per_query, Bootstrap(samples))
    if folder is not None:
        write_json(Path(folder) / JUDGEMENTS_FILE, agreement.to_dict())
    return agreement
