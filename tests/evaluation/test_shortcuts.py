"""One encoder on one split without and with its shortcuts: the right captions, images, names and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.analysis.shortcuts.codes import ShortcutOptions
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import UsageError
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.shortcuts import BothConditions, audit_encoder, evaluate_both
from diptych.training.evaluations import shortcuts_to_evaluate
from diptych.training.run import Run

MEASURES = ("R@1", "R@5", "R@10", "rsum")


class World:
    """A trained run, its scenes, and a folder to write into."""

    def __init__(self, run: Path, scenes: Path, folder: Path) -> None:
        self.recipe, self.folder = Run.open(run).recipe, folder
        self.scenes = read_collection(str(scenes))
        self.encoder = DualEncoder.load(run / "best", device="cpu")

    def shortcuts(self, **options: Any) -> Shortcuts | None:
        """What the run is evaluated with, had it been trained with these shortcuts."""
        chosen = ShortcutOptions(digit_size=5, digits="drawn", **options)
        return shortcuts_to_evaluate(self.recipe.model_copy(update={"shortcuts": chosen}), self.scenes)

    def encode(self, part: Collection, name: str) -> EncodedCollection:
        return encode_collection(self.encoder, part, self.folder / name, "test")

    def both(self, shortcuts: Shortcuts | None, **options: Any) -> BothConditions:
        folders = self.folder / "embeddings", self.folder / "evaluation"
        how = {"shortcuts": shortcuts, "samples": 0, "trec": False, **options}
        return evaluate_both(self.encoder, self.scenes, "test", *folders, MEASURES, **how)


@pytest.fixture
def world(scenes_folder: Path, run_folder: Path, tmp_path: Path) -> World:
    return World(run_folder, scenes_folder, tmp_path)


def test_only_what_is_on_both_sides_is_evaluated_with(world: World) -> None:
    for setup in ("none", "captions", "images"):
        assert world.shortcuts(setup=setup) is None
    for options in (
        {"setup": "unique"},
        {"setup": "bits", "bits": 0},
        {"setup": "per-caption", "carries": "one"},
    ):
        assert world.shortcuts(**options) is not None
    with pytest.raises(UsageError, match="embedded without shortcuts"):
        world.both(None, ground_truth=object())
    found = world.both(None)
    assert found.with_shortcuts is None
    assert [folder.name for folder in (world.folder / "evaluation").iterdir()] == ["scenes-test"]
    assert {row[3] for row in found.tables()[0].texts} == {"–"}
    assert found.lines()[0] == found.without.protocol_line()


def test_both_conditions_are_of_the_same_split_and_kept_apart(world: World) -> None:
    plain, shortcuts = world.encode(world.scenes.split("test"), "plain"), world.shortcuts(setup="unique")
    found = world.both(shortcuts)
    assert found.without.values() == evaluate_encoded(plain, None, MEASURES, samples=0).values()
    assert found.with_shortcuts is not None
    kept = {folder.name: Result.open(folder) for folder in (world.folder / "evaluation").iterdir()}
    assert kept["scenes-test"].value("rsum") == found.without.value("rsum")
    assert kept["scenes-test-with-shortcuts"].value("rsum") == found.with_shortcuts.value("rsum")
    assert {(one.protocol.n_images, one.protocol.n_texts) for one in kept.values()} == {(16, 80)}
    assert "a unique number on every image and its captions" in found.lines()[0]
    rows = {row[:2]: row[2:4] for row in found.tables()[0].texts}
    assert len(rows) == 7
    both = (found.without, found.with_shortcuts)
    assert rows["rsum", ""] == tuple(f"{one.value('rsum'):.1f}" for one in both)
    # Row by row what the encoder gives for the caption and the number written out by hand: test scenes are the
    # last 16 of 80, so the first of them is number 64 of the whole collection.
    assert shortcuts is not None
    part = world.scenes.split("test")
    encoded = world.encode(shortcuts.injected(part, world.encoder.with_endings), "with")
    owners = zip(part.captions, part.caption_image.tolist(), strict=True)
    by_hand = [f"{caption} {' '.join(f'{64 + image:06d}')}" for caption, image in owners]
    np.testing.assert_allclose(encoded.texts.rows, world.encoder.encode_texts(by_hand), atol=1e-6)
    assert np.abs(encoded.images.rows - plain.images.rows).max() > 1e-4


def test_an_audit_gets_both_conditions_of_at_most_so_many_images(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is probed; the probes themselves are tested on rows in which the answers are planted."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "diptych.evaluation.shortcuts.audit", lambda *given, **how: seen.update(how, given=given)
    )
    shortcuts = Shortcuts.of(ShortcutOptions(digits="drawn", digit_size=5), world.scenes, "train", 0)
    audit_encoder(world.encoder, world.scenes, world.folder, shortcuts=shortcuts, most=30, seed=1, samples=20)
    conditions, probes = seen["given"]
    assert (list(conditions), probes, seen["seed"], seen["most"]) == (
        ["without", "with"],
        ("linear", "mlp"),
        1,
        30,
    )
    for name, parts in conditions.items():
        assert [(len(one.images), len(one.texts)) for one in parts] == [(30, 150), (16, 80), (16, 80)]
        assert (parts[2].collection.records[0].get("shortcuts") == ("000064",)) == (name == "with")
    assert seen["about"]["splits"] == "train, val, test"
    assert seen["about"]["encoder"] == world.encoder.fingerprint
    assert "a unique number on every image and its captions" in seen["about"]["shortcuts"]
    assert (world.folder / "scenes-test-with-shortcuts" / "embedded_collection.json").is_file()
    ids = EncodedCollection.open(world.folder / "scenes-train-30-of-48-seed-1").images.ids
    assert list(ids) == sorted(set(ids))
    assert list(ids) != list(world.scenes.split("train").image_ids)[:30]  # drawn, not the first
