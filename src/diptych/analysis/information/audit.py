"""The information audit: how much of each kind of information frozen rows hold, in per cent.

A *probe* (Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016)
predicts one fact from a row: linearly, or by a small perceptron. What is *held* is the share of the
fact's bits that the probe finds on test images: V-information (Xu et al. 2020) over entropy, see
:mod:`~diptych.analysis.information.held`. A linear probe says what can be read off; the perceptron
also what needs a little computing. Following Pimentel et al. (Information-theoretic probing for
linguistic structure, ACL 2020) neither is *the* information in a row, which no finite probe measures;
both are lower bounds that can be compared between encoders because the probes are the same.

Facts of an image are grouped by who states them, so that the audit measures what chapter 4 of
Hendriksen's thesis could only argue about: how much of what one caption alone says survives in the
image's row, and how far it is from a task-optimal representation (:mod:`.gap`).

Probes are trained on rows of the split that the encoder was trained on, chosen on validation and measured
on test rows. An encoder that fits its training pictures in ways that do not carry over makes the probes'
rows unlike their test rows, which lowers what is found: the figures are about what holds for new pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from diptych.analysis.information.answers import Answers
from diptych.analysis.information.audit_report import Audit, AuditProtocol
from diptych.analysis.information.facts_of import (
    CAPTION_GROUPS,
    IMAGE_GROUPS,
    caption_codes,
    caption_facts,
    carried_codes,
    has_codes,
    has_facts,
    image_facts,
    stated_keys,
)
from diptych.analysis.information.figures import Side
from diptych.analysis.information.probing import MOST_ROWS, PROBES, ProbeName, Rows, probe
from diptych.analysis.information.questions import PLACES, Questions, questions_of
from diptych.analysis.information.summing import group_figures, question_figures
from diptych.analysis.information.words_of import (
    WORD_CAPTION_GROUPS,
    WORD_IMAGE_GROUPS,
    caption_words,
    content_words,
    image_words,
)
from diptych.core.errors import DataError, NumericalError
from diptych.data.collection import Collection
from diptych.evaluation.bootstrap import Bootstrap

__all__ = ["GROUPS", "Encoded", "audit", "audit_side", "side_questions"]

GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "facts": {"image": IMAGE_GROUPS, "caption": CAPTION_GROUPS},
    "words": {
        "image": {**WORD_IMAGE_GROUPS, "shortcut": IMAGE_GROUPS["shortcut"]},
        "caption": {**WORD_CAPTION_GROUPS, "shortcut": CAPTION_GROUPS["shortcut"]},
    },
}
"""Content → side → kind of information → what it means, in the order they are told."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """One split as it was encoded.

    Attributes:
        collection: with records that say facts, codes or both.
        images: (n_images, d) rows.
        texts: (n_captions, d) rows.
    """

    collection: Collection
    images: np.ndarray
    texts: np.ndarray


Splits = tuple[Encoded, Encoded, Encoded]
"""Train, validation and test."""


def audit(
    conditions: Mapping[str, Splits],
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    *,
    seed: int = 0,
    most: int = MOST_ROWS,
    bootstrap: Bootstrap | None = None,
    about: dict[str, Any] | None = None,
) -> Audit:
    """Audit the rows of both sides under every condition.

    Args:
        conditions: ``without`` and, where there are shortcuts, ``with`` → rows of three splits.
        probes: which.
        seed: of probes and control tasks.
        most: training rows per question.
        bootstrap: of the intervals; 1,000 resamples when not given.
        about: dataset, splits, encoder and whatever else the figures depend on.

    Raises:
        DataError: a split without images or captions; nothing to ask.
        NumericalError: a row holds NaN or infinity; the message names side, split and row.
    """
    bootstrap = bootstrap or Bootstrap()
    first = next(iter(conditions.values()))
    content = "facts" if has_facts(first[0].collection) else "words"
    return Audit(
        AuditProtocol(
            content,
            {name: PROBES[name] for name in probes},
            most,
            seed,
            bootstrap.samples,
            bootstrap.confidence,
            (first[0].collection.n_images, first[1].collection.n_images, first[2].collection.n_images),
            dict(about or {}),
        ),
        {
            condition: {
                "image": audit_side("image", splits, probes, seed, most, bootstrap),
                "caption": audit_side("caption", splits, probes, seed, most, bootstrap),
            }
            for condition, splits in conditions.items()
        },
    )


def side_questions(
    side: Literal["image", "caption"], collections: Sequence[Collection], most: int = MOST_ROWS
) -> Questions:
    """Everything that can be asked of one side's rows of train, validation and test.

    Args:
        side: whose rows.
        collections: the three.
        most: how many training images may be used; with fewer than these there are no more to be had.

    Raises:
        DataError: nothing can be asked; the message says why.
    """
    asked: list[tuple[str, list[Answers]]] = []
    if has_facts(collections[0]):
        if side == "image":
            ever = stated_keys(collections[0])
            asked.append(("facts", [image_facts(one, ever) for one in collections]))
        else:
            asked.append(("facts", [caption_facts(one, stated=True) for one in collections]))
            asked.append(("unstated facts", [caption_facts(one, stated=False) for one in collections]))
    else:
        words = content_words(collections[0], fix=_more_images(collections[0], most))
        of_words = image_words if side == "image" else caption_words
        asked.append(("words", [of_words(one, words) for one in collections]))
    if has_codes(collections[0]):
        of_codes = carried_codes if side == "image" else caption_codes
        asked.append(("digits", [of_codes(one) for one in collections]))
    whole: Questions | None = None
    notes = []
    if any(key.startswith("code ") for _, (train, *_) in asked for key in train.keys):
        notes.append(
            "digits: a picture carries several codes, whose digits depend on each other where they are numbers of "
            "neighbouring captions: their bits are counted more than once."
        )
    for what, (train, validation, test) in asked:
        found = questions_of(train, validation, test, what)
        whole = found if whole is None else whole.beside(found)
    if whole is None or not whole.keys:
        reasons = " ".join(() if whole is None else whole.notes) or "no fact, digit or word of them is told."
        raise DataError(
            f"nothing can be asked of {side} rows: {reasons.rstrip('.')}",
            "audit a test split of two images or more, whose captions differ"
            if collections[2].n_images < 2
            else "what test images say must differ, and be said of training and validation images too; "
            + _more_images(collections[0], most),
        )
    return replace(whole, notes=(*whole.notes, *notes))


def _more_images(train: Collection, most: int) -> str:
    """What to do where training images are too few."""
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
    """Probe image rows or caption rows of one condition.

    Raises:
        DataError: nothing can be asked of the rows.
        NumericalError: a row holds NaN or infinity; the message names side, split and row.
    """
    rows: Rows = tuple(np.asarray(one.images if side == "image" else one.texts) for one in splits)  # type: ignore[assignment]
    for place, one, given in zip(PLACES, splits, rows, strict=True):
        _check_finite(given, side, place, one.collection)
    questions = side_questions(side, [one.collection for one in splits], most)
    probed = {name: probe(name, rows, questions, seed, most) for name in probes}
    meanings = GROUPS["facts" if has_facts(splits[0].collection) else "words"][side]
    return Side(
        (len(rows[0]), len(rows[1]), len(rows[2])),
        group_figures(meanings, questions, probed, seed, bootstrap),
        question_figures(questions, probed, seed, bootstrap),
        questions.notes,
    )


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
