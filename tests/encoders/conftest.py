"""Tiny random encoders of every family, each made once; tests that change a folder copy it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.encoders.adapted import LinearlyAdapted, LinearMap, LinearMaps
from diptych.encoders.dual_encoder import DualEncoder

from .official.tiny_official import SWIN, TEXT, VIT, albef_state, xvlm_state
from .tiny_conse import conse_folder
from .tiny_pretrained import bert_tokenizer, open_clip_folder, transformers_folder


def _official(kind: str, folder: Path) -> Path:
    """A checkpoint, its configuration and its tokenizer in one folder."""
    folder.mkdir()
    recipe = {"image_res": 48, "embed_dim": 12, "k_test": 256, "vision_config": "a/path.json"}
    content = {"config": recipe, "vit": VIT} if kind == "albef" else {**recipe, "swin": SWIN}
    (folder / "config.json").write_text(json.dumps({**content, "bert_config": TEXT}))
    bert_tokenizer().save_pretrained(folder)
    torch.save({"model": albef_state() if kind == "albef" else xvlm_state()}, folder / "tuned.pth")
    return folder


def _sentence_transformers(folder: Path) -> Path:
    """The layout of clip-ViT-B-32 and its like on the hub."""
    transformers_folder("clip", folder / "0_CLIPModel")
    kind = "sentence_transformers.models.CLIPModel"
    modules = [{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def _adapted(base: Path, folder: Path) -> Path:
    encoder, random = DualEncoder.load(base, device="cpu"), np.random.default_rng(0)
    sides = (LinearMap.of(random.normal(size=(24, 5)), random.normal(size=24)) for _ in range(2))
    return LinearlyAdapted(encoder, LinearMaps(*sides), {"pairs": 4}).save(folder)


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory, run_folder: Path) -> Callable[[str], Path]:
    """The folder of a kind of encoder, written when first asked for."""
    root = tmp_path_factory.mktemp("encoders")
    made: dict[str, Path] = {"two_tower": run_folder / "best"}

    def source(kind: str) -> Path:
        if kind not in made:
            folder = root / kind
            if kind in ("albef", "xvlm"):
                made[kind] = _official(kind, folder)
            elif kind == "adapted":
                made[kind] = _adapted(source("conse"), folder)
            else:
                write = {"open_clip": open_clip_folder, "st": _sentence_transformers, "conse": conse_folder}
                made[kind] = write[kind](folder) if kind in write else transformers_folder(kind, folder)
        return made[kind]

    return source


@pytest.fixture
def copied(sources: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the folder of a kind, to be changed."""
    return lambda kind: Path(shutil.copytree(sources(kind), tmp_path / "copied"))


@pytest.fixture(scope="session")
def encoders(sources: Callable[[str], Path]) -> Callable[[str], DualEncoder]:
    """The encoder of a kind, loaded once; tests must leave it as it is."""
    loaded: dict[str, DualEncoder] = {}

    def encoder(kind: str) -> DualEncoder:
        if kind not in loaded:
            prefix = f"{kind}:" if kind in ("albef", "xvlm") else ""
            loaded[kind] = DualEncoder.load(f"{prefix}{sources(kind)}", device="cpu")
        return loaded[kind]

    return encoder
