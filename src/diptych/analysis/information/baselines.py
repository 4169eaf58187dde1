"""What a probe is held against: the constant prediction, and the control task's random answers."""

from __future__ import annotations

import numpy as np

from diptych.analysis.information.perceptron import question_number
from diptych.analysis.information.questions import NOT_ASKED, PLACES, Place, Questions
from diptych.core.draws import draw_uniform

_CONTROL = int.from_bytes(b"control")

SMOOTHINGS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Counts added to every class of a constant prediction."""


def constant_frequencies(questions: Questions) -> list[np.ndarray]:
    """Per question the constant prediction: training frequencies, smoothed as suits the validation rows.

    They are (n_c + a) / (n + a · classes) with the best ``a`` of a few: with few training rows the plain
    frequencies are a bad prediction, and a probe that only corrects them would seem to have found something.
    """
    found = []
    for column, n_classes in enumerate(questions.n_classes):
        counts, judged = (
            np.bincount(given[given >= 0], minlength=n_classes)
            for given in (questions.part(place).labels[:, column] for place in ("train", "validation"))
        )
        smoothed = [(counts + extra) / (counts + extra).sum() for extra in SMOOTHINGS]
        found.append(min(smoothed, key=lambda shares: -float(judged @ np.log(shares))))
    return found


def constant_bits(questions: Questions, labels: np.ndarray) -> np.ndarray:
    """(n, q) −log₂ of the constant prediction of each row's answer; 0 where not asked."""
    bits = np.zeros(labels.shape)
    for column, shares in enumerate(constant_frequencies(questions)):
        cost = np.append(-np.log2(shares), 0.0)  # the last is for NOT_ASKED = -1
        bits[:, column] = cost[labels[:, column]]
    return bits


def control_labels(questions: Questions, place: Place, seed: int) -> np.ndarray:
    """(n, q) random answers of the same training frequencies, one per image and question."""
    part = questions.part(place)
    labels = np.full(part.labels.shape, NOT_ASKED, dtype=np.int64)
    for column, (key, n_classes) in enumerate(zip(questions.keys, questions.n_classes, strict=True)):
        given = questions.train.labels[:, column]
        counts = np.bincount(given[given >= 0], minlength=n_classes)
        number = PLACES.index(place)
        drawn = draw_uniform(seed, _CONTROL, number, question_number(key), part.images)
        answers = np.searchsorted(np.cumsum(counts) / counts.sum(), drawn, side="right")
        asked = part.labels[:, column] != NOT_ASKED
        labels[asked, column] = np.minimum(answers, n_classes - 1)[asked]
    return labels


def majority(questions: Questions) -> np.ndarray:
    """(q,) the most frequent answer of the training rows."""
    labels = questions.train.labels
    return np.array([np.bincount(given[given >= 0]).argmax() for given in labels.T], dtype=np.int64)
