"""The information audit: how much of each kind of information frozen rows hold, in per cent.

A *probe* (Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016) predicts one
fact from a row. *Held* is the share of the fact's bits that it finds on test images: V-information (Xu et al.
2020) over entropy. A linear probe says what can be read off; the perceptron also what needs a little computing.
Following Pimentel et al. (Information-theoretic probing for linguistic structure, ACL 2020) neither is *the*
information in a row; both are lower bounds that can be compared between encoders because the probes are the same.

Facts of an image are grouped by who states them: so the audit measures how much of what one caption alone says
survives in the image's row (thesis chapter 4), and how far it is from task-optimal
(:func:`~diptych.analysis.information.gap_of`).

Probes are trained on rows of the split that the encoder was trained on. An encoder that fits its training
pictures in ways that do not carry over makes these unlike test rows: the figures are about what holds for new
pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from diptych.analysis.information import answers
from diptych.analysis.information.audit_report import Audit, AuditProtocol, Side
from diptych.analysis.information.probing import MOST_ROWS, PROBES, ProbeName, Rows, figures_of, probe
from diptych.analysis.information.questions import PLACES, Answers, Questions, questions_of
from diptych.core.errors import DataError, NumericalError
from diptych.data.collection import Collection
from diptych.metrics.bootstrap import Bootstrap


@dataclass(frozen=True, eq=False)
class Encoded:
    """One split as it was encoded."""

    collection: Collection  # with records that say facts, codes or both
    images: np.ndarray  # (n_images, d) embeddings
    texts: np.ndarray  # (n_captions, d) embeddings


Splits = tuple[Encoded, Encoded, Encoded]  # train, validation and test


def audit(
    conditions: Mapping[str, Splits],
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    *,
    seed: int = 0,
    most: int = MOST_ROWS,
    bootstrap: Bootstrap | None = None,
    about: dict[str, Any] | None = None,
) -> Audit:
    """Audit the embeddings of both sides under every condition."""
    bootstrap = bootstrap or Bootstrap()
    parts = [one.collection for one in next(iter(conditions.values()))]
    return Audit(
        AuditProtocol(
            "facts" if answers.has_facts(parts[0]) else "words",
            {name: PROBES[name] for name in probes},
            most,
            seed,
            bootstrap.samples,
            bootstrap.confidence,
            (parts[0].n_images, parts[1].n_images, parts[2].n_images),
            dict(about or {}),
        ),
        {
            condition: {
                side: audit_side(side, splits, probes, seed, most, bootstrap) for side in ("image", "caption")
            }
            for condition, splits in conditions.items()
        },
    )


def side_questions(
    side: Literal["image", "caption"], collections: Sequence[Collection], most: int = MOST_ROWS
) -> Questions:
    """Return everything that can be asked of one side's rows of train, validation and test."""
    train, images = collections[0], side == "image"
    asked: dict[str, list[Answers]] = {}
    if not answers.has_facts(train):
        words = answers.content_words(train, fix=_more_images(train, most))
        asked["words"] = [
            (answers.image_words if images else answers.caption_words)(one, words) for one in collections
        ]
    elif images:
        ever = answers.stated_keys(train)
        asked["facts"] = [answers.image_facts(one, ever) for one in collections]
    else:
        asked["facts"] = [answers.caption_facts(one, stated=True) for one in collections]
        asked["unstated facts"] = [answers.caption_facts(one, stated=False) for one in collections]
    if answers.has_codes(train):
        asked["digits"] = [
            (answers.carried_codes if images else answers.caption_codes)(one) for one in collections
        ]
    whole = Questions.joined(
        [questions_of(given[0], given[1], given[2], what) for what, given in asked.items()]
    )
    if not whole.keys:
        reasons = " ".join(whole.notes) or "no fact, digit or word of them is told."
        raise DataError(
            f"nothing can be asked of {side} rows: {reasons.rstrip('.')}",
            "audit a test split of two images or more, whose captions differ"
            if collections[2].n_images < 2
            else "what test images say must differ, and be said of training and validation images too; "
            + _more_images(train, most),
        )
    if any(key.startswith("code ") for given in asked.values() for key in given[0].keys):
        note = (
            "digits: a picture carries several codes, whose digits depend on each other where they are numbers of "
            "neighbouring captions: their bits are counted more than once."
        )
        return replace(whole, notes=(*whole.notes, note))
    return whole


def _more_images(train: Collection, most: int) -> str:
    if train.n_images < most:
        return f"all {train.n_images:,} training images are used: audit a collection with more images"
    return "audit more training images with --most"


def audit_side(
    side: Literal["image", "caption"],
    splits: Splits,
    probes: Sequence[ProbeName],
    seed: int,
    most: int,
    bootstrap: Bootstrap,
) -> Side:
    rows: Rows = tuple(np.asarray(one.images if side == "image" else one.texts) for one in splits)  # type: ignore[assignment]
    for place, one, given in zip(PLACES, splits, rows, strict=True):
        _check_finite(given, side, place, one.collection)
    questions = side_questions(side, [one.collection for one in splits], most)
    probed = {name: probe(name, rows, questions, seed, most) for name in probes}
    meanings = answers.GROUPS["facts" if answers.has_facts(splits[0].collection) else "words"][side]
    groups, single = figures_of(meanings, questions, probed, seed, bootstrap)
    return Side((len(rows[0]), len(rows[1]), len(rows[2])), groups, single, questions.notes)


def _check_finite(rows: np.ndarray, side: str, place: str, collection: Collection) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        names = collection.image_ids if side == "image" else collection.caption_ids
        known = f", {names[bad[0]]}" if len(names) == len(rows) else ""
        raise NumericalError(
            f"{len(bad):,} of {len(rows):,} {side} rows of the {place} split are not finite, the first is row "
            f"{bad[0]}{known}",
            "the encoder is damaged or diverged: load or train it again",
        )
