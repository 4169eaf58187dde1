"""Every tower of a published paper is loaded from its authors' file and computes what their code computed."""

from __future__ import annotations

import json
import pickle
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from refusals import refused
from torch import nn

from diptych.core.errors import DiptychError, MismatchError, StorageError, UsageError
from diptych.data.vocabulary import SPECIAL, Vocabulary
from diptych.encoders.caption_tower import BagTower, CaptionTower, TargetTower, WordTower
from diptych.encoders.image_tower import ImageTower, RegionTower
from diptych.encoders.official.checkpoint import FOLLOWING, LAYOUTS, Checkpoint, retrieval_weights
from diptych.encoders.official.encoder import AlbefEncoder, XvlmEncoder, blip_state_from_official
from diptych.encoders.official.inputs import Configuration
from diptych.encoders.official.model import MatchingConfig, MatchingModel, model_config_of
from diptych.encoders.tower import Tower
from diptych.encoders.two_stage import BlipEncoder
from diptych.encoders.two_tower import TwoTowerEncoder

from .official.test_encoder import BLIP_TEXT, BLIP_VISION, blip_state
from .official.tiny_official import SWIN, TEXT, VIT, albef_state, xvlm_state
from .tiny_pretrained import bert_tokenizer

GOLDEN = Path(__file__).parents[1] / "golden"
PUBLISHED = Path(__file__).parents[3] / "shared" / "checkpoint-layouts"
State = dict[str, torch.Tensor]


def golden(file: str, prefix: str = "") -> tuple[dict[str, Any], State]:
    """Return the stored values of one form, and its weights."""
    found = {name: torch.tensor(value) for name, value in np.load(GOLDEN / f"{file}.npz").items()}
    begin = f"{prefix}w."
    state = {name.removeprefix(begin): value for name, value in found.items() if name.startswith(begin)}
    return {name.removeprefix(prefix): value for name, value in found.items()}, state


def check_gradients(tower: Any, rows: torch.Tensor, values: dict[str, Any], names: dict[str, str]) -> None:
    (rows * values["cotangent"]).sum().backward()
    for stored, name in names.items():
        np.testing.assert_allclose(tower.get_parameter(name).grad, values[stored], atol=1e-9)


def check_vsepp_captions(tower: CaptionTower) -> None:
    values, _ = golden("gru_caption_encoder_vsepp")
    rows = tower(values["token_ids"], values["lengths"])
    np.testing.assert_allclose(rows.detach(), values["embedding"], atol=1e-9)
    names = {"grad_embed_weight": "embed.weight", "grad_weight_hh_l0": "rnn.weight_hh_l0"}
    check_gradients(tower, rows, values, names)


def check_ltd(form: str) -> Callable[[CaptionTower], None]:
    def check(tower: CaptionTower) -> None:
        values, _ = golden("ltd_bigru_caption_encoder", form)
        shared, _ = golden("ltd_bigru_caption_encoder")
        for mode in ("eval", "train"):
            rows = tower.train(mode == "train")(shared["token_ids"], shared["lengths"])
            np.testing.assert_allclose(rows.detach(), values[f"embedding_{mode}_mode"], atol=1e-9)

    return check


def check_vsrn(form: str) -> Callable[[RegionTower], None]:
    def check(tower: RegionTower) -> None:
        (values, state), shared = golden("vsrn_image_encoder", form), golden("vsrn_image_encoder")[0]
        for mode in ("eval", "train"):
            first, second = (RegionTower.load_published(state).train(mode == "train") for _ in range(2))
            rows, related = first(shared["regions"]), second.head.related(shared["regions"]).detach()
            np.testing.assert_allclose(rows.detach(), values[f"{mode}.embedding"], atol=1e-9)
            np.testing.assert_allclose(related, values[f"{mode}.gcn_regions"], atol=1e-9)
        names = {"fc": "head.fc.weight", "theta1": "head.Rs_GCN_1.theta.weight"}
        names = {f"train.grad_{name}_weight": weight for name, weight in names.items()}
        check_gradients(first, rows, values, names)
        assert torch.equal(tower.head.fc.weight, state["fc.weight"])

    return check


def network() -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model("test_resnet", num_classes=0).eval()  # type: ignore[no-any-return]


def vsepp_images() -> State:
    state = {f"cnn.module.{name}": value for name, value in network().state_dict().items()}
    weight = torch.randn(10, 96, generator=torch.Generator().manual_seed(1))
    state = {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}
    return state | {"fc.weight": weight, "fc.bias": torch.arange(10) / 10}


def normal(rows: torch.Tensor) -> torch.Tensor:
    return nn.functional.normalize(rows, dim=-1)


def check_vsepp_images(tower: ImageTower) -> None:
    pixels, state = torch.randn(3, 3, 64, 64), vsepp_images()
    with torch.no_grad():
        features = normal(network()(pixels))
        expected = normal(features @ state["fc.weight"].T + state["fc.bias"])
        torch.testing.assert_close(tower(pixels), expected)
    assert tower.config.preprocessing.interpolation == "bilinear"


FEATURES = {"fc.weight": torch.randn(8, 12), "fc.bias": torch.randn(8)}


def check_vsepp_features(tower: RegionTower) -> None:
    features = torch.randn(4, 1, 12)
    expected = normal(features[:, 0] @ FEATURES["fc.weight"].T + FEATURES["fc.bias"])
    torch.testing.assert_close(tower(features), expected)


def check_official(encoder: Any) -> None:
    """Numbers of all parts are compared in official/test_encoder.py."""
    assert encoder.encode_texts(["a dog"]).shape == (1, 12)


PARTS: dict[str, Any] = {"text": TEXT, "device": "cpu"}
CASES: dict[str, tuple[Any, Callable[[], State], dict[str, Any], Callable[[Any], None]]] = {
    "VSE++ captions": (
        *(CaptionTower, lambda: golden("gru_caption_encoder_vsepp")[1], {}),
        check_vsepp_captions,
    ),
    **{
        f"LTD {form}": (
            *(CaptionTower, lambda form=form: golden("ltd_bigru_caption_encoder", form)[1], {}),  # type: ignore[misc]
            check_ltd(form),
        )
        for form in ("infonce.", "triplet.")
    },
    **{
        f"VSRN {form}": (
            *(RegionTower, lambda form=form: golden("vsrn_image_encoder", form)[1], {}),  # type: ignore[misc]
            check_vsrn(form),
        )
        for form in ("coco_precomp.", "f30k_precomp.")
    },
    "VSE++ images": (ImageTower, vsepp_images, {"backbone": "test_resnet"}, check_vsepp_images),
    "VSE++ features": (RegionTower, lambda: FEATURES, {}, check_vsepp_features),
    "ALBEF": (AlbefEncoder, albef_state, {**PARTS, "vision": VIT}, check_official),
    "X-VLM": (XvlmEncoder, xvlm_state, {**PARTS, "vision": SWIN}, check_official),
    "BLIP": (BlipEncoder, blip_state, {"device": "cpu"}, check_official),
}


class Code:
    def __reduce__(self) -> Any:
        return print, ("this must not be printed",)


@pytest.mark.parametrize("name", CASES)
def test_a_published_tower(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its file, alone or beside the other encoder, is read without running code; half a file is refused."""
    kind, make, options, check = CASES[name]
    state, file = make(), tmp_path / "published.pth"
    official = not issubclass(kind, Tower)
    if official:
        bert_tokenizer().save_pretrained(tmp_path)
        (tmp_path / "config.json").write_text(json.dumps({"vision": BLIP_VISION, "bert_config": BLIP_TEXT}))
    else:
        part = 1 if kind is CaptionTower else 0
        pair: list[Any] = [{"other": torch.zeros(1)}, {"other": torch.zeros(1)}]
        pair[part] = state
        torch.save({"model": pair, "opt": Namespace(embed_size=8), "epoch": 3}, file)
        check(kind.load_published(file, **options))
    torch.save({"model": state, "epoch": 3}, file)
    check(kind.load_published(file, **options))
    for wrong in (dict(list(state.items())[1:]), state | {"surplus.weight": torch.ones(2, 2)}):
        torch.save(wrong, file)
        refused(DiptychError, ".", kind.load_published, file, **options)
    torch.save({"model": state, "more": Code()}, file)
    message = "more than tensors.*asks for print"
    error = refused(StorageError, message, kind.load_published, file, **options)
    assert 'torch.load("published.pth", map_location="cpu", weights_only=False)["model"]' in error.fix
    file.write_bytes(pickle.dumps(Code()))
    refused(StorageError, ".", kind.load_published, file, **options)
    assert "must not" not in capsys.readouterr().out
    text = " ".join(kind.load_published.__doc__.split())
    assert all(word in text for word in ("Layout: ", "Source: ", "weights_only=True")), text


def test_every_published_tower_is_in_the_contract() -> None:
    """A bag of words is a control of ours, and vectors of sentences have no encoder."""

    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    towers = {one for one in below(Tower) if one.__module__.startswith("diptych.")}
    without = {one for one in towers if not hasattr(one, "load_published")}
    assert without == {Tower, WordTower, BagTower, TargetTower}
    assert {kind for kind, *_ in CASES.values()} >= towers - without


def test_both_encoders_of_a_file(tmp_path: Path) -> None:
    _, captions = golden("gru_caption_encoder_vsepp")
    for images, options in (
        (vsepp_images(), {"backbone": "test_resnet"}),
        ({"fc.weight": torch.ones(10, 3)}, {}),
    ):
        torch.save({"model": [images | {"fc.bias": torch.ones(10)}, captions]}, tmp_path / "both.pth.tar")
        encoder = TwoTowerEncoder.load_published(tmp_path / "both.pth.tar", **options)
        assert (encoder.width, encoder.takes) == (10, "pictures" if options else "regions")
        item = np.zeros((80, 90, 3), np.uint8) if options else np.ones((1, 3), np.float32)
        assert np.isfinite(encoder.encode_images([item])).all()
        again = TwoTowerEncoder.open(encoder.save(tmp_path / encoder.takes), "cpu")
        assert again.fingerprint == encoder.fingerprint
        for one in (encoder, again):  # without its words no caption is taken for another
            refused(UsageError, "nothing says which 30 words the tower knows", one.encode_texts, ["a dog"])
        words = Vocabulary([*SPECIAL, *map(str, range(len(captions["embed.weight"]) - len(SPECIAL)))])
        load = partial(TwoTowerEncoder.load_published, tmp_path / "both.pth.tar", words)
        assert load(**options, max_tokens=7).describe()["text"]["limit"] == 7
        assert np.isfinite(load(**options).encode_texts(["a dog"])).all()
        refused(UsageError, "unknown key 'max_token'", load, **options, max_token=7)
    mixed = {"model": [{"fc.weight": torch.ones(9, 3), "fc.bias": torch.ones(9)}, captions]}
    message = "images have rows of width 9, captions of width 10"
    refused(MismatchError, message, TwoTowerEncoder.load_published, mixed)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published lists of names are not there")
@pytest.mark.parametrize(
    ("kind", "count", "numbers"),
    [("albef", 831, 209560835), ("xvlm", 631, 213959547), ("blip", 949, 223744259)],
)
def test_published_names(kind: str, count: int, numbers: int) -> None:
    """Every weight of the published checkpoints is used or knowingly left out, none of the model's is missing."""
    keys = json.loads((PUBLISHED / f"{kind}.json").read_text())["keys"]
    assert len(keys) == count
    state = {
        name: torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        for name, (shape, dtype) in keys.items()
    }
    if "temp" in state:
        state["temp"] = torch.tensor(0.07)
    if kind == "blip":
        sizes, found = blip_state_from_official(Checkpoint(state, kind), Configuration())
        assert len(found) == 472
        assert {sizes[part]["num_attention_heads"] for part in ("text_config", "vision_config")} == {12}
        assert sum(value.numel() for value in found.values()) + 1 == numbers
        return
    weights = retrieval_weights(Checkpoint(state, kind), LAYOUTS[kind], "fine-tuned")
    kept = weights.state
    assert all("_m." in name or "queue" in name for name in state.keys() - kept.keys())
    fields = model_config_of(weights, LAYOUTS[kind], Configuration(), None, "fine-tuned")
    config = MatchingConfig(**fields, text_limit=30)
    vision, text = config.vision, config.text
    assert (vision.image_size, config.width, config.trained_size) == (384, 256, 384)
    assert (text.heads, text.depth, text.fusion_layer, text.vocabulary) == (12, 12, 6, 30522)
    expected = {"albef": (12, 768), "xvlm": ((4, 8, 16, 32), 1024)}
    assert (vision.heads, text.image_width) == expected[kind]
    with torch.device("meta"):
        model = MatchingModel(config)
        found = model.weights_of(weights, LAYOUTS[kind])
    assert {name: value.shape for name, value in found.items()} == {
        name: value.shape for name, value in model.state_dict().items()
    }
    used = {model.official_name(name, LAYOUTS[kind]) for name in found}
    assert kept.keys() - used == {"temp", *(name for name in kept if FOLLOWING.match(name))}
    assert sum(value.numel() for value in found.values()) + 1 == numbers
