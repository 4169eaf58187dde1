from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import every_byte
from refusals import refused

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.readers.karpathy import read_karpathy
from diptych.data.scenes import described, make_scenes, read_scenes


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scenes(tmp_path_factory.mktemp("made") / "small", 140, 6, 6, seed=3, k=3, size=32, workers=1)


def test_processes_change_no_byte(small: Path, tmp_path: Path) -> None:
    other = make_scenes(tmp_path / "other", 140, 6, 6, seed=3, k=3, size=32, workers=2)
    assert every_byte(small) == every_byte(other)


def test_a_larger_dataset_begins_with_the_smaller(small: Path, tmp_path: Path) -> None:
    larger = read_scenes(make_scenes(tmp_path / "larger", 141, 7, 8, seed=3, k=3, size=32, workers=1))
    held = read_scenes(small)
    for split in ("train", "val", "test"):
        few, many = held.split(split), larger.split(split)
        assert many.captions[: few.n_captions] == few.captions
        assert np.array_equal(np.asarray(many.image(5)), np.asarray(few.image(5)))


def test_the_collection_holds_facts_and_what_captions_state(small: Path) -> None:
    collection = read_scenes(small)
    assert collection.split_sizes == {"train": 140, "val": 6, "test": 6}
    assert (collection.captions_per_image == 3).all()
    assert collection.image(0).size == (32, 32)
    for row in range(0, collection.n_images, 17):
        states = [collection.caption_records[3 * row + number]["states"] for number in range(3)]
        told = described(collection.records[row]["facts"], states)
        assert told.shared == ("main.shape", "main.colour")
        assert told.specific
        assert told.undescribed
    assert "seed 3" in collection.notes[0]
    refused(UnknownNameError, "train, val", collection.split, "dev")


def test_the_file_is_karpathys_and_any_reader_of_it_agrees(small: Path) -> None:
    ours, theirs = read_scenes(small), read_karpathy(small / "dataset.json")
    for column in ("image_ids", "captions", "caption_ids", "splits"):
        assert list(getattr(theirs, column)) == list(getattr(ours, column))
    for row, image in enumerate(json.loads((small / "dataset.json").read_text())["images"]):
        assert image["sentids"] == [sentence["sentid"] for sentence in image["sentences"]]
        assert {sentence["imgid"] for sentence in image["sentences"]} == {image["imgid"]} == {row}


def test_what_was_killed_does_not_look_whole_and_is_made_again(small: Path, tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from diptych.data.scenes.make import Scenes, make_scenes\n"
        "make_chunk = Scenes.make_chunk\n"
        "def killed(scenes, folder, chunk):\n"
        "    if chunk.split != 'train': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return make_chunk(scenes, folder, chunk)\n"
        "Scenes.make_chunk = killed\n"
        f"make_scenes({str(tmp_path / 'made')!r}, 140, 6, 6, seed=3, k=3, size=32, workers=1)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "made").exists()
    again = make_scenes(tmp_path / "made", 140, 6, 6, seed=3, k=3, size=32, workers=1)
    assert every_byte(again) == every_byte(small)


def test_one_object_per_picture_is_object_centric(tmp_path: Path) -> None:
    made = read_scenes(make_scenes(tmp_path / "one", 70, 0, 6, size=32, objects=1, workers=2))
    assert made.centric == "object"
    assert made.notes[0].endswith("1 object per image")
    others = ("second", "third", "fourth", "relation", "count")
    for record in made.records:
        assert not [key for key in record["facts"] if key.startswith(others)]
        assert set(record["facts"]) == {
            *("main.shape", "main.colour", "main.size", "main.material", "main.place"),
            *("background", "light", "tint", "frame"),
        }
    for caption, record in zip(made.captions, made.caption_records, strict=True):
        assert not [key for key in record["states"] if key.startswith(others)]
        assert not [word for word in ("beside", "objects", "things", "group", " and a ") if word in caption]
    assert len({tuple(sorted(record["facts"].items())) for record in made.records}) == 76
    mixed = read_scenes(make_scenes(tmp_path / "mixed", 40, 0, 0, size=32, objects=(1, 3), workers=1))
    assert {record["facts"].get("count") for record in mixed.records} == {None, "2", "3"}
    assert mixed.centric is None


def test_the_usual_number_of_objects_goes_without_saying(small: Path, tmp_path: Path) -> None:
    """Scenes of before there was another number are the same, byte for byte, and are found again."""
    said = make_scenes(tmp_path / "said", 140, 6, 6, seed=3, k=3, size=32, objects=[2, 4], workers=1)
    assert every_byte(said) == every_byte(small)
    assert "objects" not in json.loads((small / "dataset.json").read_text())
    assert json.loads((small / "dataset.json").read_text())["fingerprint"] == "d3a9da74bf2d4b32"
    assert read_scenes(small).centric == "scene"
    with pytest.raises(UsageError, match=r"objects=\(2, 4\).*objects=\(1, 1\) was asked"):
        make_scenes(small, 140, 6, 6, seed=3, k=3, size=32, objects=1)
