"""A published checkpoint as named tensors: one file, or a folder with one, read without running code of it."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import read_json
from diptych.encoders.tensors import load_tensors

__all__ = ["SUFFIXES", "Checkpoint", "find_checkpoint", "read_checkpoint"]

SUFFIXES = (".safetensors", ".th", ".pth", ".pt", ".bin")
"""What checkpoint files are called."""

_WRAPPERS = ("model", "state_dict", "model_state_dict")
"""Under which names a training run's file holds the weights."""

_AGAIN = "download it again, and compare its size with the published one"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Weights by the names of the published code.

    Attributes:
        state: the weights, on the CPU.
        name: the file's name, as reports print it.
        folder: where files that belong to it may lie; None for weights that come from no file.
    """

    state: Mapping[str, Tensor]
    name: str
    folder: Path | None = None

    def config(self) -> dict[str, Any]:
        """The ``config.json`` beside the file; empty where there is none.

        Raises:
            StorageError: it is not a JSON object.
        """
        file = self.folder / "config.json" if self.folder is not None else None
        if file is None or not file.is_file():
            return {}
        content = read_json(file)
        if not isinstance(content, dict):
            raise StorageError(f"{file} is not a JSON object", "make it again, or take it away")
        return content


def find_checkpoint(source: str | Path) -> Path:
    """The checkpoint file that ``source`` is, or the only one in the folder that it is.

    Raises:
        UsageError: there is no such file or folder.
        StorageError: a folder that holds none, or several.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        raise UsageError(
            f"{source} is neither a file nor a folder",
            "give the checkpoint as its authors published it, or a folder with it: these models are on no hub",
        )
    found = sorted(file for file in path.iterdir() if file.is_file() and file.suffix in SUFFIXES)
    if len(found) != 1:
        names = ", ".join(file.name for file in found[:5])
        raise StorageError(
            f"{path} holds {len(found)} checkpoints" + (f": {names}" if names else ""),
            "give the file itself" if found else f"a checkpoint is a file called *{', *'.join(SUFFIXES)}",
        )
    return found[0]


def read_checkpoint(source: str | Path | Mapping[str, Any]) -> Checkpoint:
    """Read a checkpoint file, the only one of a folder, or take weights that are in memory already.

    Only tensors and plain values are read from a file of PyTorch (``weights_only=True``); a file that
    wants code to be run is refused.

    Raises:
        UsageError: there is no such file.
        StorageError: it is damaged, holds code, or no weights.
    """
    if isinstance(source, Mapping):
        return Checkpoint(_weights(source, "the weights given"), "weights in memory")
    file = find_checkpoint(source)
    if file.suffix == ".safetensors":
        state: Mapping[str, Any] = load_tensors(file, _AGAIN)
    else:
        state = _unpickled(file)
    return Checkpoint(_weights(state, str(file)), file.name, file.parent)


def _unpickled(file: Path) -> Mapping[str, Any]:
    try:
        # Mapped, so that an optimizer's moments or momentum weights that are not wanted stay on disk.
        mapped = zipfile.is_zipfile(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old pickles: what cannot be read is an error below
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        first = str(error).strip().splitlines()[0]
        raise StorageError(
            f"{file} holds more than tensors (pickled code), or is damaged, and is refused: {first}",
            f"if you trust its source, write its weights alone once, in an environment apart: "
            f'torch.save(torch.load("{file.name}", map_location="cpu", weights_only=False)["model"], '
            f'"weights.pth")',
        ) from error
    except (OSError, RuntimeError, ValueError, EOFError, KeyError) as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
        raise StorageError(
            f"{file} is not a checkpoint of PyTorch, or is damaged: {reason}", _AGAIN
        ) from error
    if not isinstance(content, Mapping):
        raise StorageError(
            f"{file} holds a {type(content).__name__}, not weights by name", "give the model's checkpoint"
        )
    return content


def _weights(content: Mapping[str, Any], source: str) -> dict[str, Tensor]:
    """The named tensors of a file's content, without wrapping and without what parallel training adds."""
    for wrapper in _WRAPPERS:
        if isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
            break
    strange = [str(name) for name, value in content.items() if not isinstance(value, Tensor)]
    if strange or not content:
        what = f"{strange[0]!r}, which is no tensor" if strange else "nothing"
        raise StorageError(
            f"{source} holds {what}: it is no list of weights",
            f"weights are named tensors, by themselves or under {' or '.join(map(repr, _WRAPPERS[:2]))}",
        )
    names = [str(name) for name in content]
    parallel = all(name.startswith("module.") for name in names)
    return {name.removeprefix("module.") if parallel else name: content[name] for name in names}
