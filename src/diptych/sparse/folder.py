"""The folder of one head's training, in which nothing reported is lost.

::

    FOLDER/
      options.json    everything that was chosen
      about.json      state (running, finished), fingerprints of encoder and data, precision, seconds
      vocabulary/     tokenizer.json, terms.json
      metrics.jsonl   one line per epoch
      checkpoint/     everything needed to go on: weights, moments, place
      head/           the head; Sparsifier.load reads it
      embeddings/     dense rows, where what they were made with has no place for them
      training.lock   which process trains here, as long as one does
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.reading import file_errors, read_json, read_log
from diptych.core.version import __version__
from diptych.sparse.options import SparsifyOptions

FORMAT = 1

_OTHER = "go on with what it was begun with, or choose another folder"
_ANEW = "train the head again in a new folder"


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
        return self._read("about.json")

    def _read(self, name: str) -> dict[str, Any]:
        """One of the folder's files."""
        found = read_json(self.path / name)
        if not isinstance(found, dict):
            raise StorageError(f"{self.path / name} is damaged", _ANEW)
        return found

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return self.begun and self.about.get("state") == "finished"

    def check(self, options: SparsifyOptions) -> None:
        """See that a training with ``options`` can begin or go on here."""
        if not self.begun:
            if self.path.is_dir() and not {entry.name for entry in self.path.iterdir()} <= _OWN:
                raise UsageError(f"{self.path} holds other things", "give a new or empty folder")
            return
        found = self.about
        if found.get("format") != FORMAT:
            raise StorageError(
                f"{self.path} is of format {found.get('format')}, this version reads {FORMAT}", _ANEW
            )
        before = dict(_flat(self._read("options.json")))
        now = dict(_flat(options.model_dump(mode="json")))
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                raise MismatchError(
                    f"{self.path} was begun with {name} = {before.get(name)}, asked for is {now.get(name)}",
                    _OTHER,
                )

    def begin(self, options: SparsifyOptions, about: dict[str, Any]) -> None:
        """Write what a new training is made of; see that an old one was made of the same."""
        self.check(options)
        if not self.begun:
            write_json(self.path / "options.json", options.model_dump(mode="json"))
            self.set_state("running", about)
            return
        found = self.about
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
        for number, found in read_log(path):
            with file_errors(f"{path}, line {number}", fix="remove that line"):
                found["epoch"]
            yield found

    def rewind_metrics(self, epoch: int) -> None:
        """Forget what was logged after ``epoch``, so that a resumed training's log is an unbroken one's."""
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["epoch"] <= epoch]
        write_text(self.path / "metrics.jsonl", "".join(kept))


_OWN = frozenset(("options.json", "training.lock", "vocabulary", "embeddings"))


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Options of all sections with their dotted names."""
    flat: list[tuple[str, Any]] = []
    for name, value in sorted(values.items()):
        flat += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(before + name, value)]
    return flat
