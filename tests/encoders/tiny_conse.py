"""A folder with a conse.json: a tiny random timm network, five names, and a tiny sentence encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from .targets.tiny_sentence import sentence_folder

NAMES = ["a red dog", "two dogs", "a blue ball", "the green cube", "a cat on the right"]


def network_file(file: Path, classes: int = 5, seed: int = 0) -> Path:
    """Random weights whose outputs differ from picture to picture."""
    import timm
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    network = timm.create_model("test_resnet", num_classes=classes)
    with torch.no_grad():
        network.get_classifier().weight.normal_(0.0, 2.0)
    save_file(network.state_dict(), file)
    return file


def conse_folder(folder: Path, **changes: Any) -> Path:
    """The folder; ``changes`` are of its conse.json."""
    folder.mkdir(parents=True)
    network_file(folder / "network.safetensors")
    (folder / "names.txt").write_text("\n".join(NAMES), encoding="utf-8")
    sentence_folder(folder / "sentence")
    content = {
        "network": "test_resnet",
        "network_options": {"num_classes": 5},
        "weights": "network.safetensors",
        "preprocessing": {"size": 32, "resize": 36},
        "names": "names.txt",
        "sentences": "sentence",
        "top": 3,
    }
    content = {key: value for key, value in (content | changes).items() if value is not None}
    (folder / "conse.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
