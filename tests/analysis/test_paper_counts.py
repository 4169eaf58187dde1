"""Weights and counts of the paper's equations and of its code, against autograd, golden numbers and slow readings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

from diptych.analysis import count
from diptych.analysis.paper_counts import (
    ntxent_counts,
    paper_counts_of,
    paper_loss,
    published_smoothap,
    smoothap_counts,
)
from diptych.core.errors import UsageError
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "cocos.npz", allow_pickle=False)
PAIRS = GOLDEN["triplet_img"] @ GOLDEN["triplet_cap"].T
GROUPED = GOLDEN["smoothap_img"] @ GOLDEN["smoothap_cap"].T
EYE = np.eye(16, dtype=bool)
OWN = np.arange(8)[:, None] == np.arange(40)[None, :] // 5
PAIRS_T, EYE_T, GROUPED_T, OWN_T = (torch.from_numpy(one) for one in (PAIRS, EYE, GROUPED, OWN))
DIRECTIONS = {"i2t": (PAIRS, GROUPED, OWN), "t2i": (PAIRS.T, GROUPED.T, OWN.T)}


def golden(name):
    return GOLDEN[f"seed.{name}"]


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_autograd_counts_triplets_the_same(direction):
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
def test_ntxent_as_equation_11_counts(direction):
    tau, epsilon = float(GOLDEN["ntxent_tau"]), float(GOLDEN["ntxent_eps"])
    by_hand = ntxent_counts(DIRECTIONS[direction][0], EYE, tau, epsilon)
    by_autograd = count(InfoNCE(tau), torch.from_numpy(PAIRS), torch.from_numpy(EYE), epsilon)[direction]
    for each in (by_hand.each, by_autograd.each):
        assert each.tolist() == golden(f"ntxent.{direction}.C_qv_neg_per_query").tolist()
    assert by_autograd.per_query == golden(f"ntxent.{direction}.C_qv_neg_mean")
    for weight in (by_hand.negatives_weight, by_autograd.negatives_weight):
        assert weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_neg_mean"), abs=1e-12)
    for weight in (by_hand.positives_weight, by_autograd.positives_weight):
        assert weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_pos_mean"), abs=1e-12)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("form", ["eq13", "eq13_without_1_over_tau"])
def test_smoothap_as_equation_13_counts(direction, form):
    _, scores, positives = DIRECTIONS[direction]
    tau, epsilon = float(GOLDEN["smoothap_tau"]), float(GOLDEN["smoothap_eps"])
    each = smoothap_counts(scores, positives, tau, epsilon, over_temperature=form == "eq13").each
    assert np.allclose(each, golden(f"smoothap.{direction}.{form}.C_q_per_query"), rtol=0, atol=1e-12)
    assert (each == 0).sum() == golden(f"smoothap.{direction}.{form}.C_0")
    assert each[each > 0].mean() == pytest.approx(
        golden(f"smoothap.{direction}.{form}.C_q_mean_over_nonzero"), abs=1e-12
    )


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("unit", ["score", "temperature"])
def test_compat_equations(direction, unit):
    form = "eq13" if unit == "score" else "eq13_without_1_over_tau"
    smoothap = OBJECTIVES.get("smoothap")()
    grouped = (GROUPED_T, OWN_T)
    counts = count(smoothap, *grouped, unit=unit, compat="equations")[direction]
    assert counts.without_gradient == golden(f"smoothap.{direction}.{form}.C_0")
    assert counts.per_active_query == pytest.approx(
        golden(f"smoothap.{direction}.{form}.C_q_mean_over_nonzero")
    )
    for objective in (Triplet(0.2), TripletHardest(0.2), InfoNCE(0.1)):
        weighed = count(objective, PAIRS_T, EYE_T)[direction].values()
        read = count(objective, PAIRS_T, EYE_T, compat="equations")[direction].values()
        # The equations of the triplet losses have no weights.
        assert read == pytest.approx({name: weighed[name] for name in read})
    doubled = count(Triplet(0.2), *grouped, compat="equations")["i2t"]
    assert doubled.in_batch > count(Triplet(0.2), *grouped)["i2t"].in_batch


def printed_counts(objective, scores, positives):
    """Counts under the names that the published code prints, nan where it divides 0 by 0."""
    kind = paper_loss(objective)
    printed: dict[str, float] = {}
    for direction, counts in paper_counts_of(objective, scores, positives, 0.01, compat="published").items():
        mean = np.nan if counts.per_active_query is None else counts.per_active_query
        if kind == "ntxent":
            positives_weight = counts.positives_weight or 0.0
            negatives_weight = counts.negatives_weight or 0.0
            printed[f"1-s_{direction}.diag.mean"] = positives_weight
            # What a soft-max leaves: all the negatives' weight is what the positive lacks.
            printed[f"{direction}_low_grad"] = positives_weight - negatives_weight
            printed[f"{direction}_high_grad"] = negatives_weight
            printed[f"{direction}_n_high_grad"] = counts.per_query
            continue
        if kind == "smoothap":
            printed[f"sum_{direction}"] = mean
        else:
            printed[f"{direction}_grads_mean"] = mean
            # One of the two names is in the singular.
            printed[f"{direction}_grad{'s' if direction == 'i2t' else ''}_sum"] = float(counts.in_batch)
        printed[f"zeros_{direction}"] = float(counts.without_gradient)
    return printed


@pytest.mark.parametrize(
    ("name", "objective", "options", "scores", "positives"),
    [
        ("triplet", "triplet", {"margin": 0.2}, PAIRS_T, EYE_T),
        ("triplet_sh", "triplet-hardest", {"margin": 0.2}, PAIRS_T, EYE_T),
        ("ntxent", "infonce", {"temperature": 0.1}, PAIRS_T, EYE_T),
        ("ntxent", "nt-xent", {}, PAIRS_T, EYE_T),
        ("smoothap", "smoothap", {"temperature": 0.01}, GROUPED_T, OWN_T),
    ],
)
def test_what_the_published_code_printed(name, objective, options, scores, positives):
    printed = printed_counts(OBJECTIVES.get(objective)(**options), scores, positives)
    prefix = f"official.{name}."
    expected = {
        key.removeprefix(prefix): float(GOLDEN[key]) for key in GOLDEN.files if key.startswith(prefix)
    }
    assert len(expected) > 3
    assert set(printed) == set(expected)
    for key, value in expected.items():
        assert printed[key] == pytest.approx(value, abs=1e-12), key


def test_the_axis_of_t2i_is_the_images():
    # Caption 0 is violated by images 1 and 2, no other caption by any: 2 violations of one query.
    scores = torch.tensor([[0.5, -1.0, -1.0], [0.5, 0.9, -1.0], [0.5, -1.0, 0.9]]).double()
    eye = torch.eye(3, dtype=torch.bool)
    right = count(Triplet(0.2), scores, eye)["t2i"]
    published = count(Triplet(0.2), scores, eye, compat="published")["t2i"]
    assert (right.each.tolist(), right.without_gradient, right.per_active_query) == ([2, 0, 0], 2, 2.0)
    assert (published.each.tolist(), published.without_gradient) == ([0, 1, 1], 1)
    assert published.per_active_query == 1.0
    assert right.in_batch == published.in_batch == 2
    hardest = count(TripletHardest(0.2), scores, eye, compat="published")["t2i"]
    assert hardest.each.tolist() == [1, 0, 0]


def test_no_violation_at_all_is_no_number():
    printed = printed_counts(Triplet(0.2), torch.eye(3).double(), torch.eye(3, dtype=torch.bool))
    assert np.isnan(printed["i2t_grads_mean"])
    assert printed["zeros_t2i"] == 3.0
    printed = printed_counts(
        OBJECTIVES.get("smoothap")(), torch.eye(3).double(), torch.eye(3, dtype=torch.bool)
    )
    assert printed["sum_i2t"] == 0.0


def slow_smoothap(scores, tau, epsilon, k):
    """Per direction, how many entries of query i's rows k·i … k·i + k − 1 are above ε."""
    found = []
    for rows in (scores, scores.T):
        each = []
        for i, row in enumerate(rows):
            n = 0
            for a in range(k * i, min(k * i + k, len(row))):
                above = [
                    0.0 if b == a else 1 / (1 + np.exp(-(row[b] - row[a]) / tau)) for b in range(len(row))
                ]
                n += sum(g * (1 - g) / (1 + sum(above)) ** 2 > epsilon for g in above)
            each.append(n)
        found.append(each)
    return found[0], found[1]


@pytest.mark.parametrize("k", [2, 5])
def test_smoothap_looks_at_the_wrong_candidates_of_captions(k):
    random = np.random.default_rng(3)
    scores = random.uniform(-0.02, 0.02, (12, 12 * k))
    i2t, t2i = slow_smoothap(scores, 0.01, 0.001, k)
    found = published_smoothap(scores, 0.01, 0.001, k)
    assert (found["i2t"].each * k).tolist() == pytest.approx(i2t)
    assert found["t2i"].each.tolist() == t2i
    assert sum(t2i) > 0
    assert not any(t2i[-(-12 // k) :])  # captions further on look at images that do not exist
    active = sum(n > 0 for n in i2t)
    assert found["i2t"].per_active_query == pytest.approx(sum(i2t) / k / active)


def test_pairs_are_made_of_images_with_several_captions():
    positives = torch.tensor([[1, 1, 0], [0, 0, 1]], dtype=torch.bool)
    scores = torch.tensor([[0.9, 0.5, 0.0], [0.0, 0.0, 0.9]]).double()
    counts = count(InfoNCE(0.1), scores, positives, compat="published")["i2t"]
    assert counts.queries == 3
    # The second caption's pair has the first caption as a negative, which is better than it.
    assert counts.each.tolist() == [1, 1, 0]
    smoothap = OBJECTIVES.get("smoothap")()
    refused(UsageError, "1–2 captions per image", count, smoothap, scores, positives, compat="published")
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    straight, mixed = (
        count(smoothap, GROUPED_T[:, places], OWN_T[:, places], compat="published")["i2t"]
        for places in (torch.arange(40), order)
    )
    assert straight.values() == mixed.values()


def test_other_objectives_are_not_in_the_paper():
    class Mine(InfoNCE):
        pass

    with pytest.raises(UsageError, match="'Mine' is not among those") as caught:
        count(Mine(), PAIRS, EYE, compat="published")
    assert "smoothap" in caught.value.message
    assert "any objective" in caught.value.fix
