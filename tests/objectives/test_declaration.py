"""The contract of objectives and similarities, over their registries."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from score_batches import Batch, random_batch, repeated

from diptych import objectives
from diptych.core.errors import MismatchError, NumericalError, RecipeError, UnknownNameError, UsageError
from diptych.objectives import (
    OBJECTIVES,
    SIMILARITIES,
    Objective,
    Within,
    cosine_similarity,
    order_similarity,
    similarity,
    similarity_of,
)
from diptych.objectives.declaration import as_objective, checked, declared_as
from diptych.objectives.similarity import order_root_similarity

GOLDEN = Path(__file__).parents[1] / "golden"
EYE = torch.eye(2, dtype=torch.bool)
NAMES = OBJECTIVES.names()
SEEDS = st.integers(0, 10_000)
# How the two directions make one loss, where it is not their mean.
BOTH_WAYS = {
    "convse": lambda i2t, t2i, shape: i2t + t2i,
    "convse++": lambda i2t, t2i, shape: i2t + t2i,
    "mvn": lambda i2t, t2i, shape: (shape[0] * i2t + shape[1] * t2i) / sum(shape),
    "siglip": lambda i2t, t2i, shape: i2t,
    "triplet": lambda i2t, t2i, shape: i2t + t2i,
    "triplet-hardest": lambda i2t, t2i, shape: i2t + t2i,
    "triplet-top": lambda i2t, t2i, shape: i2t + t2i,
}
# What is trained where a recipe gives a name alone.
DEFAULTS = {
    "convse": {"temperature": 0.1, "learn_temperature": False},
    "convse++": {"temperature": 0.1, "margin": 0.2},
    "cosine-distance": {},
    "ifm": {"temperature": 0.07, "learn_temperature": False, "epsilon": 0.1},
    "infonce": {"temperature": 0.07, "learn_temperature": False},
    "infonce-ifm": {"temperature": 0.07, "learn_temperature": False, "epsilon": 0.1, "weight": 1.0},
    "mvn": {"temperature": 0.1, "learn_temperature": False},
    "nt-xent": {"temperature": 0.1, "learn_temperature": False},
    "siglip": {"temperature": 0.1, "learn_temperature": True, "bias": -10.0, "learn_bias": True},
    "smoothap": {"temperature": 0.01},
    "triplet": {"margin": 0.2, "reduction": "sum"},
    "triplet-hardest": {"margin": 0.2, "reduction": "sum"},
    "triplet-top": {"k": 8, "margin": 0.2, "reduction": "sum"},
}
FUNCTIONS = {"convse++": "convse_plus_plus", "nt-xent": None, "triplet-hardest": None, "triplet-top": None}


def build(name: str, **options: object) -> Objective:
    return OBJECTIVES.get(name)(**options).double()


def loss(objective: Objective, batch: Batch) -> torch.Tensor:
    return objective(batch.scores, batch.positives, batch.within if objective.needs_within else None)


def per_query(objective: Objective, batch: Batch) -> torch.Tensor:
    inside = batch.within.images if objective.needs_within else None
    return objective.per_query(batch.scores, batch.positives, inside)


def test_the_default_of_every_option() -> None:
    for name, special in DEFAULTS.items():
        common = {"direction": "both", "reduction": "mean", "compat": "none"}
        assert OBJECTIVES.get(name).options == common | special
        assert OBJECTIVES.get(name).citation
        function = FUNCTIONS.get(name, name.replace("-", "_"))
        if function:
            parameters = inspect.signature(getattr(objectives, function)).parameters
            for option in set(special) - set(common):
                assert option.startswith("learn_") or parameters[option].default == special[option]


def test_refuses_a_choice_there_is_not_when_built() -> None:
    for name in NAMES:
        kind = OBJECTIVES.get(name)
        for choice in ({"direction": "up"}, {"reduction": "none"}, {"compat": "all"}):
            refused(UsageError, "'up'|'none'|'all'", kind, **choice)
        for option, default in kind.options.items():
            if isinstance(default, bool | float):
                wrong = "no" if isinstance(default, bool) else str(default)  # "no" is true, if taken for one
                refused(RecipeError, f"option '{option}' of objective .* is '", kind, **{option: wrong})
                kind(**{option: default})


@settings(max_examples=20)
@given(seed=SEEDS)
def test_queries_add_up_to_the_loss(seed: int) -> None:
    batch = random_batch(seed)
    for name, compat in itertools.product(NAMES, ("none", "pairs")):
        one_way = build(name, direction="i2t", reduction="sum", compat=compat)
        torch.testing.assert_close(loss(one_way, batch), per_query(one_way, batch).sum())
        other_way = build(name, direction="t2i", reduction="sum", compat=compat)
        turned = Batch(batch.scores.T, batch.positives.T, Within(batch.within.texts, batch.within.images))
        torch.testing.assert_close(loss(other_way, batch), per_query(one_way, turned).sum())


def test_gradients_are_those_of_finite_differences() -> None:
    for name, seed in itertools.product(NAMES, range(3)):
        tempered = "temperature" in OBJECTIVES.get(name).options
        objective = build(name, **({"temperature": 0.3} if tempered else {}))
        batch = random_batch(seed)
        inputs = [batch.scores, *(batch.within if objective.needs_within else ())]

        def of(*scores: torch.Tensor, objective: Any = objective, positives: Any = batch.positives) -> Any:
            return objective(scores[0], positives, Within(*scores[1:]) if scores[1:] else None)

        assert torch.autograd.gradcheck(of, [value.clone().requires_grad_() for value in inputs], eps=1e-7)


def test_a_learned_temperature_has_a_gradient_and_is_logged() -> None:
    for name in [one for one in NAMES if "learn_temperature" in OBJECTIVES.get(one).options]:
        objective: Any = build(name, temperature=0.1, learn_temperature=True)
        loss(objective, random_batch(2)).backward()
        assert objective.log_scale.grad.item() != 0
        assert objective.logged()["temperature"] == pytest.approx(0.1)


def test_a_query_without_negatives_has_nothing_to_learn() -> None:
    for name in sorted(set(NAMES) - {"cosine-distance", "siglip"}):
        objective = build(name)
        scores = torch.tensor([[0.1, 0.9, 0.4], [0.2, 0.3, 0.5]], dtype=torch.float64, requires_grad=True)
        positives = torch.tensor([[True, True, True], [False, True, False]])
        inside = torch.tensor([[1.0, 0.2], [0.2, 1.0]], dtype=torch.float64, requires_grad=True)
        value = objective.per_query(scores, positives, inside if objective.needs_within else None)[0]
        value.backward()
        assert value.item() == 0.0
        assert scores.grad is not None
        assert not scores.grad.any()


def test_refuses_what_teaches_nothing() -> None:
    for name in NAMES:
        objective = build(name)
        one = torch.ones(1, 1, dtype=torch.float64)
        within = Within(one, one)
        if objective.needs_negatives:
            refused(UsageError, "1 images and 1 texts without a negative", objective, one, one.bool(), within)
            refused(UsageError, "without a negative", objective.per_query, one, one.bool(), one)
            refused(UsageError, "a batch of one pair", build(name, compat="pairs"), one, one.bool(), within)
        else:
            assert torch.isfinite(objective(one, one.bool(), within))
        batch = random_batch(0)
        wrong = batch.scores.clone()
        wrong[0, 1] = torch.nan
        other = batch._replace(scores=wrong)
        refused(NumericalError, "image 0 and text 1 of the batch is nan", loss, objective, other)
        other = batch._replace(positives=batch.positives[:, :-1])
        refused(UsageError, "scores have shape", loss, objective, other)
        lonely = batch.positives.clone()
        lonely[1] = False
        lonely[0] = True
        other = batch._replace(positives=lonely)
        refused(UsageError, "image 1 of the batch has no positive", loss, objective, other)


def test_one_pair_is_no_batch_as_published_either() -> None:
    refused(UsageError, "a batch of one pair", checked, torch.zeros(1, 1), EYE[:1, :1], "pairs")
    scores, positives = checked(torch.tensor([[1.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool), "pairs")
    assert scores.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert torch.equal(positives, EYE)


def test_an_impossible_number_is_refused_by_function_and_class() -> None:
    for name in NAMES:
        kind, function = OBJECTIVES.get(name), FUNCTIONS.get(name, name.replace("-", "_"))
        within = {"within": None} if name == "mvn" else {}
        for option in {"temperature", "margin", "epsilon", "weight", "bias"} & set(kind.options):
            low = [] if option == "bias" else [-0.1, *([0.0] if option == "temperature" else [])]
            for value in (math.nan, math.inf, *low):
                given: dict[str, Any] = {option: value}
                refused(UsageError, f"{option} {value}", kind, **given)
                if function:
                    form = getattr(objectives, function)
                    refused(UsageError, f"{option} {value}", form, torch.zeros(2, 2), EYE, **given, **within)


def test_a_function_of_scores_and_positives_is_an_objective_when_it_gives_a_scalar() -> None:
    scores = torch.rand(2, 2)
    summed = as_objective(lambda scores, positives: scores.sum())
    assert summed(scores, EYE) == scores.sum()
    assert summed.logged() == {}
    for function, found in (
        (lambda scores, positives: scores, r"shape \(2, 2\)"),
        (lambda *given: 3.0, "float"),
    ):
        message = f"the objective .*lambda.* returns {found}"
        refused(UsageError, message, as_objective(function), scores, EYE)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_two_directions_make_one_loss_and_pairs_are_a_batch_of_pairs(seed: int) -> None:
    batch = random_batch(seed)
    for name in NAMES:
        i2t, t2i, both = (loss(build(name, direction=way), batch) for way in ("i2t", "t2i", "both"))
        expected = BOTH_WAYS.get(name, lambda i2t, t2i, shape: (i2t + t2i) / 2)(i2t, t2i, batch.scores.shape)
        torch.testing.assert_close(both, expected)
        pairs = loss(build(name, compat="pairs"), batch)
        torch.testing.assert_close(pairs, loss(build(name), repeated(batch)))


def test_scores_far_apart_stay_finite_and_the_same_batch_gives_the_same_bits() -> None:
    for name in NAMES:
        found = []
        for _ in range(2):
            batch = random_batch(7, largest=40)
            scores = (1000 * batch.scores.float()).requires_grad_()
            within = Within(1000 * batch.within.images.float(), 1000 * batch.within.texts.float())
            value = OBJECTIVES.get(name)()(scores, batch.positives, within)
            value.backward()
            assert torch.isfinite(value)
            assert torch.isfinite(scores.grad).all()  # type: ignore[arg-type]
            found.append((value, scores.grad))
        for one, other in zip(*found, strict=True):
            assert torch.equal(one, other)  # type: ignore[arg-type]


def rows(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    n, m, d = random.integers(1, 6, size=3)
    return torch.from_numpy(random.standard_normal((n, d))), torch.from_numpy(random.standard_normal((m, d)))


def test_by_hand_and_where_order_is_perfect() -> None:
    images = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    texts = torch.tensor([[0.5, 1.0], [3.0, 2.0], [2.0, 4.0]])
    # A text below its image in every coordinate is in order; else the squares of what stands out.
    expected = [[0.0, -4.0, -5.0], [-1.25, -13.0, -20.0]]
    assert order_similarity(images, texts).tolist() == expected
    roots = [pytest.approx([-((-value) ** 0.5) for value in row]) for row in expected]
    assert order_root_similarity(images, texts).tolist() == roots
    assert cosine_similarity(images, texts).tolist() == [[2.5, 7.0, 10.0], [0.0, 0.0, 0.0]]
    images = torch.ones(1, 3, requires_grad=True)
    order_root_similarity(images, torch.zeros(1, 3)).sum().backward()
    assert images.grad is not None
    assert not images.grad.any()
    error = refused(UnknownNameError, "unknown similarity 'angle'", similarity_of, "angle")
    assert error.known == ["cosine", "order", "order-root"]
    images, texts = (part.requires_grad_() for part in rows(0))
    with pytest.raises(UsageError, match="order similarity has no second derivative"):
        torch.autograd.grad(order_similarity(images, texts).sum(), images, create_graph=True)


@given(st.integers(0, 10_000), st.sampled_from([1, 9, 10_000]))
def test_blocks_change_nothing(seed: int, elements: int) -> None:
    images, texts = (part.requires_grad_() for part in rows(seed))
    weights = torch.randn(len(images), len(texts), dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "_BLOCK_ELEMENTS", elements)
        found = order_similarity(images, texts)
        gradients = torch.autograd.grad((found * weights).sum(), (images, texts))
    expected = -(texts[None] - images[:, None]).clamp(min=0).square().sum(dim=2)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, torch.autograd.grad((expected * weights).sum(), (images, texts)))


def test_similarities_have_the_gradients_of_finite_differences() -> None:
    for name in SIMILARITIES.names():
        for seed in range(3):
            inputs = tuple(part.requires_grad_() for part in rows(seed))
            assert torch.autograd.gradcheck(similarity_of(name), inputs)
        images = inputs[0]
        found, expected = cosine_similarity(images, images), images @ images.T
        assert torch.equal(found, expected)
        gradients = (torch.autograd.grad(one.square().sum(), images)[0] for one in (found, expected))
        torch.testing.assert_close(*gradients)
        message = r"images have shape \(2, 3\), texts \(2, 4\)"
        refused(MismatchError, message, similarity_of(name), torch.zeros(2, 3), torch.zeros(2, 4))
        assert similarity_of(name).description


def test_what_is_kept_for_the_gradient_is_the_two_inputs() -> None:
    images, texts = torch.rand(20, 8, requires_grad=True), torch.rand(30, 8, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, id):
        order_similarity(images, texts)
    assert sorted(kept) == [20 * 8, 30 * 8]


def test_a_recipe_says_a_loss_that_was_made_in_python() -> None:
    given = objectives.InfoNCE(0.05, reduction="sum", learn_temperature=True)
    said = {"name": "infonce", "temperature": 0.05, "learn_temperature": True, "reduction": "sum"}
    assert declared_as(given) == said
    assert declared_as(objectives.InfoNCE(torch.tensor(0.05))) is None  # no number of a recipe
    assert declared_as(len) is None
    assert repr(objectives.Triplet(0.3)) == "Triplet(margin=0.3)"
    number = declared_as(objectives.Triplet(np.float64(0.3)))
    assert number == {"name": "triplet", "margin": 0.3}
    assert type(number["margin"]) is float
    given.eval()
    assert declared_as(given) == said
    with torch.no_grad():
        given.log_scale += 1  # what was learned is no option
    assert declared_as(given) is None
    changed = objectives.Triplet(0.3)
    changed.margin = 0.4
    assert declared_as(changed) is None


class Weighted(Objective):
    """A loss of one's own: an argument without a default, and others under names of their own."""

    def __init__(self, choices: float, **weights: float) -> None:
        super().__init__()
        self.total = choices + sum(weights.values())


def test_an_objective_is_copied_with_what_it_was_made_with() -> None:
    given = Weighted(1.0, images=2.0)
    assert repr(given) == "Weighted(choices=1.0, images=2.0)"
    copied = copy.deepcopy(given)  # by the protocol of pickle, as processes get one
    assert (repr(copied), copied.total) == (repr(given), 3.0)
