from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.analysis import cocos_over, count, gradient_weights
from diptych.analysis.cocos import check_counting
from diptych.analysis.cocos_report import WeightHistogram
from diptych.core.errors import NumericalError, UsageError
from diptych.data.batches import Batch, BatchPlan
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest
from diptych.objectives.declaration import Within

POSITIVES = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.bool)
SCORES = torch.tensor([[0.5, 0.1, 0.4, -0.6], [0.2, -0.3, 0.9, 0.1], [0.0, 0.3, 0.35, 0.2]]).double()


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


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_weights_are_the_slopes_of_each_querys_loss(name):
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
    assert images.negatives_weight == pytest.approx((2 + 0 + 2) / 3)
    assert images.positives_weight == pytest.approx((2 + 0 + 2) / 3)
    # Texts: (.5 | .2, 0), (.1 | −.3, .3), (.9 | .4, .35), (.2 | −.6, .1).
    texts = found["t2i"]
    assert texts.each.tolist() == [0, 1, 0, 1]
    assert (texts.without_gradient, texts.per_active_query) == (2, 1.0)


def test_the_hardest_counts_once():
    found = count(TripletHardest(0.2), SCORES, POSITIVES)
    assert found["i2t"].each.tolist() == [1, 0, 1]
    tied = torch.tensor([[0.5, 0.5, 0.5], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]]).double()
    weights = gradient_weights(TripletHardest(0.2), tied, torch.eye(3, dtype=torch.bool))["i2t"]
    assert weights.values[0].tolist() == [-1.0, 1.0, 0.0]


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


def test_a_query_whose_positive_alone_is_above_epsilon_has_a_gradient():
    scores = torch.zeros(20, 20).double()
    scores.fill_diagonal_(0.5)
    counts = count(InfoNCE(0.1), scores, torch.eye(20, dtype=torch.bool), 0.05)["i2t"]
    assert counts.in_batch == 0  # each negative weighs 1/(e⁵ + 19) = .006
    assert counts.without_gradient == 0  # and the positive 19 times that
    assert counts.per_active_query == 0.0


def test_a_batch_without_any_gradient():
    counts = count(Triplet(0.2), torch.eye(3).double(), torch.eye(3, dtype=torch.bool))["t2i"]
    assert (counts.in_batch, counts.without_gradient, counts.per_query) == (0, 3, 0.0)
    assert counts.per_active_query is None
    assert "per_active_query" not in counts.values()


def test_pairs_make_queries_of_their_own_and_negatives_of_other_captions():
    objective = Triplet(0.2, compat="pairs")
    weights = gradient_weights(objective, SCORES, POSITIVES)["i2t"]
    assert weights.values.shape == (4, 4)
    # The pair (image 0, text 1), score .1: text 0 with .5 and text 2 with .4 violate.
    assert weights.values[1].tolist() == [1.0, -2.0, 1.0, 0.0]
    assert count(objective, SCORES, POSITIVES)["i2t"].each.tolist() == [1, 2, 0, 2]


def test_a_learned_temperature_is_used_and_left_alone():
    learned = InfoNCE(0.2, learn_temperature=True)
    assert check_counting(learned, 0.01, "temperature", "none") == pytest.approx(0.2)
    found, fixed = (count(o, SCORES, POSITIVES)["i2t"].values() for o in (learned, InfoNCE(0.2)))
    assert found == pytest.approx(fixed)
    assert learned.log_scale.grad is None


def test_it_counts_where_gradients_are_switched_off():
    with torch.no_grad():
        assert count(Triplet(0.2), SCORES, POSITIVES)["i2t"].in_batch == 3


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": -0.1}, "epsilon -0.1"),
        ({"epsilon": float("nan")}, "epsilon nan"),
        ({"unit": "metre"}, "unit 'metre'"),
        ({"compat": "old"}, "compat 'old'"),
        ({"positives": torch.zeros(3, 4, dtype=torch.bool)}, "image 0 of the batch has no positive"),
        ({"positives": torch.ones(3, 4, dtype=torch.bool)}, "without a negative"),
        ({"positives": POSITIVES.T}, "scores have shape"),
    ],
)
def test_what_cannot_be_counted(change, words):
    given = {"scores": SCORES, "positives": POSITIVES, **change}
    refused(UsageError, words, count, InfoNCE(), **given)


def test_scores_that_are_no_numbers():
    scores = SCORES.clone()
    scores[1, 2] = float("nan")
    refused(NumericalError, "image 1 and text 2", count, InfoNCE(), scores, POSITIVES)


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


def test_bins_by_hand():
    histogram = WeightHistogram()
    histogram.add(np.array([0.0, 1e-9, 0.01, 0.0105, 1.0, 3e4]), queries=2)
    histogram.add(np.array([0.0]), queries=1)
    assert (histogram.queries, histogram.zeros, histogram.candidates) == (3, 2, 7)
    assert histogram.counts[0] == 1
    assert histogram.counts[-1] == 1
    lower = {float(histogram.edges[place - 1]): int(histogram.counts[place]) for place in range(1, 61)}
    assert {edge: n for edge, n in lower.items() if n} == pytest.approx({0.01: 2, 1.0: 1})
    assert sum(histogram.sums) == pytest.approx(1e-9 + 0.0205 + 1.0 + 3e4)


CAPTION_IMAGE = np.repeat(np.arange(30), 3)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    images = random.normal(size=(30, 8))
    return unit(images), unit(images[CAPTION_IMAGE] + random.normal(size=(90, 8)))


@pytest.fixture
def batches():
    return BatchPlan(CAPTION_IMAGE, 30, 16, "distinct", seed=1).epoch(0)


def one(rows, batch):
    scores = torch.from_numpy(rows[0][batch.images] @ rows[1][batch.captions].T)
    return scores, torch.from_numpy(batch.caption_image[None, :] == np.arange(len(batch.images))[:, None])


@pytest.mark.parametrize("compat", ["none", "equations", "published"])
def test_mean_and_deviation_over_batches(rows, batches, compat):
    objective = Triplet(0.2)
    report = cocos_over(*rows, iter(batches), objective, compat=compat)
    for direction in ("i2t", "t2i"):
        each = [count(objective, *one(rows, batch), compat=compat)[direction] for batch in batches]
        spread = report.counts[direction]["in_batch"]
        assert spread.batches == len(batches) == 6
        assert spread.mean == pytest.approx(np.mean([counts.in_batch for counts in each]))
        assert spread.sd == pytest.approx(np.std([counts.in_batch for counts in each]))
        zeros = report.counts[direction]["without_gradient"]
        assert zeros.mean == pytest.approx(np.mean([counts.without_gradient for counts in each]))
    assert ("negatives_weight" in report.counts["i2t"]) == (compat == "none")


def test_nothing_to_count(rows, batches):
    refused(UsageError, "no batch", cocos_over, *rows, [], InfoNCE())
    refused(UsageError, "epsilon -1", cocos_over, *rows, batches, InfoNCE(), -1)
    refused(UsageError, "compat 'old'", cocos_over, *rows, batches, InfoNCE(), compat="old")


def test_memory_is_that_of_a_batch(tmp_path):
    stored = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype="float32", shape=(8_000, 256))
    stored[:] = unit(np.random.default_rng(0).normal(size=(8_000, 256)))

    def drawn():
        for start in range(0, 8_000, 40):
            places = np.arange(start, start + 40)
            yield Batch(places, places, np.arange(40))

    cocos_over(stored[:40], stored[:40], [next(drawn())], Triplet())
    tracemalloc.start()
    report = cocos_over(stored, stored, drawn(), Triplet())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.protocol.batches == 200
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
