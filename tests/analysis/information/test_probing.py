from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import refused
from sklearn.linear_model import LogisticRegression

from diptych.analysis.information.probing import (
    PENALTIES,
    Regressions,
    constant_bits,
    constant_frequencies,
    control_labels,
    majority,
    probe,
)
from diptych.analysis.information.questions import NOT_ASKED, Answers, questions_of
from diptych.core.errors import UnknownNameError


def shares(found, questions):
    """Held of each question."""
    there = constant_bits(questions, questions.parts["test"].labels)
    share: np.ndarray = 1 - found.bits.sum(axis=0) / there.sum(axis=0)
    return share


@pytest.mark.parametrize(("name", "least"), [("linear", 0.99), ("mlp", 0.9)])
@pytest.mark.parametrize("n_classes", [2, 12])
def test_planted_facts_are_held_and_others_are_not(planted, name, least, n_classes):
    rows, questions = planted(60 * n_classes, n_classes)
    found = probe(name, rows, questions)
    held = shares(found, questions)
    assert (held[:2] > least).all()
    # neither many classes nor few make something of nothing
    assert (np.abs(held[2:]) < 0.03).all()
    assert (found.right[:, :2].mean(axis=0) > 0.97).all()
    assert (found.settings[:2] > 0).all()


def test_the_perceptron_finds_what_is_not_linear(planted):
    """Whether two facts agree is in the rows, and no linear function of them."""
    rows, questions = planted(600, 2, others=0)
    parts = [questions.parts[split] for split in ("train", "validation", "test")]
    same = [np.where(part.labels[:, :1] == part.labels[:, 1:2], "yes", "no").astype(object) for part in parts]
    agree = questions_of(*(Answers(("agree",), one, {}, np.arange(len(one))) for one in same))
    linear, mlp = (shares(probe(name, rows, agree), agree)[0] for name in ("linear", "mlp"))
    assert linear < 0.05
    assert mlp > 0.6


def test_controls_are_right_by_chance_alone(planted):
    rows, questions = planted(300, 5)
    for name in ("linear", "mlp"):
        found = probe(name, rows, questions)
        assert (found.control_right.mean(axis=0) < 0.35).all()
        assert (found.right[:, :2].mean(axis=0) - found.control_right[:, :2].mean(axis=0) > 0.6).all()
        # it does learn some of its training answers
        assert (found.by_heart[:2] > 0.3).all()


def test_control_answers_are_of_images(planted):
    _, questions = planted(400, 3)
    for part in (questions.parts["train"], questions.parts["test"]):
        part.images[:] = np.arange(len(part.images)) // 2  # two rows an image
        part.labels[::7, 0] = NOT_ASKED
    drawn = control_labels(questions, "train", 0)
    both = (questions.parts["train"].labels[0::2, 1] >= 0) & (questions.parts["train"].labels[1::2, 1] >= 0)
    assert (drawn[0::2, 1] == drawn[1::2, 1])[both].all()
    assert ((drawn == NOT_ASKED) == (questions.parts["train"].labels == NOT_ASKED)).all()
    # drawn for its own question, split and seed, with the frequencies of the real answers
    assert (drawn[:, 1] != drawn[:, 2]).any()
    assert (control_labels(questions, "train", 1) != drawn).any()
    frequent = np.bincount(drawn[:, 1]) / len(drawn)
    expected = np.bincount(questions.parts["train"].labels[:, 1]) / len(drawn)
    np.testing.assert_allclose(frequent, expected, atol=0.1)


def test_the_same_seed_gives_the_same_and_company_changes_nothing(planted):
    rows, questions = planted(80, 3)
    alone = questions.subset(np.array([1]), np.arange(80))
    for name in ("linear", "mlp"):
        first, again = (probe(name, rows, questions, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.bits, again.bits)
        single = probe(name, rows, alone, seed=3)
        np.testing.assert_allclose(single.bits[:, 0], first.bits[:, 1], atol=5e-3)
    other = probe("mlp", rows, questions, seed=4)
    assert (other.bits != first.bits).any()


def test_constant_prediction_by_hand():
    def column(values):
        return Answers(("k",), np.array(list(values), dtype=object)[:, None], {}, np.arange(len(values)))

    questions = questions_of(column("aaab"), column("aaabaaab"), column("ab"))
    # (3 + 1) / 6 and (1 + 1) / 6: of the smoothings, 1 is nearest to what validation rows have
    np.testing.assert_allclose(constant_frequencies(questions)[0], [4 / 6, 2 / 6])
    np.testing.assert_allclose(
        constant_bits(questions, questions.parts["test"].labels)[:, 0], [-np.log2(4 / 6), -np.log2(2 / 6)]
    )
    assert majority(questions).tolist() == [0]
    # few training rows that are not like the others are not trusted
    lopsided = questions_of(column("aaab"), column("ab" * 50), column("ab"))
    np.testing.assert_allclose(constant_frequencies(lopsided)[0], [0.5, 0.5], atol=0.01)


def test_what_is_refused(planted):
    rows, questions = planted(50, 2)
    refused(UnknownNameError, "mlp", probe, "tree", rows, questions)


def data(n_classes, n=240, width=7, seed=0):
    """Rows and labels of four questions that depend on them, a fifth of them not asked."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, width))
    labels = np.stack(
        [
            (rows @ random.normal(size=(width, n_classes)) + random.gumbel(size=(n, n_classes))).argmax(
                axis=1
            )
            for _ in range(4)
        ],
        axis=1,
    )
    labels[random.random(labels.shape) < 0.2] = -1
    return torch.from_numpy(rows).float(), torch.from_numpy(labels)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("penalty", [0.3, 0.01, 0.0005])
def test_agrees_with_scikit_learn(penalty, n_classes):
    rows, labels = data(n_classes)
    probes = Regressions((), (n_classes,) * 4, rows.shape[1])
    rows, probes.weights = rows.double(), probes.weights.double()  # so that rounding does not stop it early
    probes.minimise(rows, labels, torch.full((4,), penalty), flat=1e-6)
    found = probes.log_probabilities(rows).exp().numpy()
    for question in range(4):
        asked = labels[:, question] >= 0
        # scikit-learn's two-class form has one weight vector, on which our penalty weighs half
        weight = (2 if n_classes == 2 else 1) / (penalty * int(asked.sum()))
        theirs = LogisticRegression(C=weight, tol=1e-8, max_iter=10_000)
        theirs.fit(rows[asked].numpy(), labels[asked, question].numpy())
        np.testing.assert_allclose(found[:, question], theirs.predict_proba(rows.numpy()), atol=1e-4)


def test_the_path_takes_the_best_penalty_of_each_question():
    rows, labels = data(3, seed=1)
    more_rows, more_labels = data(3, 400, seed=1)
    each = {penalty: Regressions((), (3,) * 4, rows.shape[1]) for penalty in (None, *PENALTIES)}
    chosen, *_ = (
        probes.fit((rows, labels), (more_rows, more_labels), penalty and torch.full((4,), penalty))
        for penalty, probes in each.items()
    )
    found, *costs = (probes.cross_entropy(more_rows, more_labels) for probes in each.values())
    np.testing.assert_allclose(found, torch.stack(costs).min(dim=0).values, atol=2e-3)
    assert set(chosen.tolist()) <= {torch.tensor(penalty).item() for penalty in PENALTIES}
