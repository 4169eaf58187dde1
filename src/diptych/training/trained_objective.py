"""The objective of a finished or interrupted run, with what it had learned when its encoder was kept."""

from __future__ import annotations

from typing import Any

from diptych.core.errors import UsageError
from diptych.objectives import OBJECTIVES, Objective
from diptych.training.run import Run


def trained_objective(run: Run, **options: Any) -> Objective:
    """The run's own objective, learned options (a temperature, a bias) as of the encoder it keeps."""
    given = run.begun_with.get("objective") if run.begun else None
    if given is not None:
        raise UsageError(
            f"{run.folder} was trained with the objective {given}, which was given in Python",
            "name one of diptych's own with --objective",
        )
    recipe = dict(run.recipe.objective)
    kind = OBJECTIVES.get(recipe.pop("name"))
    known = {**kind.options, **recipe, **options}
    learned = {
        name.removeprefix("learn_")
        for name, value in known.items()
        if name.startswith("learn_") and value is True
    }
    wanted = learned - set(options)
    values = _logged_when_kept(run, wanted) if wanted else {}
    missing = sorted(wanted - set(values))
    if missing:
        raise UsageError(
            f"{run.folder} learned a {missing[0]} that its metrics.jsonl does not hold",
            f"give it: --option {missing[0]}=VALUE",
        )
    return kind(**{**recipe, **values, **options})


def _logged_when_kept(run: Run, names: set[str]) -> dict[str, float]:
    """The last values that were logged up to the end of the epoch whose encoder is kept; to the log's end
    before there is one."""
    lines = list(run.metrics())
    # Before its first step a fine-tuning measures the encoder it begins with.
    validated = [line for line in lines if "validation" in line and line["step"]]
    stop = None
    if validated and run.recipe.checkpoints.keep == "last":
        stop = validated[-1]["step"]
    elif validated:
        stop = max(validated, key=lambda line: line["validation"]["rsum"])["step"]
    values: dict[str, float] = {}
    for line in lines:
        if stop is None or line["step"] <= stop:
            values |= {name: line[name] for name in names if name in line}
    return values
