from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diptych.core.errors import RecipeError, UsageError
from diptych.training.recipe import parse_recipe
from diptych.training.run import Run, trained_objective


def run_with(folder: Path, objective: str, lines: list[dict[str, Any]]) -> Run:
    recipe = parse_recipe(f"{objective}\n[[stages]]\nepochs = 2\nlearning_rate = 1e-3\n", "test")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Run(folder, recipe)


LINES: list[dict[str, Any]] = [
    {"step": 1, "loss": 2.0, "temperature": 0.09, "bias": -9.0},
    {"step": 2, "loss": 1.5, "temperature": 0.08, "bias": -8.0},
    {"step": 2, "epoch": 1, "validation": {"rsum": 50.0}},
    {"step": 3, "loss": 1.0, "temperature": 0.01, "bias": -1.0},
    {"step": 3, "epoch": 2, "validation": {"rsum": 40.0}},
]


def test_what_was_learned_at_the_best_epoch(tmp_path: Path) -> None:
    objective: Any = trained_objective(run_with(tmp_path, '[objective]\nname = "siglip"', LINES))
    assert float(objective.temperature.detach()) == pytest.approx(0.08)
    assert float(objective.bias.detach()) == -8.0
    changed: Any = trained_objective(run_with(tmp_path, '[objective]\nname = "siglip"', LINES), bias=-3.0)
    assert float(changed.bias.detach()) == -3.0


def test_what_was_not_learned_is_the_recipes(tmp_path: Path) -> None:
    fixed = '[objective]\nname = "infonce"\ntemperature = 0.3'
    objective: Any = trained_objective(run_with(tmp_path, fixed, LINES))
    assert objective.temperature == 0.3


def test_what_the_metrics_do_not_say(tmp_path: Path) -> None:
    learned = '[objective]\nname = "infonce"\nlearn_temperature = true'
    with pytest.raises(UsageError, match="learned a temperature that its metrics") as caught:
        trained_objective(run_with(tmp_path, learned, [{"step": 1, "loss": 2.0}]))
    assert "--option temperature=VALUE" in caught.value.fix
    with pytest.raises(RecipeError, match="no option 'margin'"):
        trained_objective(run_with(tmp_path, '[objective]\nname = "infonce"', LINES), margin=0.2)
