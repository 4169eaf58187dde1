"""The linear probe against scikit-learn, and what heads must not do to each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.information.linear import Heads, fit_linear
from diptych.analysis.information.probing import PENALTIES, cross_entropy, linear_logits, linear_path

N_CLASSES = (3, 2, 5, 3)


def data(n: int = 240, width: int = 7, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels that depend on them, a fifth of them not asked."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, width))
    labels = np.stack(
        [
            (rows @ random.normal(size=(width, size)) + random.gumbel(size=(n, size))).argmax(axis=1)
            for size in N_CLASSES
        ],
        axis=1,
    )
    labels[random.random(labels.shape) < 0.2] = -1
    return torch.from_numpy(rows).float(), torch.from_numpy(labels)


@pytest.mark.parametrize("penalty", [0.3, 0.01, 0.0005])
def test_agrees_with_scikit_learn(penalty: float) -> None:
    from sklearn.linear_model import LogisticRegression

    rows, labels = data()
    heads = Heads(N_CLASSES)
    weights = fit_linear(
        rows, labels, heads, torch.full((len(N_CLASSES),), penalty), tolerance=1e-5, most_steps=2000
    )
    found = heads.log_probabilities(linear_logits(rows, weights))
    for question in range(len(N_CLASSES)):
        asked = labels[:, question] >= 0
        # scikit-learn's two-class form has one weight vector, on which our penalty weighs half
        weight = (2 if N_CLASSES[question] == 2 else 1) / (penalty * int(asked.sum()))
        theirs = LogisticRegression(C=weight, tol=1e-8, max_iter=10_000)
        theirs.fit(rows[asked].numpy(), labels[asked, question].numpy())
        expected = theirs.predict_log_proba(rows.numpy())
        mine = found[:, heads.question == question].numpy()
        np.testing.assert_allclose(np.exp(mine), np.exp(expected), atol=5e-4)


def test_a_question_does_not_depend_on_its_company() -> None:
    rows, labels = data()
    penalty = torch.full((4,), 0.02)
    together = fit_linear(rows, labels, Heads(N_CLASSES), penalty, tolerance=1e-5)
    alone = fit_linear(rows, labels[:, 2:3], Heads(N_CLASSES[2:3]), penalty[:1], tolerance=1e-5)
    columns = Heads(N_CLASSES).question == 2
    np.testing.assert_allclose(together[:, columns].numpy(), alone.numpy(), atol=2e-4)


def test_the_path_takes_the_best_penalty_of_each_question() -> None:
    rows, labels = data(seed=1)
    more_rows, more_labels = data(400, seed=1)
    heads = Heads(N_CLASSES)
    weights, chosen = linear_path(rows, labels, more_rows, more_labels, heads)
    costs = torch.stack(
        [
            cross_entropy(
                more_rows, more_labels, heads, fit_linear(rows, labels, heads, torch.full((4,), penalty))
            )
            for penalty in PENALTIES
        ]
    )
    np.testing.assert_allclose(
        cross_entropy(more_rows, more_labels, heads, weights), costs.min(dim=0).values, atol=2e-3
    )
    assert set(chosen.tolist()) <= {torch.tensor(penalty).item() for penalty in PENALTIES}


@given(st.lists(st.integers(2, 6), min_size=1, max_size=6), st.integers(0, 99))
def test_heads_lay_out_and_back(n_classes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    heads = Heads(n_classes)
    labels = np.stack([random.integers(-1, size, 9) for size in n_classes], axis=1)
    logits = torch.from_numpy(random.normal(size=(9, heads.width))).float()
    found = heads.log_probabilities(logits)
    picked = heads.of_labels(found, torch.from_numpy(labels)).numpy()
    answers = heads.most_probable(logits).numpy()
    for question, size in enumerate(n_classes):
        mine = logits[:, heads.question == question].double().numpy()
        assert mine.shape == (9, size)
        expected = mine - np.log(np.exp(mine).sum(axis=1, keepdims=True))
        for row, label in enumerate(labels[:, question]):
            right = 0.0 if label < 0 else expected[row, label]
            assert picked[row, question] == pytest.approx(right, abs=1e-5)
        assert answers[:, question].tolist() == mine.argmax(axis=1).tolist()
    asked = (labels >= 0).sum(axis=0)
    sums = heads.summed(heads.shares(torch.from_numpy(labels)).sum(dim=0)).numpy()
    np.testing.assert_allclose(sums, (asked > 0).astype(float), atol=1e-6)


def test_rows_that_say_nothing_leave_the_frequencies() -> None:
    labels = torch.tensor([[0], [0], [0], [1]])
    heads = Heads([2])
    weights = fit_linear(torch.zeros(4, 3), labels, heads, torch.tensor([0.1]), tolerance=1e-6)
    shares = heads.log_probabilities(linear_logits(torch.zeros(1, 3), weights)).exp()
    np.testing.assert_allclose(shares.numpy(), [[0.75, 0.25]], atol=1e-4)
