"""The published counting, on what the published code printed and against a slow reading of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.analysis import count
from diptych.analysis.published_counts import published_counts, published_smoothap
from diptych.core.errors import UsageError
from diptych.objectives import OBJECTIVES, InfoNCE, Triplet, TripletHardest

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "cocos.npz", allow_pickle=False)
PAIRS = torch.from_numpy(GOLDEN["triplet_img"] @ GOLDEN["triplet_cap"].T)
GROUPED = torch.from_numpy(GOLDEN["smoothap_img"] @ GOLDEN["smoothap_cap"].T)
EYE = torch.eye(16, dtype=torch.bool)
OWN = torch.arange(8)[:, None] == torch.arange(40)[None, :] // 5


@pytest.mark.parametrize(
    ("name", "objective", "options", "scores", "positives"),
    [
        ("triplet", "triplet", {"margin": 0.2}, PAIRS, EYE),
        ("triplet_sh", "triplet-hardest", {"margin": 0.2}, PAIRS, EYE),
        ("ntxent", "infonce", {"temperature": 0.1}, PAIRS, EYE),
        ("ntxent", "nt-xent", {}, PAIRS, EYE),
        ("smoothap", "smoothap", {"temperature": 0.01}, GROUPED, OWN),
    ],
)
def test_what_the_published_code_printed(
    name: str, objective: str, options: dict[str, float], scores: torch.Tensor, positives: torch.Tensor
) -> None:
    printed = published_counts(OBJECTIVES.get(objective)(**options), scores, positives)
    prefix = f"official.{name}."
    expected = {
        key.removeprefix(prefix): float(GOLDEN[key]) for key in GOLDEN.files if key.startswith(prefix)
    }
    assert len(expected) > 3
    assert set(printed) == set(expected)
    for key, value in expected.items():
        assert printed[key] == pytest.approx(value, abs=1e-12), key


def test_the_axis_of_t2i_is_the_images() -> None:
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


def test_no_violation_at_all_is_no_number() -> None:
    printed = published_counts(Triplet(0.2), torch.eye(3).double(), torch.eye(3, dtype=torch.bool))
    assert np.isnan(printed["i2t_grads_mean"])
    assert printed["zeros_t2i"] == 3.0
    printed = published_counts(
        OBJECTIVES.get("smoothap")(), torch.eye(3).double(), torch.eye(3, dtype=torch.bool)
    )
    assert printed["sum_i2t"] == 0.0


def slow_smoothap(scores: np.ndarray, tau: float, epsilon: float, k: int) -> tuple[list[int], list[int]]:
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
def test_smoothap_looks_at_the_wrong_candidates_of_captions(k: int) -> None:
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


def test_pairs_are_made_of_images_with_several_captions() -> None:
    positives = torch.tensor([[1, 1, 0], [0, 0, 1]], dtype=torch.bool)
    scores = torch.tensor([[0.9, 0.5, 0.0], [0.0, 0.0, 0.9]]).double()
    counts = count(InfoNCE(0.1), scores, positives, compat="published")["i2t"]
    assert counts.queries == 3
    # The second caption's pair has the first caption as a negative, which is better than it.
    assert counts.each.tolist() == [1, 1, 0]
    smoothap = OBJECTIVES.get("smoothap")()
    with pytest.raises(UsageError, match="1–2 captions per image"):
        count(smoothap, scores, positives, compat="published")
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    straight, mixed = (
        count(smoothap, GROUPED[:, places], OWN[:, places], compat="published")["i2t"]
        for places in (torch.arange(40), order)
    )
    assert straight.values() == mixed.values()


def test_other_objectives_are_not_in_the_paper() -> None:
    class Mine(InfoNCE):
        pass

    with pytest.raises(UsageError, match="'Mine' is not among those") as caught:
        count(Mine(), PAIRS, EYE, compat="published")
    assert "smoothap" in caught.value.message
    assert "any objective" in caught.value.fix
