from __future__ import annotations

import io
import pickle
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from diptych.core.errors import StorageError, UsageError
from diptych.encoders.official.checkpoint import find_checkpoint, read_checkpoint

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2)}


def same(found: Any) -> bool:
    return found.keys() == STATE.keys() and all(torch.equal(found[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize(
    "content",
    [
        STATE,
        {"model": STATE, "optimizer": {"state": {}}, "config": {"image_res": 384}, "epoch": 3},
        {"state_dict": STATE},
        {"model": {f"module.{name}": value for name, value in STATE.items()}},
    ],
)
@pytest.mark.parametrize("name", ["x.th", "x.pth", "x.pt", "x.bin"])
def test_wrappings(content: dict[str, Any], name: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / name)
    for source in (tmp_path / name, str(tmp_path), content):
        assert same(read_checkpoint(source).state)
    assert read_checkpoint(tmp_path).name == name
    assert read_checkpoint(tmp_path).folder == tmp_path
    assert read_checkpoint(content).folder is None


def test_old_files_of_pytorch(tmp_path: Path) -> None:
    torch.save({"model": STATE}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert same(read_checkpoint(tmp_path / "old.pth").state)


def test_safetensors(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "x.safetensors")
    assert same(read_checkpoint(tmp_path).state)
    content = (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").write_bytes(content[:-4])
    with pytest.raises(StorageError, match="is not a safetensors file"):
        read_checkpoint(tmp_path)


class _Code:
    def __reduce__(self) -> Any:
        return print, ("this must not be printed",)


def test_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": STATE, "more": _Code()}, tmp_path / "x.pth")
    with pytest.raises(StorageError, match=r"more than tensors .* asks for print") as caught:
        read_checkpoint(tmp_path)
    assert 'torch.load("x.pth", map_location="cpu", weights_only=False)["model"]' in caught.value.fix
    (tmp_path / "x.pth").write_bytes(pickle.dumps(_Code()))
    with pytest.raises(StorageError):
        read_checkpoint(tmp_path)
    assert "must not" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with b''"),
        (b"<html>not found</html>", "begins with b'<html>not found<'"),
        (b"PK\x03\x04 half an archive", "is damaged"),
        (b"\x80\x02", "is damaged"),
        (b"\x80\x02qqqqq", "is damaged"),
        (b"\x80\x04abc", "is damaged"),
    ],
)
def test_damaged_files(content: bytes, message: str, tmp_path: Path) -> None:
    """None is advised to be opened with less care."""
    (tmp_path / "x.pth").write_bytes(content)
    with pytest.raises(StorageError, match=message) as caught:
        read_checkpoint(tmp_path)
    assert "download it again" in caught.value.fix
    assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("archive", [True, False])
@settings(max_examples=60)
@given(
    cut=st.just(1.0) | st.floats(0, 1),
    changes=st.dictionaries(st.floats(0, 0.999), st.integers(0, 255), max_size=4),
)
def test_any_damage_is_an_error_of_ours(archive: bool, cut: float, changes: dict[float, int]) -> None:
    buffer = io.BytesIO()
    torch.save({"model": STATE}, buffer, _use_new_zipfile_serialization=archive)
    content = bytearray(buffer.getvalue())
    for place, value in changes.items():
        content[int(place * len(content))] = value
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.pth"
        file.write_bytes(content[: round(cut * len(content))])
        try:
            found = read_checkpoint(file).state
        except StorageError:
            return
        assert all(isinstance(value, torch.Tensor) for value in found.values())


def test_files_that_unfold_to_any_size(tmp_path: Path) -> None:
    torch.save({"model": {"a": torch.zeros(1 << 20)}}, tmp_path / "whole.pth")
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(tmp_path / "whole.pth") as whole, zipfile.ZipFile(packed, "w", 8) as archive:
        for entry in whole.infolist():
            archive.writestr(entry.filename, whole.read(entry))
    assert packed.stat().st_size < 20_000
    with pytest.raises(StorageError, match="packed entries .* which PyTorch does not write"):
        read_checkpoint(packed)
    torch.save({"a": torch.zeros(1, 1).expand(10**6, 10**6)}, tmp_path / "wide.pth")
    with pytest.raises(StorageError, match=r"'a' of shape \(1000000, 1000000\) with fewer numbers"):
        read_checkpoint(tmp_path / "wide.pth")
    torch.save({"position_ids": torch.arange(5).expand(1, -1)}, tmp_path / "row.pth")  # as BERT's is kept
    assert read_checkpoint(tmp_path / "row.pth").state["position_ids"].shape == (1, 5)


def test_half_a_file(tmp_path: Path) -> None:
    torch.save({"model": STATE}, tmp_path / "x.pth")
    content = (tmp_path / "x.pth").read_bytes()
    (tmp_path / "x.pth").write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match="damaged"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.ones(2)], "holds a list, not weights by name"),
        ({}, "holds nothing"),
        ({"model": {}}, "holds nothing"),
        ({"epoch": 3, "a": torch.ones(1)}, "holds 'epoch', which is no tensor"),
        ({"model": {7: torch.ones(1)}}, "holds 7, which is no name"),
    ],
)
def test_no_weights(content: Any, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "x.pth")
    with pytest.raises(StorageError, match=message):
        read_checkpoint(tmp_path)


def test_which_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        find_checkpoint(tmp_path / "absent.pth")
    with pytest.raises(StorageError, match="holds 0 checkpoints"):
        find_checkpoint(tmp_path)
    for name in ("b.pth", "a.th"):
        torch.save(STATE, tmp_path / name)
    with pytest.raises(StorageError, match=r"holds 2 checkpoints: a\.th, b\.pth") as caught:
        find_checkpoint(tmp_path)
    assert caught.value.fix == "give the file itself"
    assert find_checkpoint(tmp_path / "b.pth").name == "b.pth"


def test_configuration_beside(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "x.pth")
    assert read_checkpoint(tmp_path).config() == {}
    (tmp_path / "config.json").write_text('{"image_res": 384}')
    assert read_checkpoint(tmp_path).config() == {"image_res": 384}
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(StorageError, match="not a JSON object"):
        read_checkpoint(tmp_path).config()
