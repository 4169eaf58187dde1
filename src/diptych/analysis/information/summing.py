"""From the bits of single answers to the figures of kinds of information and of questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from diptych.analysis.information.audit_report import GroupFigure, Held, Probing, QuestionFigure, held_of
from diptych.analysis.information.linear import constant_bits, control_labels, majority
from diptych.analysis.information.probing import Probed, ProbeName
from diptych.analysis.information.questions import NOT_ASKED, Questions
from diptych.metrics.bootstrap import Bootstrap


def group_figures(
    names: Iterable[str],
    questions: Questions,
    probed: Mapping[ProbeName, Probed],
    seed: int,
    bootstrap: Bootstrap,
) -> tuple[GroupFigure, ...]:
    """What probes found of each kind of information that any test answer belongs to."""
    given = {name: questions.groups[name] for name in names if name in questions.groups}
    weights = np.stack(list(given.values()))
    answers = weights.sum(axis=(1, 2))
    there, of_control = _without(questions, seed)
    by_probe = {
        probe: (
            held_of(
                _sums(there, weights), _sums(found.bits, weights), answers, questions.test.images, bootstrap
            ),
            _sums(of_control - found.control_bits, weights).sum(axis=0)
            / _sums(of_control, weights).sum(axis=0).clip(min=1e-12),
        )
        for probe, found in probed.items()
    }
    return tuple(
        GroupFigure(
            name,
            {probe: found for probe, (held, _) in by_probe.items() if (found := held[number]) is not None},
            {probe: float(control[number]) for probe, (_, control) in by_probe.items()},
        )
        for number, name in enumerate(given)
        if answers[number]
    )


def question_figures(
    questions: Questions, probed: Mapping[ProbeName, Probed], seed: int, bootstrap: Bootstrap
) -> tuple[QuestionFigure, ...]:
    """What probes found of each question; arguments as of :func:`group_figures`."""
    labels = questions.test.labels
    asked = (labels != NOT_ASKED).sum(axis=0)
    trained = (questions.train.labels != NOT_ASKED).sum(axis=0)
    there, of_control = _without(questions, seed)
    most_frequent = (labels == majority(questions)).sum(axis=0) / asked
    held: dict[ProbeName, list[Held]] = {
        # none is None: a question that is asked has bits
        probe: [one for one in held_of(there, found.bits, asked, questions.test.images, bootstrap) if one]
        for probe, found in probed.items()
    }
    return tuple(
        QuestionFigure(
            key=key,
            classes=questions.n_classes[column],
            rows=(int(trained[column]), int(asked[column])),
            entropy=float(there[:, column].sum() / asked[column]),
            majority=float(most_frequent[column]),
            groups={
                name: float(weights[:, column].sum() / asked[column])
                for name, weights in questions.groups.items()
                if weights[:, column].any()
            },
            probes={
                probe: Probing(
                    held=held[probe][column],
                    accuracy=float(found.right[:, column].sum() / asked[column]),
                    control_accuracy=float(found.control_right[:, column].sum() / asked[column]),
                    by_heart=float(found.by_heart[column]),
                    control=float(1 - found.control_bits[:, column].sum() / of_control[:, column].sum()),
                    setting=float(found.settings[column]),
                )
                for probe, found in probed.items()
            },
        )
        for column, key in enumerate(questions.keys)
    )


def _without(questions: Questions, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, q) bits of the test answers without a probe, and of those of the control task."""
    control = control_labels(questions, "test", seed)
    return constant_bits(questions, questions.test.labels), constant_bits(questions, control)


def _sums(bits: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, q) bits and (groups, n, q) weights to (n, groups)."""
    sums: np.ndarray = np.einsum("nq,gnq->ng", bits, weights)
    return sums
