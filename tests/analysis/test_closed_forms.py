"""The equations' weights equal autograd's; the equations' counts equal the golden ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis import count, gradient_weights
from diptych.analysis.equation_counts import (
    ntxent_counts,
    ntxent_weights,
    smoothap_counts,
    smoothap_weights,
    triplet_counts,
    triplet_weights,
)
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "cocos.npz", allow_pickle=False)
PAIRS = GOLDEN["triplet_img"] @ GOLDEN["triplet_cap"].T
GROUPED = GOLDEN["smoothap_img"] @ GOLDEN["smoothap_cap"].T
EYE = np.eye(16, dtype=bool)
OWN = np.arange(8)[:, None] == np.arange(40)[None, :] // 5
DIRECTIONS = {"i2t": (PAIRS, GROUPED, OWN), "t2i": (PAIRS.T, GROUPED.T, OWN.T)}


def golden(name: str) -> np.ndarray:
    return GOLDEN[f"seed.{name}"]


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_triplets_as_equations_9_and_10_count(direction: str) -> None:
    scores = DIRECTIONS[direction][0]
    each = triplet_counts(scores, EYE, float(GOLDEN["margin"]))
    assert each.tolist() == golden(f"triplet.{direction}.C_q_per_query").tolist()
    assert each.sum() == golden(f"triplet.{direction}.C_B")
    assert (each == 0).sum() == golden(f"triplet.{direction}.C_0")
    assert each.mean() == golden(f"triplet.{direction}.C_q_mean_over_all_queries")
    assert each[each > 0].mean() == golden(f"triplet.{direction}.C_q_mean_over_nonzero_queries")
    hardest = triplet_counts(scores, EYE, float(GOLDEN["margin"]), hardest=True)
    assert hardest.sum() == golden(f"triplet_sh.{direction}.C_B")
    assert (hardest == 0).sum() == golden(f"triplet_sh.{direction}.C_0")


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_autograd_counts_triplets_the_same(direction: str) -> None:
    counts = count(Triplet(0.2), torch.from_numpy(PAIRS), torch.from_numpy(EYE))[direction]
    assert counts.each.tolist() == golden(f"triplet.{direction}.C_q_per_query").tolist()
    assert counts.in_batch == golden(f"triplet.{direction}.C_B")
    assert counts.without_gradient == golden(f"triplet.{direction}.C_0")
    assert counts.per_query == golden(f"triplet.{direction}.C_q_mean_over_all_queries")
    assert counts.per_active_query == golden(f"triplet.{direction}.C_q_mean_over_nonzero_queries")
    counts = count(TripletHardest(0.2), torch.from_numpy(PAIRS), torch.from_numpy(EYE))[direction]
    assert counts.in_batch == golden(f"triplet_sh.{direction}.C_B")
    assert counts.without_gradient == golden(f"triplet_sh.{direction}.C_0")


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_ntxent_as_equation_11_counts(direction: str) -> None:
    tau, epsilon = float(GOLDEN["ntxent_tau"]), float(GOLDEN["ntxent_eps"])
    by_hand = ntxent_counts(DIRECTIONS[direction][0], EYE, tau, epsilon)
    by_autograd = count(InfoNCE(tau), torch.from_numpy(PAIRS), torch.from_numpy(EYE), epsilon)[direction]
    for each in (by_hand.each, by_autograd.each):
        assert each.tolist() == golden(f"ntxent.{direction}.C_qv_neg_per_query").tolist()
    assert by_autograd.per_query == golden(f"ntxent.{direction}.C_qv_neg_mean")
    for weight in (by_hand.negatives_weight.mean(), by_autograd.negatives_weight):
        assert weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_neg_mean"), abs=1e-12)
    for weight in (by_hand.positives_weight, by_autograd.positives_weight):
        assert weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_pos_mean"), abs=1e-12)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("form", ["eq13", "eq13_without_1_over_tau"])
def test_smoothap_as_equation_13_counts(direction: str, form: str) -> None:
    _, scores, positives = DIRECTIONS[direction]
    tau, epsilon = float(GOLDEN["smoothap_tau"]), float(GOLDEN["smoothap_eps"])
    each = smoothap_counts(scores, positives, tau, epsilon, over_temperature=form == "eq13")
    assert np.allclose(each, golden(f"smoothap.{direction}.{form}.C_q_per_query"), rtol=0, atol=1e-12)
    assert (each == 0).sum() == golden(f"smoothap.{direction}.{form}.C_0")
    assert each[each > 0].mean() == pytest.approx(
        golden(f"smoothap.{direction}.{form}.C_q_mean_over_nonzero"), abs=1e-12
    )


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("unit", ["score", "temperature"])
def test_compat_equations(direction: str, unit: str) -> None:
    form = "eq13" if unit == "score" else "eq13_without_1_over_tau"
    smoothap = OBJECTIVES.get("smoothap")()
    grouped = (torch.from_numpy(GROUPED), torch.from_numpy(OWN))
    counts = count(smoothap, *grouped, unit=unit, compat="equations")[direction]  # type: ignore[arg-type]
    assert counts.without_gradient == golden(f"smoothap.{direction}.{form}.C_0")
    assert counts.per_active_query == pytest.approx(
        golden(f"smoothap.{direction}.{form}.C_q_mean_over_nonzero")
    )
    pairs = (torch.from_numpy(PAIRS), torch.from_numpy(EYE))
    for objective in (Triplet(0.2), TripletHardest(0.2), InfoNCE(0.1)):
        weighed = count(objective, *pairs)[direction].values()
        read = count(objective, *pairs, compat="equations")[direction].values()
        # The equations of the triplet losses have no weights.
        assert read == pytest.approx({name: weighed[name] for name in read})
    doubled = count(Triplet(0.2), *grouped, compat="equations")["i2t"]
    assert doubled.in_batch > count(Triplet(0.2), *grouped)["i2t"].in_batch


def same(objective: str, options: dict[str, float], scores: np.ndarray, positives: np.ndarray) -> None:
    """Autograd's weights of both directions are the closed form's."""
    forms = {
        "triplet": lambda s, p: triplet_weights(s, p, options["margin"]),
        "triplet-hardest": lambda s, p: triplet_weights(s, p, options["margin"], hardest=True),
        "infonce": lambda s, p: ntxent_weights(s, p, options["temperature"]),
        "smoothap": lambda s, p: smoothap_weights(s, p, options["temperature"]),
    }
    found = gradient_weights(
        OBJECTIVES.get(objective)(**options), torch.from_numpy(scores), torch.from_numpy(positives)
    )
    for direction, s, p in (("i2t", scores, positives), ("t2i", scores.T, positives.T)):
        expected = forms[objective](s, p)
        # Weights of SmoothAP go up to 1/(4τ).
        assert np.allclose(found[direction].values.numpy(), expected, rtol=1e-9, atol=1e-9), direction


LOSSES = [
    ("triplet", {"margin": 0.2}),
    ("triplet-hardest", {"margin": 0.2}),
    ("infonce", {"temperature": 0.1}),
    ("smoothap", {"temperature": 0.01}),
]


@pytest.mark.parametrize(("objective", "options"), LOSSES)
def test_weights_on_the_golden_batches(objective: str, options: dict[str, float]) -> None:
    same(objective, options, PAIRS, EYE)
    same(objective, options, GROUPED, OWN)


@pytest.mark.parametrize(("objective", "options"), LOSSES)
@given(seed=st.integers(0, 2**32 - 1), n_images=st.integers(2, 5), more=st.integers(0, 6))
def test_weights_with_any_number_of_positives(
    objective: str, options: dict[str, float], seed: int, n_images: int, more: int
) -> None:
    random = np.random.default_rng(seed)
    owner = np.concatenate([np.arange(n_images), random.integers(n_images, size=more)])
    positives = np.arange(n_images)[:, None] == owner[None, :]
    same(objective, options, random.uniform(-1, 1, positives.shape), positives)


def test_smoothap_by_hand() -> None:
    # One positive, one negative with the same score: G = ½, rank 1½, weight ¼/(1½)²/τ = 1/(9τ).
    weights = smoothap_weights(np.array([[0.3, 0.3]]), np.array([[True, False]]), 0.1)
    assert weights[0] == pytest.approx([-1 / 0.9, 1 / 0.9])
    # Two positives of one score far above the negative: nothing to gain from either.
    weights = smoothap_weights(np.array([[0.9, 0.9, -0.9]]), np.array([[True, True, False]]), 0.01)
    assert np.abs(weights).max() < 1e-12
