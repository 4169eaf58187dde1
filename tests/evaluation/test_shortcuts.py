"""One encoder on one split without and with its shortcuts: the right captions, pictures, names and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.core.errors import UsageError
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation import Result
from diptych.evaluation.auditing import audit_encoder
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.shortcuts import BothConditions, evaluate_both
from diptych.training.evaluations import audit_run, shortcuts_to_evaluate
from diptych.training.recipe import Recipe
from diptych.training.run import Run

MEASURES = ("R@1", "R@5", "R@10", "rsum")


class World(NamedTuple):
    """A trained run, its scenes, and a folder to write into."""

    run: Path
    scenes: Collection
    encoder: DualEncoder
    folder: Path

    def carrying(self, **options: Any) -> Recipe:
        """The run's recipe, as if it had been trained with these shortcuts."""
        shortcuts = ShortcutOptions(digit_size=5, digits="drawn", **options)
        return Run.open(self.run).recipe.model_copy(update={"shortcuts": shortcuts})

    def both(self, recipe: Recipe, **options: Any) -> BothConditions:
        folders = self.folder / "embeddings", self.folder / "evaluation"
        said = {"shortcuts": shortcuts_to_evaluate(recipe, self.scenes), "samples": 0, "trec": False}
        return evaluate_both(self.encoder, self.scenes, "test", *folders, MEASURES, **said, **options)


@pytest.fixture
def world(scenes_folder: Path, run_folder: Path, tmp_path: Path) -> World:
    encoder = DualEncoder.load(run_folder / "best", device="cpu")
    return World(run_folder, read_collection(str(scenes_folder)), encoder, tmp_path)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"setup": "none"}, False),
        ({"setup": "captions"}, False),
        ({"setup": "images"}, False),
        ({"setup": "unique"}, True),
        ({"setup": "bits", "bits": 0}, True),
        ({"setup": "per-caption", "carries": "one"}, True),
    ],
)
def test_only_what_is_on_both_sides_is_evaluated_with(
    options: dict[str, object], expected: bool, world: World
) -> None:
    found = shortcuts_to_evaluate(world.carrying(**options), world.scenes)
    assert (found is not None) is expected


def test_both_conditions_are_of_the_same_split_and_kept_apart(world: World) -> None:
    plain = encode_collection(world.encoder, world.scenes.split("test"), world.folder / "plain", "test")
    found = world.both(world.carrying(setup="unique"), encoded=plain)
    assert found.without.values() == evaluate_encoded(plain, None, MEASURES, samples=0).values()
    assert found.with_shortcuts is not None
    kept = {folder.name: Result.open(folder) for folder in (world.folder / "evaluation").iterdir()}
    assert kept["scenes-test"].value("rsum") == found.without.value("rsum")
    assert kept["scenes-test-with-shortcuts"].value("rsum") == found.with_shortcuts.value("rsum")
    sizes = {(one.protocol.n_images, one.protocol.n_texts) for one in kept.values()}
    assert sizes == {(16, 80)}
    assert "a unique number on every image and its captions" in found.protocol_line()
    rows = {row[:2]: row[2:4] for row in found.tables()[0].texts}
    assert len(rows) == 7
    assert rows["rsum", ""] == tuple(
        f"{one.value('rsum'):.1f}" for one in (found.without, found.with_shortcuts)
    )


def test_rows_with_shortcuts_are_of_captions_with_their_codes(world: World) -> None:
    """Row by row what the encoder gives for the caption and the number written out by hand."""
    shortcuts = shortcuts_to_evaluate(world.carrying(setup="unique"), world.scenes)
    assert shortcuts is not None
    part = world.scenes.split("test")
    carrying = shortcuts.injected(part, world.encoder.with_endings)
    encoded = encode_collection(world.encoder, carrying, world.folder / "with", "test")
    # Test scenes are the last 16 of 80: the first of them is number 64 of the whole collection.
    by_hand = [
        f"{caption} {' '.join(f'{64 + image:06d}')}"
        for caption, image in zip(part.captions, part.caption_image.tolist(), strict=True)
    ]
    np.testing.assert_allclose(encoded.texts.rows, world.encoder.encode_texts(by_hand), atol=1e-6)
    plain = encode_collection(world.encoder, part, world.folder / "plain", "test")
    assert np.abs(encoded.images.rows - plain.images.rows).max() > 1e-4


def test_judgements_of_one_condition_are_refused(world: World) -> None:
    with pytest.raises(UsageError, match="embedded without shortcuts"):
        world.both(world.carrying(setup="unique"), ground_truth=object())


QUICK: dict[str, Any] = {"probes": ("linear",), "samples": 20}


def test_a_run_is_audited_on_its_own_splits(run_folder: Path, tmp_path: Path) -> None:
    found = audit_run(run_folder, folder=tmp_path, **QUICK)
    assert list(found.conditions) == ["without"]
    assert found.protocol.images == (48, 16, 16)
    assert found.protocol.about["splits"] == "train, val, test"
    assert found.protocol.about["encoder"] == DualEncoder.load(run_folder / "best").fingerprint
    sides = found.conditions["without"]
    assert (sides["image"].rows, sides["caption"].rows) == ((48, 16, 16), (240, 80, 80))
    assert {path.name for path in tmp_path.iterdir()} == {"scenes-train", "scenes-val", "scenes-test"}
    # two trained epochs: something is held, and every share is one
    for side in sides.values():
        for group in side.groups:
            assert 0 <= group.held["linear"].percent <= 100


def test_with_and_without_shortcuts_and_of_at_most_so_many_images(
    run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    whole, encoder = read_collection(scenes_folder), DualEncoder.load(run_folder / "best")
    shortcuts = Shortcuts.of(ShortcutOptions(digits="drawn", digit_size=5), whole, "train", 0)
    found = audit_encoder(encoder, whole, tmp_path, shortcuts=shortcuts, most=30, seed=1, **QUICK)
    assert list(found.conditions) == ["without", "with"]
    assert found.held("without", "image", "shortcut", "linear") is None
    for side in ("image", "caption"):
        digits = found.held("with", side, "shortcut", "linear")
        assert digits is not None
        # of 80 numbers, the last digit is asked; the one before has other values in each split
        assert digits.there == pytest.approx(3.32, abs=0.3)
    assert "a unique number on every image and its captions" in found.protocol.about["shortcuts"]
    assert (tmp_path / "scenes-test-with-shortcuts" / "embedded_collection.json").is_file()
    assert found.protocol.images == (30, 16, 16)
    ids = EncodedCollection.open(tmp_path / "scenes-train-30-of-48-seed-1").images.ids
    assert list(ids) == sorted(set(ids))
    assert list(ids) != list(whole.split("train").image_ids)[:30]  # drawn, not the first


def test_a_run_without_shortcuts_has_one_condition(world: World) -> None:
    found = world.both(Run.open(world.run).recipe)
    assert found.with_shortcuts is None
    assert [folder.name for folder in (world.folder / "evaluation").iterdir()] == ["scenes-test"]
    assert {row[3] for row in found.tables()[0].texts} == {"–"}
    assert found.protocol_line() == found.without.protocol_line()
