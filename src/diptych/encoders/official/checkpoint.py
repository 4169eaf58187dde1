"""A published checkpoint as named tensors: one file, or a folder with one, read without running code of it."""

from __future__ import annotations

import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import read_json
from diptych.encoders.tensors import load_tensors

SUFFIXES = (".safetensors", ".th", ".pth", ".pt", ".bin")
"""What checkpoint files are called."""

_WRAPPERS = ("model", "state_dict", "model_state_dict")
"""Under which names a training run's file holds the weights."""

_AGAIN = "download it again, and compare its size with the published one"

_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
"""What a file asks for, in PyTorch's message."""

_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, RuntimeError, ValueError, EOFError, LookupError, TypeError, AttributeError),
    *(AssertionError, ArithmeticError, MemoryError, struct.error, zipfile.BadZipFile),
)
"""What PyTorch raises of bytes that are no checkpoint."""


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
        """The ``config.json`` beside the file; empty where there is none."""
        file = self.folder / "config.json" if self.folder is not None else None
        if file is None or not file.is_file():
            return {}
        content = read_json(file)
        if not isinstance(content, dict):
            raise StorageError(f"{file} is not a JSON object", "make it again, or take it away")
        return content


def find_checkpoint(source: str | Path) -> Path:
    """The checkpoint file that ``source`` is, or the only one in the folder that it is."""
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
        mapped = _is_archive(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old pickles: what cannot be read is an error below
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        wants = _GLOBAL.search(str(error))
        if wants is None:
            raise StorageError(
                f"{file} is refused: it holds what PyTorch does not read without running code, or is damaged",
                _AGAIN,
            ) from error
        raise StorageError(
            f"{file} holds more than tensors and plain values, and is refused: it asks for {wants[1]}, and "
            "such files can run code",
            f"if you trust its source, write its weights alone once, in an environment apart: "
            f'torch.save(torch.load("{file.name}", map_location="cpu", weights_only=False)["model"], '
            f'"weights.pth")',
        ) from error
    except _DAMAGE as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0].partition(". ")[0]
        reason = f"{type(error).__name__}: {first}"
        raise StorageError(
            f"{file} is not a checkpoint of PyTorch, or is damaged: {reason}", _AGAIN
        ) from error
    if not isinstance(content, Mapping):
        raise StorageError(
            f"{file} holds a {type(content).__name__}, not weights by name", "give the model's checkpoint"
        )
    return content


def _is_archive(file: Path) -> bool:
    """Whether ``file`` is an archive, as PyTorch writes since 1.6; else it is a pickle, or nothing of PyTorch's."""
    with file.open("rb") as opened:
        begin = opened.read(16)
    if not begin.startswith((b"PK", b"\x80")):
        raise StorageError(f"{file} is not a checkpoint of PyTorch: it begins with {begin!r}", _AGAIN)
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        packed = [entry.filename for entry in archive.infolist() if entry.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise StorageError(
            f"{file} holds packed entries ({packed[0]}), which PyTorch does not write",
            "it was packed again: give the checkpoint as it was published",
        )
    return True


def _weights(content: Mapping[str, Any], source: str) -> dict[str, Tensor]:
    """The named tensors of a file's content, without wrapping and without what parallel training adds."""
    for wrapper in _WRAPPERS:
        if isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
            break
    what = "nothing" if not content else None
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            what = f"{name!r}, which is no {'tensor' if isinstance(name, str) else 'name'}"
        elif _is_short(value):
            what = f"{name!r} of shape {tuple(value.shape)} with fewer numbers than that"
        if what:
            break
    if what:
        raise StorageError(
            f"{source} holds {what}: it is no list of weights",
            f"weights are named tensors, by themselves or under {' or '.join(map(repr, _WRAPPERS[:2]))}",
        )
    parallel = all(name.startswith("module.") for name in content)
    return {name.removeprefix("module.") if parallel else name: value for name, value in content.items()}


def _is_short(value: Tensor) -> bool:
    """Whether a tensor repeats few numbers: weights never do, and copied they would be of any size."""
    if value.is_meta or value.layout != torch.strided:
        return False
    return value.numel() * value.element_size() > value.untyped_storage().nbytes()
