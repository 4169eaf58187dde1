"""Images perturbed: each kind on images made by hand, severities, and collections that change as they are read."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from diptych.analysis.perturbations import PERTURBATIONS, PicturePerturbation, Unchanged, choose_perturbations
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.perturbations.pictures import perturbed_pictures
from diptych.analysis.shortcuts.codes import ShortcutOptions
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint_bytes
from diptych.data.collection import Collection
from diptych.data.images import OverlaySource
from diptych.data.loading import read_ahead

PICTURES = [one for one in choose_perturbations(["pictures"]) if isinstance(one, PicturePerturbation)]
NAMES = ["a", "b", "c", "d"]


def noise(width, height, seed=0):
    random = np.random.default_rng(seed)
    return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))


def smooth(width=90, height=60):
    """Large patches and an edge, as photographs have them."""
    across, down = np.meshgrid(np.linspace(0, 6, width), np.linspace(0, 4, height))
    values = np.stack([np.sin(across) * 100 + 120, np.cos(down) * 90 + 110, (across > 3) * 150 + 40], axis=2)
    return Image.fromarray(values.astype(np.uint8))


def perturbed(name, picture, seed=0, **options):
    return PERTURBATIONS.get(name).apply(
        picture, Draws(seed, name, "id"), options_of(PERTURBATIONS.get(name), options)
    )


def test_pictures_of_every_shape_survive():
    for size in ((1, 1), (1, 1000), (1000, 1), (2, 3), (7, 5), (64, 48)):
        for picture in (noise(*size), Image.new("RGB", size), Image.new("RGB", size, "white")):
            before = picture.tobytes()
            for name, severity in product([one.name for one in PICTURES], range(1, 6)):
                result = perturbed(name, picture, severity=severity)
                assert result.mode == "RGB"
                if name == "crop":
                    assert all(1 <= now <= then for now, then in zip(result.size, size, strict=True))
                else:
                    assert result.size == size
                assert perturbed(name, picture, severity=severity).tobytes() == result.tobytes()
            assert picture.tobytes() == before


def test_a_higher_severity_is_farther_away():
    clean = np.asarray(smooth()).astype(float)
    for name in ("blur", "jpeg", "occlusion", "digit-overlay", "brightness"):
        distances = []
        for severity in range(1, 6):
            changed = [perturbed(name, smooth(), seed, severity=severity) for seed in range(20)]
            distances.append(np.mean([np.abs(np.asarray(one) - clean).mean() for one in changed]))
        assert distances[0] > 0
        assert np.all(np.diff(distances) > 0)


def test_each_kind_by_hand():
    picture, file = smooth(), io.BytesIO()
    picture.save(file, "JPEG", quality=15)
    assert perturbed("jpeg", picture).tobytes() == Image.open(file).convert("RGB").tobytes()
    refused(Unchanged, "longer than the 65,500 pixels", perturbed, "jpeg", Image.new("RGB", (65_501, 1)))
    assert perturbed("jpeg", Image.new("RGB", (65_500, 1))).size == (65_500, 1)
    picture, places = noise(60, 40), set()
    for seed in range(30):
        part = np.asarray(perturbed("crop", picture, seed, keep=0.25))
        assert part.shape == (20, 30, 3)
        windows = np.lib.stride_tricks.sliding_window_view(np.asarray(picture), part.shape)[:, :, 0]
        (found,) = zip(*np.nonzero((windows == part).all(axis=(2, 3, 4))), strict=True)
        places.add(found)
    assert len(places) > 20
    assert perturbed("crop", picture, keep=1).tobytes() == picture.tobytes()
    picture = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert("RGB")
    values, brighter = np.asarray(picture).astype(float), 0
    for seed in range(40):
        result = np.asarray(perturbed("brightness", picture, seed, factor=2)).astype(float)
        is_brighter = result.mean() > values.mean()
        brighter += is_brighter
        assert np.abs(result - (np.minimum(255, values * 2) if is_brighter else values / 2)).max() <= 0.5
    assert 10 < brighter < 30
    black = Image.new("RGB", (9, 9))
    assert perturbed("brightness", black).tobytes() == black.tobytes()


def test_an_occlusion_hides_its_share_behind_one_colour():
    picture = noise(200, 120)
    values = np.asarray(picture)
    colours = {"mean": np.rint(values.mean(axis=(0, 1))), "grey": np.full(3, 128)}
    for share in (0.05, 0.2, 0.45):
        shapes = set()
        for seed, (colour, expected) in product(range(20), colours.items()):
            result = np.asarray(perturbed("occlusion", picture, seed, share=share, colour=colour))
            rows, columns = np.nonzero((result != values).any(axis=2))
            box = result[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            assert np.all(box == expected)
            assert box.shape[0] * box.shape[1] == pytest.approx(share * 200 * 120, rel=0.05)
            shapes.add(box.shape)
        assert len(shapes) > 10


def test_impossible_options_are_refused():
    for name, options, message in (
        ("blur", {"severity": 0}, "blur: severity: Input should be greater than or equal to 1"),
        ("blur", {"severity": True}, "severity: Input should be a valid integer"),
        ("blur", {"severity": 3, "sigma": 0.5}, "blur: severity 3 and sigma 0.5 are two amounts: give one"),
        ("blur", {"radius": 1}, "unknown key 'radius'"),
        ("brightness", {"factor": 1}, "factor: Input should be greater than 1"),
        ("digit-overlay", {"size": 0.2}, "size"),
    ):
        refused(UsageError, message, options_of, PERTURBATIONS.get(name), options)


class Memory:
    """Pictures in memory, and how often each was read."""

    def __init__(self):
        random = np.random.default_rng(0)
        arrays = [random.integers(0, 256, (40, 60, 3), dtype=np.uint8) for _ in range(3)]
        self.pictures = [Image.new("RGB", (60, 40)), *map(Image.fromarray, arrays)]
        self.reads = [0] * 4

    def read(self, row):
        self.reads[row] += 1
        return self.pictures[row]

    def content(self, row):
        return fingerprint_bytes(self.pictures[row].tobytes())


def collection():
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


def contents(part):
    return [part.source.content(int(row)) for row in part.source_rows]


def test_a_picture_is_a_function_of_seed_id_and_options():
    for name in [one.name for one in choose_perturbations(["pictures"])]:
        plain, perturbation = collection(), PERTURBATIONS.get(name)
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
            others = [
                perturbed_pictures(plain, perturbation, seed=seed).image(1).tobytes() for seed in range(9)
            ]
            assert len(set(others)) > 1


def test_its_content_says_all_that_it_depends_on():
    plain = collection()

    def of(name="crop", seed=0, **options):
        return contents(perturbed_pictures(plain, PERTURBATIONS.get(name), seed=seed, options=options))

    views = [of(), of(seed=1), of(severity=4), of(keep=0.123), of("blur"), contents(plain)]
    assert of() == of(severity=3) == of(keep=0.5)
    assert len({content for view in views for content in view}) == 4 * len(views)
    changed = collection()
    changed.source.pictures[2] = Image.new("RGB", (9, 9))
    other = contents(perturbed_pictures(changed, PERTURBATIONS.get("crop"), seed=0))
    assert [one != two for one, two in zip(of(), other, strict=True)] == [False, False, True, False]
    # The same picture under another id is drawn anew.
    renamed = replace(plain, image_ids=["a", "b", "c", "e"])
    other = contents(perturbed_pictures(renamed, PERTURBATIONS.get("crop"), seed=0))
    assert [one != two for one, two in zip(of(), other, strict=True)] == [False, False, False, True]


def test_overlays_stay_over_the_changed_pictures():
    plain = collection()
    injected = Shortcuts.of(ShortcutOptions(setup="unique", digits="drawn", digit_size=6), plain, "train", 0)
    shortcuts = injected.injected(plain)
    view = perturbed_pictures(shortcuts, PERTURBATIONS.get("blur"), seed=0).subset([2, 1])
    assert isinstance(view.source, OverlaySource)
    item, before = view.item(0), shortcuts.item(2)
    assert item.overlay.key == before.overlay.key
    bare = perturbed_pictures(plain, PERTURBATIONS.get("blur"), seed=0)
    assert item.picture.tobytes() == bare.image(2).tobytes()
    assert not isinstance(bare.source, OverlaySource)
    assert contents(view) != contents(bare.subset([2, 1]))
