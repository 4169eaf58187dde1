"""Weights and counts of the paper's equations and of its code, against autograd, golden numbers and slow readings."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.analysis.cocos import check_counting, cocos_over, counts_of, gradient_weights
from diptych.analysis.cocos_report import WeightHistogram
from diptych.analysis.paper_counts import (
    ntxent_counts,
    paper_counts_of,
    paper_loss,
    published_smoothap,
    smoothap_counts,
)
from diptych.core.errors import NumericalError, UsageError
from diptych.data.batches import Batch, BatchPlan
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest
from diptych.objectives.declaration import Within

POSITIVES = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.bool)
SCORES = torch.tensor([[0.5, 0.1, 0.4, -0.6], [0.2, -0.3, 0.9, 0.1], [0.0, 0.3, 0.35, 0.2]]).double()


def count(objective, scores, positives, epsilon=0.01, *, unit="temperature", within=None, compat="none"):
    """COCOS of one batch, per direction."""
    factor = check_counting(objective, epsilon, unit, compat)
    if compat != "none":
        return paper_counts_of(objective, scores, positives, epsilon, unit, compat)
    weights = gradient_weights(objective, scores, positives, within)
    return {direction: counts_of(one.scaled(factor), epsilon) for direction, one in weights.items()}


def unit_rows(n, seed):
    return torch.nn.functional.normalize(
        torch.randn(n, 6, generator=torch.Generator().manual_seed(seed)).double(), dim=1
    )


def batch():
    images, texts = unit_rows(4, 1), unit_rows(6, 2)
    positives = torch.zeros(4, 6, dtype=torch.bool)
    for text, image in enumerate((0, 0, 1, 2, 3, 3)):
        positives[image, text] = True
    return images @ texts.T, positives, Within(images @ images.T, texts @ texts.T)


def slopes(objective, scores, positives, own):
    """∂L_i/∂s_ij by central differences, one score at a time."""
    step = 1e-6
    found = torch.zeros_like(scores)
    with torch.no_grad():
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                ends = []
                for sign in (1, -1):
                    moved = scores.clone()
                    moved[i, j] += sign * step
                    ends.append(objective.per_query(moved, positives, own)[i])
                found[i, j] = (ends[0] - ends[1]) / (2 * step)
    return found


def test_weights_are_the_slopes_of_each_querys_loss():
    for name in OBJECTIVES.names():
        objective = OBJECTIVES.get(name)().double()
        scores, positives, within = batch()
        found = gradient_weights(objective, scores, positives, within)
        assert list(found) == ["i2t", "t2i"]
        for direction, s, p, own in (
            ("i2t", scores, positives, within.images),
            ("t2i", scores.T, positives.T, within.texts),
        ):
            weights = found[direction]
            given_own = own if objective.needs_within else None
            assert torch.equal(weights.positives, p)
            assert torch.allclose(weights.values, slopes(objective, s, p, given_own), atol=1e-6)
            assert (weights.within is not None) == objective.needs_within
            if weights.within is not None:
                assert bool((weights.parts()["within"] > 0).any())


def test_triplets_counted_by_hand():
    # Image 0: positives .5 and .1, negatives .4 and −.6; margin .2: .4 violates both. Image 1: none.
    # Image 2: positive .2, negatives 0 (at the margin: does not count), .3, .35.
    found = count(Triplet(0.2), SCORES, POSITIVES)
    images = found["i2t"]
    assert images.each.tolist() == [1, 0, 2]
    assert (images.per_query, images.in_batch, images.without_gradient) == (1.0, 3, 1)
    assert images.per_active_query == 1.5
    assert count(Triplet(0.2), SCORES, POSITIVES, 1.0)["i2t"].in_batch == 1  # of more than 1, not of 1
    assert images.negatives_weight == pytest.approx((2 + 0 + 2) / 3)
    assert images.positives_weight == pytest.approx((2 + 0 + 2) / 3)
    # Texts: (.5 | .2, 0), (.1 | −.3, .3), (.9 | .4, .35), (.2 | −.6, .1).
    texts = found["t2i"]
    assert texts.each.tolist() == [0, 1, 0, 1]
    assert (texts.without_gradient, texts.per_active_query) == (2, 1.0)
    # Under compat=pairs each pair is a query. That of image 0 and text 1, score .1: text 0 with .5 and text 2 violate.
    pairs = Triplet(0.2, compat="pairs")
    weights = gradient_weights(pairs, SCORES, POSITIVES)["i2t"]
    assert weights.values.shape == (4, 4)
    assert weights.values[1].tolist() == [1.0, -2.0, 1.0, 0.0]
    assert count(pairs, SCORES, POSITIVES)["i2t"].each.tolist() == [1, 2, 0, 2]


def test_softmax_weights_by_hand():
    # exp(s/τ) of 1, 2, 5 for the only image that has negatives of any weight.
    tau = 0.5
    ours = torch.tensor([5.0, 2.0, 1.0]).double().log()
    others = torch.tensor([[-40.0, 40.0, -40.0], [-40.0, -40.0, 40.0]]).double()
    scores = tau * torch.vstack([ours, others])
    counts = count(InfoNCE(tau), scores, torch.eye(3, dtype=torch.bool), 0.2)["i2t"]
    assert counts.each.tolist() == [1, 0, 0]  # 2/8 counts, 1/8 does not
    assert counts.negatives_weight == pytest.approx(0.25 / 3)
    assert counts.positives_weight == pytest.approx((3 / 8) / 3)
    assert counts.without_gradient == 2
    # Without the factor τ all weights are twice as large: 1/8 becomes 1/4.
    assert count(InfoNCE(tau), scores, torch.eye(3, dtype=torch.bool), 0.2, unit="score")["i2t"].each[0] == 2


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0), st.floats(0.0, 0.3))
def test_what_pushes_equals_what_pulls(seed, temperature, epsilon):
    """A soft-max does not change when all scores of a row move together."""
    scores = torch.from_numpy(np.random.default_rng(seed).uniform(-1, 1, POSITIVES.shape))
    objective = InfoNCE(temperature)
    for weights in gradient_weights(objective, scores, POSITIVES).values():
        assert torch.allclose(weights.values.sum(dim=1), torch.zeros(len(weights.values)).double(), atol=1e-9)
    counts = count(objective, scores, POSITIVES, epsilon)["i2t"]
    assert counts.negatives_weight <= counts.positives_weight + 1e-9
    assert counts.positives_weight <= 1 + 1e-9


def test_what_cannot_be_counted():
    class Mine(InfoNCE):
        pass

    broken = SCORES.clone()
    broken[1, 2] = float("nan")
    for change, words in (
        ({"epsilon": -0.1}, "epsilon -0.1"),
        ({"epsilon": float("nan")}, "epsilon nan"),
        ({"unit": "metre"}, "unit 'metre'"),
        ({"compat": "old"}, "compat 'old'"),
        ({"positives": torch.zeros(3, 4, dtype=torch.bool)}, "image 0 of the batch has no positive"),
        ({"positives": torch.ones(3, 4, dtype=torch.bool)}, "without a negative"),
        ({"positives": POSITIVES.T}, "scores have shape"),
        ({"objective": Mine(), "compat": "published"}, "'Mine' is not among those.*smoothap.*any objective"),
    ):
        given = {"objective": InfoNCE(), "scores": SCORES, "positives": POSITIVES, **change}
        refused(UsageError, words, count, **given)
    refused(NumericalError, "image 1 and text 2", count, InfoNCE(), broken, POSITIVES)


class InModality(InfoNCE):
    """A soft-max over the negatives of both modalities, for queries with one positive."""

    needs_within = True

    def per_query(self, scores, positives, within=None):
        assert within is not None
        alone = within.masked_fill(torch.eye(len(within), dtype=torch.bool), -torch.inf)
        return torch.cat([scores, alone], dim=1).logsumexp(dim=1) - scores[positives]


def test_in_modality_negatives_count_too():
    eye = torch.eye(3, dtype=torch.bool)
    within = Within(torch.ones(3, 3).double(), torch.zeros(3, 3).double())
    refused(UsageError, "in-modality", count, InModality(), SCORES[:, 1:], eye)
    counts = count(InModality(), torch.zeros(3, 3).double(), eye, 0.01, within=within, unit="score")
    # i2t: weights 1/(3 + 2e) of each of 2 captions, e times that of each of 2 images.
    share = 1 / (3 + 2 * np.e)
    assert counts["i2t"].each.tolist() == [4, 4, 4]
    assert counts["i2t"].within_per_query == 2.0
    assert counts["i2t"].negatives_weight == pytest.approx(2 * share * (1 + np.e))
    assert counts["i2t"].positives_weight == pytest.approx(1 - share)
    assert counts["t2i"].negatives_weight == pytest.approx(4 / 5)


def test_over_batches(tmp_path):
    """Mean and deviation over batches, in all readings; weights in bins; memory is that of a batch."""
    random, home = np.random.default_rng(0), np.repeat(np.arange(30), 3)
    images = random.normal(size=(30, 8)).astype(np.float32)
    texts = images[home] + random.normal(size=(90, 8)).astype(np.float32)
    images, texts = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, texts))
    batches, objective = BatchPlan(home, 30, 16, "distinct", seed=1).epoch(0), Triplet(0.2)
    for compat in ("none", "equations", "published"):
        report = cocos_over(images, texts, iter(batches), objective, compat=compat)
        assert ("negatives_weight" in report.counts["i2t"]) == (compat == "none")
        each = []
        for batch in batches:
            scores = torch.from_numpy(images[batch.images] @ texts[batch.captions].T)
            own = torch.from_numpy(batch.caption_image[None, :] == np.arange(len(batch.images))[:, None])
            each.append(count(objective, scores, own, compat=compat))
        for direction in ("i2t", "t2i"):
            spread, counted = report.counts[direction]["in_batch"], [one[direction].in_batch for one in each]
            assert spread.batches == len(batches) == 6
            assert (spread.mean, spread.sd) == pytest.approx((np.mean(counted), np.std(counted)))
            zeros = [one[direction].without_gradient for one in each]
            assert report.counts[direction]["without_gradient"].mean == pytest.approx(np.mean(zeros))
    histogram = WeightHistogram()
    histogram.add(np.array([0.0, 1e-9, 0.01, 0.0105, 1.0, 3e4]), queries=2)
    histogram.add(np.array([0.0]), queries=1)
    assert (histogram.queries, histogram.zeros, histogram.candidates) == (3, 2, 7)
    assert histogram.counts[0] == histogram.counts[-1] == 1
    lower = {float(histogram.edges[place - 1]): int(histogram.counts[place]) for place in range(1, 61)}
    assert {edge: n for edge, n in lower.items() if n} == pytest.approx({0.01: 2, 1.0: 1})
    assert sum(histogram.sums) == pytest.approx(1e-9 + 0.0205 + 1.0 + 3e4)
    stored = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype="float32", shape=(8_000, 128))
    stored[:] = random.normal(size=(8_000, 128)).astype(np.float32) / 12
    drawn = [Batch(places, places, np.arange(80)) for places in np.arange(8_000).reshape(100, 80)]
    cocos_over(stored[:80], stored[:80], drawn[:1], objective)
    tracemalloc.start()
    report = cocos_over(stored, stored, iter(drawn), objective)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.protocol.batches == 100
    assert peak < stored.nbytes / 10


def test_the_effective_number_is_that_of_as_many_equal_weights() -> None:
    """All triplets of a query that are violated weigh the same; of two weights p and 1 − p it is exp of the entropy."""
    own, scores = torch.eye(4, dtype=torch.bool), torch.zeros(4, 4).double()
    assert count(Triplet(), scores, own)["i2t"].effective == pytest.approx(3.0)
    assert count(TripletHardest(), scores, own)["i2t"].effective == pytest.approx(1.0)
    assert count(Triplet(), 2 * torch.eye(4).double(), own)["t2i"].effective is None
    scores = torch.tensor([[0.9, 0.1, 0.2], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]]).double()
    each = []
    for row in range(3):
        soft = np.exp(np.delete(scores[row].numpy(), row) / 0.5)
        share = soft / soft.sum()
        each.append(np.exp(-(share * np.log(share)).sum()))
    found = count(InfoNCE(temperature=0.5, direction="i2t"), scores, torch.eye(3, dtype=torch.bool))
    assert found["i2t"].effective == pytest.approx(np.mean(each))


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
def test_golden_counts(direction):
    """Triplets by autograd; NT-Xent as equation 11 and SmoothAP as equation 13 count; both under compat=equations."""
    scores, grouped, own = DIRECTIONS[direction]
    counts = count(Triplet(0.2), PAIRS_T, EYE_T)[direction]
    assert counts.each.tolist() == golden(f"triplet.{direction}.C_q_per_query").tolist()
    assert counts.in_batch == golden(f"triplet.{direction}.C_B")
    assert counts.without_gradient == golden(f"triplet.{direction}.C_0")
    assert counts.per_query == golden(f"triplet.{direction}.C_q_mean_over_all_queries")
    assert counts.per_active_query == golden(f"triplet.{direction}.C_q_mean_over_nonzero_queries")
    counts = count(TripletHardest(0.2), PAIRS_T, EYE_T)[direction]
    assert counts.in_batch == golden(f"triplet_sh.{direction}.C_B")
    assert counts.without_gradient == golden(f"triplet_sh.{direction}.C_0")
    tau, epsilon = float(GOLDEN["ntxent_tau"]), float(GOLDEN["ntxent_eps"])
    by_autograd = count(InfoNCE(tau), PAIRS_T, EYE_T, epsilon)[direction]
    assert by_autograd.per_query == golden(f"ntxent.{direction}.C_qv_neg_mean")
    for found in (ntxent_counts(scores, EYE, tau, epsilon), by_autograd):
        assert found.each.tolist() == golden(f"ntxent.{direction}.C_qv_neg_per_query").tolist()
        assert found.negatives_weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_neg_mean"), abs=1e-12)
        assert found.positives_weight == pytest.approx(golden(f"ntxent.{direction}.W_qv_pos_mean"), abs=1e-12)
    tau, epsilon, smoothap = (
        float(GOLDEN["smoothap_tau"]),
        float(GOLDEN["smoothap_eps"]),
        OBJECTIVES.get("smoothap")(),
    )
    for form, unit in (("eq13", "score"), ("eq13_without_1_over_tau", "temperature")):
        prefix = f"smoothap.{direction}.{form}"
        mean = pytest.approx(golden(f"{prefix}.C_q_mean_over_nonzero"), abs=1e-12)
        each = smoothap_counts(grouped, own, tau, epsilon, over_temperature=form == "eq13").each
        assert np.allclose(each, golden(f"{prefix}.C_q_per_query"), rtol=0, atol=1e-12)
        assert (each == 0).sum() == golden(f"{prefix}.C_0")
        assert each[each > 0].mean() == mean
        counts = count(smoothap, GROUPED_T, OWN_T, unit=unit, compat="equations")[direction]
        assert counts.without_gradient == golden(f"{prefix}.C_0")
        assert counts.per_active_query == pytest.approx(golden(f"{prefix}.C_q_mean_over_nonzero"))
    for objective in (Triplet(0.2), TripletHardest(0.2), InfoNCE(0.1)):
        weighed = count(objective, PAIRS_T, EYE_T)[direction].values()
        read = count(objective, PAIRS_T, EYE_T, compat="equations")[direction].values()
        assert read == pytest.approx({name: weighed[name] for name in read})  # triplets have no weights there
    doubled = count(Triplet(0.2), GROUPED_T, OWN_T, compat="equations")["i2t"]
    assert doubled.in_batch > count(Triplet(0.2), GROUPED_T, OWN_T)["i2t"].in_batch


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


def test_what_the_published_code_printed():
    for name, objective, options, scores, positives in [
        ("triplet", "triplet", {"margin": 0.2}, PAIRS_T, EYE_T),
        ("triplet_sh", "triplet-hardest", {"margin": 0.2}, PAIRS_T, EYE_T),
        ("ntxent", "infonce", {"temperature": 0.1}, PAIRS_T, EYE_T),
        ("ntxent", "nt-xent", {}, PAIRS_T, EYE_T),
        ("smoothap", "smoothap", {"temperature": 0.01}, GROUPED_T, OWN_T),
    ]:
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


def test_smoothap_looks_at_the_wrong_candidates_of_captions():
    for k in [2, 5]:
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
