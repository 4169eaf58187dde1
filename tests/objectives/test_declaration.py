from __future__ import annotations

import pytest
import torch

from diptych.core.errors import RecipeError, UsageError
from diptych.objectives import OBJECTIVES, infonce
from diptych.objectives.declaration import checked

EYE = torch.eye(2, dtype=torch.bool)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_every_objective_prefers_right_pairs_to_wrong_ones(name: str) -> None:
    kind = OBJECTIVES.get(name)
    objective = kind()
    right, wrong = torch.eye(4), torch.eye(4).flip(0)
    positives = torch.eye(4, dtype=torch.bool)
    assert objective(right, positives) < objective(wrong, positives)
    assert objective(right, positives).shape == ()
    assert kind.citation


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_every_objective_names_an_option_it_does_not_have(name: str) -> None:
    with pytest.raises(RecipeError, match="has no option 'colour'") as caught:
        OBJECTIVES.get(name)(colour=1)
    for option in OBJECTIVES.get(name).options:
        assert option in caught.value.fix


@pytest.mark.parametrize(
    ("scores", "positives", "message"),
    [
        (torch.zeros(2, 3), EYE, r"scores have shape \(2, 3\), positives \(2, 2\)"),
        (torch.zeros(2), torch.ones(2, dtype=torch.bool), "scores have shape"),
        (torch.zeros(2, 2), torch.eye(2), "boolean"),
        (
            torch.zeros(2, 2),
            torch.tensor([[True, True], [False, False]]),
            "image 1 of the batch has no positive",
        ),
        (
            torch.zeros(2, 2),
            torch.tensor([[True, False], [True, False]]),
            "text 1 of the batch has no positive",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(scores: torch.Tensor, positives: torch.Tensor, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked(scores, positives)


@pytest.mark.parametrize("choice", [{"direction": "up"}, {"reduction": "most"}, {"compat": "all"}])
def test_unknown_choices(choice: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="up|most|all"):
        infonce(torch.zeros(2, 2), EYE, **choice)  # type: ignore[arg-type]
