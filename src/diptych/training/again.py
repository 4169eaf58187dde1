"""Trainings requested by their recipe: found, resumed or begun, on as many devices as there are."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from diptych.core.context import check_stop, stopping
from diptych.core.errors import UsageError
from diptych.core.files import write_text
from diptych.data.collection import Collection
from diptych.training.fine_tune import open_fine_tune
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run

_APART = {"data", "fine_tune", "warm_start", "name", "description"}  # of a recipe: places and names


def run_of(folder: Path, recipe: Recipe, collection: Collection) -> Run:
    """Return the run of a recipe: what its folder has, with data and beginnings where they are now, or a new one.

    Raises:
        MismatchError: the folder has a run of another recipe, other captions or another encoder to begin with.
    """
    if not (folder / Run.MARKER).is_file():
        return Run.prepare(folder, recipe)
    run, captions = Run.open(folder), f"captions of {collection.name}"
    before, request = (one.model_dump(mode="json", exclude=_APART) for one in (run.recipe, recipe))
    before[captions] = run.begun_with["data"]
    request[captions] = collection.split(run.recipe.data.train).text_fingerprint
    if run.recipe.fine_tune != recipe.fine_tune:  # an encoder under another name may be the same
        before["fine_tune"] = run.begun_with.get("fine_tune")
        request["fine_tune"] = recipe.fine_tune and open_fine_tune(recipe.fine_tune).fingerprint
    run.compare(before, request)
    return Run(folder, recipe)


def train(run: Run, collection: Collection, devices: int, features: Path, accelerator: str) -> None:
    """Train a run to its end; on several devices in a command of its own, which its further processes can repeat."""
    if devices == 1:
        fit(run, collection, accelerator=accelerator, features_root=features)
        return
    recipe = run.folder.with_name(f"recipe-{run.folder.name}.toml")
    start: list[Any] = ["--resume", run.folder]
    if not run.begun:  # nothing is in its folder before its first step
        write_text(recipe, run.recipe.to_toml())
        start = [recipe, "--out", run.folder]
    how = ["--devices", devices, "--accelerator", accelerator, "--features", features]
    words = ["diptych", "train", *map(str, [*start, *how])]
    process = subprocess.Popen(
        [sys.executable, "-m", *words], start_new_session=True
    )  # it is stopped only here
    while process.poll() is None:
        if stopping():
            process.send_signal(signal.SIGINT)
            process.wait()
        time.sleep(0.2)
    if run.begun:
        recipe.unlink(missing_ok=True)
    check_stop(f"stopped while {run.folder} was training; nothing is lost")
    if process.returncode:
        fix = f"see what it says above, or run it by itself: {shlex.join(words)}"
        raise UsageError(f"{run.folder} was not trained (exit code {process.returncode})", fix)
