"""The environment that a number can depend on."""

import os
import platform
from contextlib import suppress
from importlib import metadata
from typing import Any

from diptych.core.version import __version__

_LIBRARIES = [
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "pillow",
    "lightning-fabric",
    "safetensors",
    "transformers",
]


def environment() -> dict[str, Any]:
    """Return versions of what is installed, and devices; nothing that names a user or a machine."""
    libraries: dict[str, str] = {}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            libraries[name] = metadata.version(name)
    threads, accelerator = None, None
    with suppress(ModuleNotFoundError):
        import torch

        threads = torch.get_num_threads()
        accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "diptych": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": libraries,
        "processors": os.cpu_count(),
        "threads": threads,
        "accelerator": accelerator,
    }
