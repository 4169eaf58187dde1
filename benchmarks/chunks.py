"""Large batches in the memory of small ones: gradient caching against the whole batch at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.memory import peak_mb
from benchmarks.table import Line

__all__ = ["measure"]

SMALL, LARGE = 256, 4096
TOKENS, VOCABULARY, WIDTH, FEATURES = 14, 5000, 512, 1280


def _step(size: int, chunk: int | None) -> dict[str, float]:
    """Peak memory above the model's own, and the loss, of one step forward and backward."""
    import time

    import torch
    from lightning_fabric import Fabric

    from diptych.data.vocabulary import Vocabulary
    from diptych.encoders.two_tower import TwoTowerModel
    from diptych.objectives.similarity import similarity_of
    from diptych.training.batch_loss import BatchLoss
    from diptych.training.examples import Loaded
    from diptych.training.recipe import Recipe
    from diptych.training.trainee import Trainee

    torch.manual_seed(0)
    image = {"kind": "regions", "regions": 1, "feature_width": FEATURES, "layers": 0, "fusion": "mean"}
    recipe = Recipe.model_validate(
        {
            "model": {"width": WIDTH, "image": image, "text": {"min_count": 1}},
            "objective": {"name": "infonce", "temperature": 0.05},
            "stages": [{"epochs": 1, "learning_rate": 1e-3, "train": ["*"]}],
        }
    )
    words = [f"word{number}" for number in range(VOCABULARY)]
    model = TwoTowerModel(recipe.model, Vocabulary.build([" ".join(words)], 1))
    trainee = Trainee(model, recipe.make_objective())
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    loss = BatchLoss(fabric, fabric.setup(trainee), trainee, similarity_of("cosine"), False, chunk)
    rows = torch.arange(size)
    batch = Loaded(
        torch.randn(size, 1, FEATURES),
        torch.randint(4, VOCABULARY, (size, TOKENS)),
        torch.full((size,), TOKENS),
        torch.empty(size, 0),
        rows,
        rows,
    )
    loss(batch.part(0, size // 8), 1.0, True, 0)  # gradients and the library's own buffers are there
    begun, before = time.perf_counter(), peak_mb(forget=True)
    value = loss(batch, 1.0, True, 0).contrastive
    return {"megabytes": peak_mb() - before, "seconds": time.perf_counter() - begun, "loss": value}


def _measured(size: int, chunk: int | None) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.chunks", json.dumps([size, chunk])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure() -> list[Line]:
    """A GRU of 512 on 14 words beside features of 1,280: forward and backward of one batch."""
    small, chunked, whole = _measured(SMALL, None), _measured(LARGE, SMALL), _measured(LARGE, None)
    # What no chunking can do without: scores, positives, logits and the scores' gradient.
    scores = LARGE * LARGE * 4 / 1e6
    how = f"InfoNCE, GRU {WIDTH}, {TOKENS} tokens; peak resident set above the model, a process each"
    return [
        Line(
            f"memory of batch {LARGE:,} in chunks of {SMALL}",
            f"{chunked['megabytes']:.0f} MB; batch {SMALL}: {small['megabytes']:.0f} MB; whole: "
            f"{whole['megabytes']:.0f} MB; one score matrix: {scores:.0f} MB",
            f"≤ batch {SMALL} and 8 score matrices",
            chunked["megabytes"] <= small["megabytes"] + 8 * scores,
            how,
        ),
        Line(
            "its time ÷ that of the whole batch",
            f"{chunked['seconds'] / whole['seconds']:.2f}× ({chunked['seconds']:.1f} s)",
            "(stated)",
            True,
            f"losses agree to {abs(chunked['loss'] - whole['loss']):.0e}",
        ),
    ]


if __name__ == "__main__":
    print(json.dumps(_step(*json.loads(sys.argv[1]))))
