"""Tensors in files and on devices, with errors that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import file_errors, open_regular


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write named tensors."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, path)
    except SafetensorError as error:
        # The library wraps the system's error in its own; every failed write of ours is a full disk
        # or a quota as far as the person is concerned, and the text says what the system said.
        raise OSError(errno.ENOSPC, str(error)) from error


def load_tensors(path: Path, fix: str) -> dict[str, Tensor]:
    """Read named tensors to the CPU."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with file_errors(path, fix=fix):
            open_regular(path).close()  # the library would wait for a pipe
            return load_file(str(path))
    except SafetensorError as error:
        raise StorageError(f"{path} is not a safetensors file: {error}", fix) from None


def pick_device(device: str | None) -> torch.device:
    """The device called ``device``, or the GPU where there is one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"device {device!r} cannot be used: {reason}", "try cpu or cuda") from None
    return chosen
