"""The folder of one head's training, in which nothing reported is lost.

::

    FOLDER/
      options.json    everything that was chosen
      about.json      state (running, finished), fingerprints of encoder and data, precision, seconds
      vocabulary/     tokenizer.json, terms.json
      metrics.jsonl   one line per epoch
      checkpoint/     everything needed to go on: weights, moments, place
      head/           the head; Sparsifier.load reads it
      training.lock   which process trains here, as long as one does
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import read_json, write_json, write_text
from diptych.core.version import __version__
from diptych.sparse.options import SparsifyOptions

__all__ = ["HeadFolder"]

FORMAT = 1

_OTHER = "go on with what it was begun with, or choose another folder"


class HeadFolder:
    """Where a head is trained; see the module for what is in it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @property
    def vocabulary(self) -> Path:
        """The folder of the terms."""
        return self.path / "vocabulary"

    @property
    def checkpoint(self) -> Path:
        """The folder of the state to go on from."""
        return self.path / "checkpoint"

    @property
    def head(self) -> Path:
        """The folder of the trained head."""
        return self.path / "head"

    @property
    def begun(self) -> bool:
        """Whether a training was begun here."""
        return (self.path / "about.json").is_file()

    @property
    def about(self) -> dict[str, Any]:
        """The content of about.json."""
        about: dict[str, Any] = read_json(self.path / "about.json")
        return about

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return self.begun and self.about["state"] == "finished"

    def begin(self, options: SparsifyOptions, about: dict[str, Any]) -> None:
        """Write what a new training is made of; see that an old one was made of the same.

        Raises:
            MismatchError: a training was begun here with other options, another encoder or other data.
            UsageError: the folder holds other things.
        """
        chosen = options.model_dump(mode="json")
        if not self.begun:
            if self.path.is_dir() and not {entry.name for entry in self.path.iterdir()} <= _OWN:
                raise UsageError(f"{self.path} holds other things", "give a new or empty folder")
            write_json(self.path / "options.json", chosen)
            self.set_state("running", about)
            return
        found = self.about
        if found.get("format") != FORMAT:
            raise StorageError(
                f"{self.path} is of format {found.get('format')}, this version reads {FORMAT}",
                "train the head again in a new folder",
            )
        for (name, before), (_, now) in zip(
            _flat(read_json(self.path / "options.json")), _flat(chosen), strict=False
        ):
            if before != now:
                raise MismatchError(
                    f"{self.path} was begun with {name} = {before}, asked for is {now}", _OTHER
                )
        for name, now in about.items():
            if found.get(name) != now:
                raise MismatchError(
                    f"{self.path} was begun with {name} {found.get(name)}, this is {now}", _OTHER
                )

    def set_state(self, state: str, about: dict[str, Any]) -> None:
        """Write about.json."""
        write_json(
            self.path / "about.json", {"format": FORMAT, "diptych": __version__, "state": state, **about}
        )

    def log(self, **values: Any) -> None:
        """Append one line to metrics.jsonl."""
        try:
            with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as handle:
                handle.write(json.dumps(values) + "\n")
        except OSError as error:
            raise StorageError(
                f"cannot write {self.path / 'metrics.jsonl'}: {error.strerror}",
                "free some space and repeat the command: it goes on from the last checkpoint",
            ) from error

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of metrics.jsonl; a last line that a kill cut short is left out."""
        path = self.path / "metrics.jsonl"
        if not path.is_file():
            return
        with open(path, encoding="utf-8") as handle:
            for line in handle:
                if line.endswith("\n"):
                    yield json.loads(line)

    def rewind_metrics(self, epoch: int) -> None:
        """Forget what was logged after ``epoch``, so that a resumed training's log is an unbroken one's."""
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["epoch"] <= epoch]
        write_text(self.path / "metrics.jsonl", "".join(kept))


_OWN = frozenset(("options.json", "training.lock", "vocabulary"))


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Options of all sections with their dotted names."""
    flat: list[tuple[str, Any]] = []
    for name, value in sorted(values.items()):
        flat += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(before + name, value)]
    return flat
