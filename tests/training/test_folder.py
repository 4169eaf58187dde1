"""The folder of a training: what holds for towers, heads and products alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.locking import exclusive_folder
from diptych.training.run import TrainingFolder

REQUEST = {"data": "d0", "loss": {"eta": 0.5, "terms": (1, 2)}, "validation": None}


def begun(path: Path) -> TrainingFolder:
    folder = TrainingFolder(path)
    folder.begin(REQUEST)
    return folder


def test_it_is_begun_once_and_ends_with_numbers(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "t")
    assert not folder.begun
    assert not folder.finished
    folder.begin(REQUEST)
    folder.begin(REQUEST)
    assert folder.begun
    assert folder.numbers == {}
    folder.checkpoint.mkdir()
    folder.finish(epochs=3, seconds=1.5)
    assert folder.finished
    assert folder.numbers == {"epochs": 3, "seconds": 1.5}
    assert folder.begun_with["loss"] == {"eta": 0.5, "terms": [1, 2]}
    assert not folder.checkpoint.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": "d1"}, "was begun with data = d0, asked for is d1"),
        ({"loss": {"eta": 0.1, "terms": [1, 2]}}, "was begun with loss.eta = 0.5, asked for is 0.1"),
        ({"loss": {"eta": 0.5}}, r"was begun with loss.terms = \[1, 2\], asked for is None"),
        ({"objective": "mine"}, "was begun with objective = None, asked for is mine"),
    ],
)
def test_another_training_is_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    folder = begun(tmp_path)
    for attempt in (folder.check, folder.begin):
        with pytest.raises(MismatchError, match=words):
            attempt({**REQUEST, **change})
    folder.check({"data": "d0"}, whole=False)


def test_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    TrainingFolder(tmp_path).check(REQUEST)
    TrainingFolder(tmp_path).check(REQUEST, beside=("holiday.jpg",))
    with pytest.raises(UsageError, match="holds other things"):
        TrainingFolder(tmp_path).check(REQUEST, beside=())


def test_one_process_at_a_time_and_no_empty_folder(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "t")
    with folder.held():
        assert folder.folder.is_dir()
    assert not folder.folder.exists()
    with folder.held():
        folder.begin(REQUEST)
    with (
        exclusive_folder(folder.folder),
        pytest.raises(StorageError, match="another process is working in"),
        folder.held(),
    ):
        pass
    assert folder.begun


@pytest.mark.parametrize("content", ["[]", "{}", "", "null", '{"state": "running"}', "{" * 3000])
def test_a_corrupt_file_is_named(content: str, tmp_path: Path) -> None:
    folder = begun(tmp_path)
    (tmp_path / "training.json").write_text(content)
    with pytest.raises(StorageError, match=r"training\.json") as caught:
        folder.check(REQUEST)
    assert caught.value.fix


@pytest.mark.parametrize("line", ["no line of ours", "[1]", '{"loss": 1}'])
def test_a_corrupt_line_of_metrics_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n' + line + "\n")
    with pytest.raises(StorageError, match=r"metrics\.jsonl, line 2 "):
        list(TrainingFolder(tmp_path).metrics())


def test_metrics_survive_a_cut_line_and_can_be_rewound(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path)
    assert list(folder.metrics()) == []
    for step in range(1, 5):
        folder.log(step=step, loss=1 / step)
    with open(tmp_path / "metrics.jsonl", "a") as handle:
        handle.write('{"step": 5, "lo')
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3, 4]
    folder.rewind_metrics(2)
    folder.log(step=3, loss=0.0)
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3]
