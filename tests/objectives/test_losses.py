"""Every loss against its paper: query by query in plain floats, the published code's numbers, and what is its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from score_batches import random_batch

from diptych.core.errors import NumericalError, UsageError
from diptych.objectives import (
    MVN,
    OBJECTIVES,
    ConVSE,
    InfoNCE,
    NTXent,
    Objective,
    SigLIP,
    SmoothAP,
    Triplet,
    Within,
    convse,
    convse_plus_plus,
    cosine_distance,
    ifm,
    infonce,
    infonce_ifm,
    mvn,
    pairs,
    siglip,
    smoothap,
    triplet,
)
from diptych.objectives.ifm import InfoNCEIFM
from diptych.objectives.triplet import TripletHardest, TripletTop

GOLDEN = Path(__file__).parents[1] / "golden"
EYE = torch.eye(2, dtype=torch.bool)
TWO_AND_ONE = torch.tensor([[True, True, False], [False, False, True]])

Slow = Callable[..., float]
"""From a query's scores of its positives, of its negatives, and of negatives of its own side, to its loss."""


def softmax(own: list[float], others: list[float], temperature: float, epsilon: float = 0.0) -> float:
    total = sum(math.exp((score + epsilon) / temperature) for score in others)
    raised = [math.exp((score - epsilon) / temperature) for score in own]
    return float(np.mean([-math.log(one / (one + total)) for one in raised]))


def mixed(own: list[float], others: list[float], temperature: float, epsilon: float, weight: float) -> float:
    plain, harder = softmax(own, others, temperature), softmax(own, others, temperature, epsilon)
    return (plain + weight * harder) / (1 + weight)


def sigmoids(own: list[float], others: list[float], temperature: float, bias: float) -> float:
    signed = [(score, 1) for score in own] + [(score, -1) for score in others]
    return sum(math.log1p(math.exp(-sign * (score / temperature + bias))) for score, sign in signed)


def hinges(own: list[float], others: list[float], margin: float, k: int | None = None) -> float:
    each = ([max(0.0, margin - score + other) for other in others] for score in own)
    return sum(sum(sorted(one, reverse=True)[:k]) for one in each)


def over_hardest(own: list[float], others: list[float], temperature: float, margin: float) -> float:
    over = [math.exp(s / temperature) / math.exp((max(others) + margin) / temperature) for s in own if others]
    return sum(max(0.0, -math.log(one)) for one in over)


def smooth_ap(own: list[float], others: list[float], temperature: float) -> float:
    def above(score: float, scores: list[float]) -> float:
        return sum(1 / (1 + math.exp((score - other) / temperature)) for other in scores)

    ranks = [(1 + above(one, own[:at] + own[at + 1 :]), above(one, others)) for at, one in enumerate(own)]
    return 1 - float(np.mean([among / (among + behind) for among, behind in ranks]))


TAU = st.sampled_from([0.05, 0.5, 2.0])
MARGIN = st.sampled_from([0.0, 0.2, 1.0])
EPSILON = st.sampled_from([0.0, 0.05, 1.0])
SLOW: dict[str, tuple[Slow, Any, dict[str, st.SearchStrategy[Any]]]] = {
    "infonce": (softmax, infonce, {"temperature": TAU}),
    "nt-xent": (softmax, None, {"temperature": TAU}),
    "convse": (softmax, convse, {"temperature": TAU}),
    "mvn": (softmax, mvn, {"temperature": TAU}),
    "ifm": (softmax, ifm, {"temperature": TAU, "epsilon": EPSILON}),
    "infonce-ifm": (
        mixed,
        infonce_ifm,
        {"temperature": TAU, "epsilon": EPSILON, "weight": st.sampled_from([0.0, 0.5, 3.0])},
    ),
    "siglip": (sigmoids, siglip, {"temperature": TAU, "bias": st.sampled_from([-10.0, 0.0])}),
    "smoothap": (smooth_ap, smoothap, {"temperature": TAU}),
    "triplet": (hinges, triplet, {"margin": MARGIN}),
    "triplet-hardest": (lambda *given, **more: hinges(*given, **more, k=1), None, {"margin": MARGIN}),
    "triplet-top": (hinges, None, {"margin": MARGIN, "k": st.integers(1, 7)}),
    "convse++": (over_hardest, convse_plus_plus, {"temperature": TAU, "margin": MARGIN}),
    "cosine-distance": (lambda own, others: float(np.mean([1 - s for s in own])), cosine_distance, {}),
}
OF_PAIRS = {"triplet", "triplet-hardest", "triplet-top", "convse++"}
"""Losses whose mean is over (query, positive) pairs and not over queries."""


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_agrees_with_a_slow_form(seed: int, data: st.DataObject) -> None:
    assert SLOW.keys() == set(OBJECTIVES.names())
    for name in SLOW:
        check_against_slow_form(name, seed, data)


def check_against_slow_form(name: str, seed: int, data: st.DataObject) -> None:
    slow, function, choices = SLOW[name]
    options = {key: data.draw(values) for key, values in choices.items()}
    batch, expected = random_batch(seed), []
    related = (batch.positives.int() @ batch.positives.T.int()) > 0
    for scores, positives, inside, alike in zip(
        batch.scores, batch.positives, batch.within.images, related, strict=True
    ):
        others = scores[~positives].tolist() + (inside[~alike].tolist() if name == "mvn" else [])
        expected.append(slow(scores[positives].tolist(), others, **options))
    within = {"within": batch.within} if name == "mvn" else {}

    def of(reduction: str) -> Any:
        objective = OBJECTIVES.get(name)(direction="i2t", reduction=reduction, **options).double()
        return objective(batch.scores, batch.positives, **within).item()

    objective = OBJECTIVES.get(name)(**options).double()
    per_query = objective.per_query(batch.scores, batch.positives, *([batch.within.images] if within else []))
    bound = 1e-6 if name == "siglip" else 1e-12  # its scale is a float32 parameter
    assert per_query.tolist() == pytest.approx(expected, rel=bound, abs=1e-12)
    count = int(batch.positives.sum()) if name in OF_PAIRS else len(expected)
    assert of("sum") == pytest.approx(sum(expected), rel=bound, abs=1e-12)
    assert of("mean") == pytest.approx(sum(expected) / count, rel=bound, abs=1e-12)
    if function is not None:
        each = function(batch.scores, batch.positives, **within, **options, direction="i2t", reduction="none")
        assert len(each) == count
        assert each.sum().item() == pytest.approx(sum(expected), rel=bound, abs=1e-12)


PUBLISHED: dict[str, Callable[[Any], Objective]] = {
    "ntxent_ecir": lambda golden: NTXent(float(golden["tau"])),
    "convse": lambda golden: ConVSE(float(golden["tau"])),
    "smoothap_ecir": lambda golden: SmoothAP(float(golden["tau"])),
    "vse_sum_hinge": lambda golden: Triplet(float(golden["margin"])),
}


def test_agrees_with_the_published_code() -> None:
    for name in PUBLISHED:
        golden = np.load(GOLDEN / f"{name}.npz", allow_pickle=False)
        images, captions = (torch.tensor(golden[side], requires_grad=True) for side in ("img", "cap"))
        owner = torch.arange(len(captions)) // int(golden.get("n_captions_per_image", 1))
        positives = torch.arange(len(images))[:, None] == owner
        objective: Any = PUBLISHED[name](golden)
        loss = objective(images @ captions.T, positives)
        loss.backward()
        assert loss.item() == pytest.approx(float(golden["loss"]), abs=1e-9)
        np.testing.assert_allclose(images.grad, golden["grad_img"], atol=1e-9)
        np.testing.assert_allclose(captions.grad, golden["grad_cap"], atol=1e-9)
        for objective.direction in ("i2t", "t2i"):
            one_way = objective(images @ captions.T, positives).item()
            key = f"loss_{objective.direction}"
            assert key not in golden or one_way == pytest.approx(float(golden[key]), abs=1e-9)
        if name == "convse":
            each = convse((images @ captions.T).detach(), positives, float(golden["tau"]), reduction="none")
            terms = np.concatenate([golden["loss_I_term_per_pair"], golden["loss_C_term_per_pair"]])
            np.testing.assert_allclose(each, terms, atol=1e-9)
        if name == "smoothap_ecir":
            printed = SmoothAP(float(golden["tau"]), compat="positive-sign")(images @ captions.T, positives)
            assert printed.item() == pytest.approx(
                float(golden["loss_if_sign_of_Dij_were_positive"]), abs=1e-9
            )


def test_ifm_agrees_with_the_published_code() -> None:
    for epsilon in ("0.0", "0.1"):
        golden = np.load(GOLDEN / "infonce_ifm_svl.npz", allow_pickle=False)
        images, captions = (torch.tensor(golden[side], requires_grad=True) for side in ("img", "cap"))
        objective = InfoNCEIFM(0.07, learn_temperature=True, epsilon=float(epsilon))
        objective.log_scale = torch.nn.Parameter(torch.tensor(-math.log(0.07), dtype=torch.float64))
        loss = objective(images @ captions.T, torch.eye(len(images), dtype=torch.bool))
        loss.backward()
        found = {"loss": loss.detach(), "grad_img": images.grad, "grad_cap": captions.grad}
        for name, value in (found | {"grad_log_logit_scale": objective.log_scale.grad}).items():
            np.testing.assert_allclose(value, golden[f"tau0.07_eps{epsilon}.{name}"], atol=1e-9)


def test_a_triplet_at_the_margin_is_no_violation() -> None:
    for hardest in (False, True):
        scores = torch.tensor([[1.0, 0.5], [0.0, 1.0]], requires_grad=True)
        loss = triplet(scores, EYE, 0.5, hardest=hardest, direction="i2t")
        (gradient,) = torch.autograd.grad(loss, scores)
        assert loss.item() == 0.0
        assert not gradient.any()
        other = torch.rand(2, 2)
        kind = TripletHardest if hardest else Triplet
        assert torch.equal(kind(0.1)(other, EYE), triplet(other, EYE, 0.1, hardest=hardest))
    refused(UsageError, "k 0", TripletTop, k=0)


def test_a_learned_temperature_at_its_ceiling_still_learns() -> None:
    batch = random_batch(0)
    # The pairs are told apart badly, so 1/τ should come down; it starts at, and beyond, the ceiling.
    for start in (0.01, 0.001):
        objective = InfoNCE(start, learn_temperature=True)
        assert objective.logged()["temperature"] == pytest.approx(0.01)
        optimizer = torch.optim.SGD(objective.parameters(), lr=0.1)
        objective(-batch.positives.float(), batch.positives).backward()
        optimizer.step()
        assert objective.logged()["temperature"] > 0.0101
    free = SigLIP(1 / 500)  # the paper's has none
    assert free.logged()["temperature"] == pytest.approx(1 / 500)


def test_siglip_starts_where_the_paper_starts_and_learns_both_or_none() -> None:
    objective = SigLIP()
    assert objective.logged() == {"temperature": pytest.approx(0.1), "bias": pytest.approx(-10.0)}
    # Two positives at 10·0.5 − 10 = −5, two negatives at −10, over two images.
    expected = math.log1p(math.exp(5)) + math.log1p(math.exp(-10))
    assert objective(torch.eye(2) * 0.5, EYE).item() == pytest.approx(expected)
    scores, step = torch.tensor([[0.5, 0.2], [0.1, 0.4]]), 1e-3
    objective(scores, EYE).backward()
    gradients: Any = {name: parameter.grad for name, parameter in objective.named_parameters()}
    # By finite differences in t' and b.
    shifts = {
        "log_scale": [siglip(scores.double(), EYE, 1 / (10 * math.exp(way))) for way in (step, -step)],
        "bias": [siglip(scores.double(), EYE, 0.1, -10 + way) for way in (step, -step)],
    }
    for name, (up, down) in shifts.items():
        assert gradients[name].item() == pytest.approx((up - down).item() / (2 * step), rel=1e-4)
    fixed = SigLIP(learn_temperature=False, learn_bias=False)
    assert (list(fixed.parameters()), fixed.logged()) == ([], {})
    assert fixed(scores, EYE).item() == pytest.approx(objective(scores, EYE).item())


def test_a_learned_number_that_diverged_is_named() -> None:
    tempered, biased = InfoNCE(learn_temperature=True), SigLIP()
    with torch.no_grad():
        tempered.log_scale.fill_(torch.nan)  # type: ignore[union-attr]
        biased.bias.fill_(torch.inf)  # type: ignore[union-attr]
    for use, message in (
        (tempered, "the learned temperature is nan"),
        (tempered.per_query, "the learned temperature is nan"),
        (biased, "the learned bias is inf"),
    ):
        refused(NumericalError, message, use, torch.zeros(2, 2), EYE)


def simclr(images: torch.Tensor, texts: torch.Tensor, temperature: float) -> torch.Tensor:
    """SimCLR over the 2N rows of N pairs: cross-entropy with each row's own column left out."""
    rows, n = torch.cat([images, texts]), len(images)
    logits = (rows @ rows.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -math.inf)
    return torch.nn.functional.cross_entropy(logits, torch.cat([torch.arange(n) + n, torch.arange(n)]))


def test_mvn_of_pairs_is_simclr_over_twice_as_many_rows() -> None:
    for compat in ("none", "pairs"):
        images, texts = torch.nn.functional.normalize(torch.randn(2, 8, 5, dtype=torch.float64), dim=2)
        images.requires_grad_(), texts.requires_grad_()
        expected = torch.autograd.grad(simclr(images, texts, 0.1), (images, texts))
        within = Within(images @ images.T, texts @ texts.T)
        loss = MVN(compat=compat)(images @ texts.T, torch.eye(8, dtype=torch.bool), within)  # type: ignore[arg-type]
        assert loss.item() == pytest.approx(simclr(images, texts, 0.1).item(), abs=1e-12)
        torch.testing.assert_close(torch.autograd.grad(loss, (images, texts)), expected)


def test_mvn_wants_the_scores_of_its_anchors_modality() -> None:
    scores, positives, within = random_batch(4)
    anything = torch.full_like(within.texts, torch.nan)
    half = mvn(scores, positives, Within(within.images, anything), direction="i2t")
    assert half == mvn(scores, positives, within, direction="i2t")
    n_texts = scores.shape[1]
    for call in (MVN(), MVN().per_query):
        refused(UsageError, "mvn wants the scores inside each modality", call, scores, positives)
    narrow, broken = within.texts[:, :1], within.images.clone()
    message = rf"among {n_texts} texts have shape \({n_texts}, 1\)"
    refused(UsageError, message, mvn, scores, positives, Within(within.images, narrow))
    broken[1, 0] = torch.inf
    message = "image 1 and image 0 of the batch is inf"
    refused(NumericalError, message, mvn, scores, positives, Within(broken, within.texts))
    # Images that share their only text are no negatives of each other.
    shared = torch.tensor([[True, False], [True, False], [False, True]])
    inside = torch.tensor([[1.0, 0.7, 0.2], [0.7, 1.0, 0.3], [0.2, 0.3, 1.0]], dtype=torch.float64)
    scores = torch.tensor([[0.1, 0.5], [0.3, 0.2], [0.4, 0.9]], dtype=torch.float64)
    assert MVN().per_query(scores, shared, inside)[0].item() == pytest.approx(softmax([0.1], [0.5, 0.2], 0.1))


@pytest.mark.parametrize("sign", [1, -1])
def test_blocks_change_neither_smoothap_nor_its_gradient(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The equations as they stand, every candidate with every other; with the printed sign too."""
    batch = random_batch(11, largest=12)
    scores, losses = batch.scores.requires_grad_(), []
    for row, relevant in zip(scores, batch.positives, strict=True):
        above = torch.sigmoid(sign * (row[None, :] - row[:, None]) / 0.1)  # [i, j]: j above i
        above = above * (1 - torch.eye(len(row), dtype=row.dtype))
        among = 1 + above[:, relevant].sum(dim=1)
        losses.append(1 - (among / (among + above[:, ~relevant].sum(dim=1)))[relevant].mean())
    expected = torch.stack(losses)
    weights = torch.arange(1.0, len(scores) + 1, dtype=torch.float64)  # a gradient of its own per query
    (gradient,) = torch.autograd.grad(expected @ weights, scores)
    options: Any = {
        "direction": "i2t",
        "reduction": "none",
        "compat": "none" if sign == 1 else "positive-sign",
    }
    for elements in (1, 7, 30):
        monkeypatch.setattr(pairs, "BLOCK_ELEMENTS", elements)
        values = smoothap(scores, batch.positives, 0.1, **options)
        torch.testing.assert_close(values, expected)
        torch.testing.assert_close(torch.autograd.grad(values @ weights, scores)[0], gradient)


def test_smoothap_keeps_no_more_than_scores_and_their_gradient() -> None:
    positives = torch.arange(16)[:, None] == torch.arange(80) // 5
    scores = torch.randn(16, 80, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, id):
        loss = smoothap(scores, positives)
    assert max(kept) == scores.numel()
    assert sum(kept) < 8 * scores.numel()
    del loss
    with pytest.raises(UsageError, match="has no second derivative"):
        torch.autograd.grad(smoothap(scores, positives), scores, create_graph=True)
