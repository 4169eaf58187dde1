"""Run: the folder of one training, in which nothing reported is ever lost.

::

    RUN/
      run.json          format, state (running, finished), versions, where it stands
      recipe.toml       the complete recipe
      environment.json  versions, devices, threads
      metrics.jsonl     one line per logged step and per epoch
      checkpoint/       everything needed to go on: weights, optimizer, place
      best/             the encoder with the best validation rsum (checkpoints.keep = "last": the latest);
                        DualEncoder.load reads it
      warm_start.json   the fingerprint of what it began with, where it began with something
                        (fine_tune.json where that was a whole encoder)
      shortcuts.json    what its shortcuts are, where it has any: setup, digits' pictures
      targets/          what latent targets are made with, where there are any
      evaluation/       one folder per evaluated split
      training.lock     which process trains it, as long as one does
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.reading import file_errors, opening, read_json, read_log, read_text
from diptych.core.version import __version__
from diptych.training.recipe import Recipe, parse_recipe

FORMAT = 1


class Run:
    """A run folder; make one with :meth:`prepare` and :meth:`begin`, read one with :meth:`open`."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self.folder = folder
        self.recipe = recipe

    @classmethod
    def prepare(cls, folder: Path | str, recipe: Recipe) -> Run:
        """A run that will be in ``folder``; nothing is written before :meth:`begin`.

        Raises:
            UsageError: the folder already holds a run.
        """
        folder = Path(folder)
        if (folder / "run.json").exists():
            raise UsageError(
                f"{folder} already holds a run",
                f"go on with it by --resume {folder}, or choose another folder with --out",
            )
        return cls(folder, recipe)

    def begin(self) -> None:
        """Write the recipe and the environment of a new run; an old one's stay."""
        if (self.folder / "run.json").exists():
            return
        write_text(self.folder / "recipe.toml", self.recipe.to_toml())
        write_json(self.folder / "environment.json", environment())
        self.set_state("running")

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str) -> Run:
        """Read a run.

        Raises:
            UsageError: the folder holds no run.
            StorageError: the run was made by another version of the format.
        """
        folder = Path(folder)
        if not (folder / "run.json").is_file():
            raise UsageError(f"{folder} holds no run (no run.json)", "give a folder that diptych train wrote")
        header = read_json(folder / "run.json")
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            version = header.get("format") if isinstance(header, dict) else header
            raise StorageError(
                f"{folder} is a run of format {version}, this version reads format {FORMAT}",
                f"repeat it with: diptych train {folder / 'recipe.toml'} --out NEW",
            )
        text = read_text(folder / "recipe.toml", fix="train it again")
        return cls(folder, parse_recipe(text, str(folder / "recipe.toml")))

    def set_state(self, state: str, **more: Any) -> None:
        """Write run.json."""
        header = {"format": FORMAT, "diptych": __version__, "name": self.recipe.name, "state": state}
        write_json(self.folder / "run.json", {**header, **more})

    @property
    def header(self) -> dict[str, Any]:
        """The content of run.json."""
        header: dict[str, Any] = read_json(self.folder / "run.json")
        with file_errors(self.folder / "run.json", fix="train it again"):
            return {**header, "state": header["state"]}

    @property
    def finished(self) -> bool:
        """Whether training came to its end."""
        return bool(self.header["state"] == "finished")

    @property
    def best(self) -> Path:
        """The folder of the best encoder."""
        return self.folder / "best"

    @property
    def checkpoint(self) -> Path:
        """The folder of the state to go on from."""
        return self.folder / "checkpoint"

    def log(self, **values: Any) -> None:
        """Append one line to metrics.jsonl."""
        try:
            with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as handle:
                handle.write(json.dumps(values) + "\n")
        except OSError as error:
            raise StorageError(
                f"cannot write {self.folder / 'metrics.jsonl'}: {error.strerror}",
                f"free some space, then: diptych train --resume {self.folder}",
            ) from error

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of metrics.jsonl; a last line that a kill cut short is left out."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            return
        for number, line in read_log(path):
            with file_errors(f"{path}, line {number}", fix="remove that line"):
                line["step"]
            yield line

    def rewind_metrics(self, step: int) -> None:
        """Forget what was logged after ``step``, so that a resumed run's log is an unbroken one's."""
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
        write_text(self.folder / "metrics.jsonl", "".join(kept))


def environment() -> dict[str, Any]:
    """Versions and devices that a number can depend on; nothing that names a person or a machine."""
    from importlib import metadata

    import torch

    names = (
        "torch",
        "torchvision",
        "timm",
        "numpy",
        "pillow",
        "lightning-fabric",
        "safetensors",
        "transformers",
    )
    return {
        "diptych": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": {name: metadata.version(name) for name in names},
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
