"""A collection with perturbed pictures: what is read, what it is called, what is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.analysis.perturbations import PERTURBATIONS, PicturePerturbation, Unchanged, choose_perturbations
from diptych.analysis.perturbations.pictures import (
    SAME_PICTURE,
    PerturbedSource,
    perturbed_pictures,
    picture_changes,
)
from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.core.draws import Draws
from diptych.core.errors import ImageError, UsageError
from diptych.core.fingerprint import fingerprint_bytes
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead
from diptych.data.overlay import OverlaidPicture, OverlaySource
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.encode import encode_collection
from diptych.encoders.image_tower import ImageTowerConfig
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel

NAMES = ["a", "b", "c", "d"]


class Memory:
    """Pictures in memory, and how often each was read."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        arrays = [random.integers(0, 256, (40, 60, 3), dtype=np.uint8) for _ in range(3)]
        self.pictures = [Image.new("RGB", (60, 40)), *map(Image.fromarray, arrays)]
        self.reads = [0] * 4

    def read(self, row: int) -> Image.Image:
        self.reads[row] += 1
        return self.pictures[row]

    def content(self, row: int) -> str:
        return fingerprint_bytes(self.pictures[row].tobytes())


def collection() -> Collection:
    return Collection(
        name="four",
        image_ids=NAMES,
        captions=[f"caption {name} {number}" for name in NAMES for number in range(2)],
        caption_ids=[f"{name}{number}" for name in NAMES for number in range(2)],
        caption_image=np.repeat(np.arange(4), 2),
        splits=["train", "test", "test", "train"],
        source=Memory(),
        source_rows=np.arange(4),
        notes=("made by hand",),
    )


def kind(name: str) -> PicturePerturbation:
    found = PERTURBATIONS.get(name)
    assert isinstance(found, PicturePerturbation)
    return found


def contents(part: Collection) -> list[str]:
    return [part.source.content(int(row)) for row in part.source_rows]


def test_ids_and_captions_stay_and_a_note_says_what_was_done() -> None:
    plain = collection()
    view = perturbed_pictures(plain, kind("blur"), seed=3, options={"severity": 5})
    for field in ("name", "image_ids", "captions", "caption_ids", "splits"):
        assert getattr(view, field) == getattr(plain, field)
    assert view.text_fingerprint == plain.text_fingerprint
    assert view.notes == ("made by hand", "pictures perturbed: blur (severity 5, sigma 0.0268), seed 3")
    assert isinstance(plain.source, Memory)
    assert plain.source.reads == [0, 0, 0, 0]


@pytest.mark.parametrize("name", [one.name for one in choose_perturbations(["pictures"])])
def test_a_picture_is_a_function_of_seed_id_and_options(name: str) -> None:
    plain, perturbation = collection(), kind(name)
    view = perturbed_pictures(plain, perturbation, seed=0)
    for row, id in enumerate(NAMES):
        expected = perturbation.apply(plain.image(row), Draws(0, name, id), perturbation.options())
        assert view.image(row).tobytes() == expected.tobytes()
    # In a split, in another order, in threads: the same picture for the same id.
    part = perturbed_pictures(plain.split("test"), perturbation, seed=0)
    assert part.image(1).tobytes() == view.image(2).tobytes() == view.split("test").image(1).tobytes()
    assert view.subset([3, 1]).image(0).tobytes() == view.image(3).tobytes()
    ahead = list(read_ahead(view.image, [3, 2, 1, 0], workers=3))
    assert [picture.tobytes() for picture in ahead] == [view.image(row).tobytes() for row in (3, 2, 1, 0)]
    if name not in ("blur", "jpeg"):
        others = [perturbed_pictures(plain, perturbation, seed=seed).image(1).tobytes() for seed in range(9)]
        assert len(set(others)) > 1


def test_its_content_says_all_that_it_depends_on() -> None:
    plain = collection()

    def of(name: str = "crop", seed: int = 0, **options: object) -> list[str]:
        return contents(perturbed_pictures(plain, kind(name), seed=seed, options=options))

    views = [of(), of(seed=1), of(severity=4), of(keep=0.123), of("blur"), contents(plain)]
    assert of() == of(severity=3) == of(keep=0.5)
    assert len({content for view in views for content in view}) == 4 * len(views)
    changed = collection()
    assert isinstance(changed.source, Memory)
    changed.source.pictures[2] = Image.new("RGB", (9, 9))
    other = contents(perturbed_pictures(changed, kind("crop"), seed=0))
    assert [one != two for one, two in zip(of(), other, strict=True)] == [False, False, True, False]
    # The same picture under another id is drawn anew.
    renamed = replace(plain, image_ids=["a", "b", "c", "e"])
    other = contents(perturbed_pictures(renamed, kind("crop"), seed=0))
    assert [one != two for one, two in zip(of(), other, strict=True)] == [False, False, False, True]


def test_what_stays_the_same_is_counted_without_reading_it_again() -> None:
    view = perturbed_pictures(collection(), kind("brightness"), seed=0)
    memory = view.source._pictures  # type: ignore[attr-defined]
    list(view.images())
    changes = picture_changes(view)
    assert memory.reads == [1, 1, 1, 1]
    assert changes.changed.tolist() == [False, True, True, True]
    assert changes.reasons == {SAME_PICTURE: 1}
    assert changes.line() == "brightness: 3 of 4 pictures changed (the result is the picture itself 1)"
    assert json.loads(json.dumps(changes.to_dict())) == {
        "name": "brightness",
        "seed": 0,
        "options": {"severity": 3, "factor": 2.0},
        "pictures": 4,
        "changed": 3,
        "unchanged": {SAME_PICTURE: 1},
    }
    # Of a part that nobody has read, what is missing is read.
    fresh = perturbed_pictures(collection(), kind("brightness"), seed=0)
    fresh.image(3)
    part = picture_changes(fresh.subset([3, 0]))
    assert fresh.source._pictures.reads == [1, 0, 0, 1]  # type: ignore[attr-defined]
    assert part.changed.tolist() == [True, False]
    assert picture_changes(fresh.subset([1])).line() == "brightness: 1 of 1 pictures changed"


def test_a_perturbation_may_say_why_it_leaves_a_picture() -> None:
    def of_wide(picture: Image.Image, draws: Draws, options: object) -> Image.Image:
        if picture.width > 10:
            raise Unchanged("too wide")
        return picture.rotate(90)

    turned = PicturePerturbation(
        name="turn", description="", group="pictures", source="", keeps_meaning=True, apply=of_wide
    )
    plain = collection()
    view = perturbed_pictures(plain, turned, seed=0)
    assert view.image(1).tobytes() == plain.image(1).tobytes()
    assert picture_changes(view).reasons == {"too wide": 4}
    assert not picture_changes(view).changed.any()


def test_a_cropped_picture_is_changed_even_where_its_bytes_are_few() -> None:
    plain = collection()
    view = perturbed_pictures(plain, kind("crop"), seed=0)
    assert picture_changes(view).n_changed == 4
    assert view.image(0).size == (42, 28)
    assert (
        picture_changes(perturbed_pictures(plain, kind("crop"), seed=0, options={"keep": 1})).n_changed == 0
    )


def test_overlays_stay_over_the_changed_pictures() -> None:
    plain = collection()
    injected = Shortcuts.of(ShortcutOptions(setup="unique", digits="drawn", digit_size=6), plain, "train", 0)
    shortcuts = injected.injected(plain)
    view = perturbed_pictures(shortcuts, kind("blur"), seed=0).subset([2, 1])
    assert isinstance(view.source, OverlaySource)
    item, before = view.item(0), shortcuts.item(2)
    assert isinstance(item, OverlaidPicture)
    assert isinstance(before, OverlaidPicture)
    assert item.overlay.key == before.overlay.key
    bare = perturbed_pictures(plain, kind("blur"), seed=0)
    assert item.picture.tobytes() == bare.image(2).tobytes()
    assert not isinstance(bare.source, OverlaySource)
    assert contents(view) != contents(bare.subset([2, 1]))


def test_perturbations_can_follow_each_other() -> None:
    plain = collection()
    once = perturbed_pictures(plain, kind("crop"), seed=0)
    twice = perturbed_pictures(once.subset([3, 2]), kind("jpeg"), seed=1)
    jpeg = kind("jpeg")
    expected = jpeg.apply(once.image(3), Draws(1, "jpeg", "d"), jpeg.options())
    assert twice.image(0).tobytes() == expected.tobytes()
    assert [note.split(" (")[0] for note in twice.notes[1:]] == [
        "pictures perturbed: crop",
        "pictures perturbed: jpeg",
    ]
    assert picture_changes(twice).name == "jpeg"


def test_what_cannot_be_is_refused() -> None:
    plain = collection()
    regions = replace(plain, source=RegionSource([np.zeros((4, 2, 3), dtype=np.float32)], "boxes"))
    with pytest.raises(UsageError, match="blur changes pictures, four holds region features"):
        perturbed_pictures(regions, kind("blur"), seed=0)
    with pytest.raises(UsageError, match="option 'severity'"):
        perturbed_pictures(plain, kind("blur"), seed=0, options={"severity": 7})
    with pytest.raises(UsageError, match="pictures of four are not perturbed"):
        picture_changes(plain)


def test_a_picture_that_cannot_be_read_is_named(scenes_folder: Path) -> None:
    from diptych.data.images import FolderSource

    missing = replace(collection(), source=FolderSource(scenes_folder, [f"{name}.png" for name in NAMES]))
    view = perturbed_pictures(missing, kind("blur"), seed=0)
    with pytest.raises(ImageError, match=r"a\.png does not exist"):
        view.image(0)
    with pytest.raises(ImageError, match=r"a\.png does not exist"):
        picture_changes(view)


def test_an_encoder_sees_the_changed_pictures_and_caches_know_it(tmp_path: Path) -> None:
    plain = collection()
    vocabulary = Vocabulary.build(plain.captions, 1)
    config = ModelConfig(
        width=8,
        image=ImageTowerConfig(backbone="test_resnet", preprocessing=Preprocessing(size=32, resize=32)),
    )
    encoder = TwoTowerEncoder(TwoTowerModel(config, vocabulary), vocabulary)
    view = perturbed_pictures(plain, kind("occlusion"), seed=0)
    clean = encode_collection(encoder, plain, tmp_path / "clean")
    found = encode_collection(encoder, view, tmp_path / "view")
    assert isinstance(view.source, PerturbedSource)
    assert view.source._pictures.reads == [2, 2, 2, 2]  # type: ignore[attr-defined]
    assert picture_changes(view).n_changed == 3
    assert view.source._pictures.reads == [2, 2, 2, 2]  # type: ignore[attr-defined]
    expected = encoder.encode_images([view.image(row) for row in range(4)])
    np.testing.assert_allclose(found.images.rows[:], expected, atol=1e-6)
    assert np.abs(np.asarray(clean.images.rows[1:]) - found.images.rows[1:]).max() > 1e-4
    # The same folder is not taken for another seed's.
    other = perturbed_pictures(plain, kind("occlusion"), seed=1)
    again = encode_collection(encoder, other, tmp_path / "view")
    assert not np.array_equal(again.images.rows[1:], found.images.rows[1:])
