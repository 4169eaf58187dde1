"""Finished commands, as tests of the command line see them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def shows(self, *texts: str) -> None:
        """Assert that each of these was printed."""
        for text in texts:
            assert text in self.out, (text, self.out)

    def hides(self, *texts: str) -> None:
        """Assert that none of these was printed."""
        for text in texts:
            assert text not in self.out, (text, self.out)

    def says(self, *texts: str) -> None:
        """Assert that each of these stands in the error output, wherever its lines break."""
        for text in texts:
            assert text in self.err or text in self.err.replace("\n", " "), (text, self.out, self.err)


Command = Callable[..., Done]
RECIPE = """# diptych train tiny.toml; expect nothing
name = "tiny"
[data]
path = "{path}"
[model]
width = 16
[model.image]
backbone = "test_efficientnet"
[model.image.preprocessing]
size = 32
resize = 32
[model.text]
word_width = 8
min_count = 1
[objective]
name = "infonce"
[batches]
size = 24
[[stages]]
epochs = 2
learning_rate = 1e-3
train = ["*"]
"""
"""A training of seconds."""

QUICK_HEAD = "--set training.epochs=2 --set head.width=16 --set training.batch_size=32"


def command(line: str) -> None:
    """Run a command line that makes what several tests share."""
    from diptych.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["diptych", *shlex.split(line)])
        with pytest.raises(SystemExit) as caught:
            main()
    assert not caught.value.code


def every_byte(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
