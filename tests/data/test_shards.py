from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tar_shards import BLOCK, END, header, member, png, shard

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.data.shards import Member, Members, Sample, find_shards, samples_of


def walk(path: Path) -> tuple[list[Member], Members]:
    with open(path, "rb") as handle:
        members = Members(path, handle)
        return list(members), members


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


NAMES = st.text("abcdé./", min_size=1, max_size=160).filter(
    lambda name: not name.startswith(("/", "./")) and not name.endswith("/") and ".." not in name
)


@given(
    files=st.lists(st.tuples(NAMES, st.binary(max_size=1200)), max_size=5), form=st.sampled_from([0, 1, 2])
)
def test_members_are_those_that_tarfile_wrote(
    files: list[tuple[str, bytes]], form: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    form = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)[form]
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    expected = []
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            try:
                archive.addfile(info, io.BytesIO(content))
            except ValueError:  # too long a name for ustar
                continue
            expected.append((name, content))
    found, members = walk(path)
    whole = path.read_bytes()
    assert [(one.name, whole[one.offset : one.offset + one.size]) for one in found] == expected
    assert members.cut is None


def test_links_folders_and_devices_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("a" * 150)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("./b.txt")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    found, members = walk(path)
    assert [one.name for one in found] == ["b.txt"]
    assert members.ignored == 3


@pytest.mark.parametrize(
    ("content", "whole", "message"),
    [
        (member("a.txt", b"x"), 1, r"cut off at byte 1,024 of 1,024: no mark of the end"),
        (member("a.txt", b"x") + b"\0" * 100, 1, "100 bytes of a header are left"),
        (member("a.txt", b"x") + header("b.txt", 600) + b"y" * 88, 1, "'b.txt' has 600 bytes, 88 are left"),
        (member("a.txt", b"x") + b"z" * BLOCK + END, 1, r"at byte 1,024 of 2,560: not a header"),
        (member("a.txt", b"x") + header("b.txt", 1 << 60) + END, 1, "has 1,152,921,504,606,846,976 bytes"),
        (member("a.txt", b"x") + member("x", b"9999999 path=b\n", tarfile.XHDTYPE) + END, 1, "that is none"),
        (member("a.txt", b"x") + member("x", b"path\n", tarfile.XHDTYPE) + END, 1, "is no number"),
        (
            member("a.txt", b"x") + member("x", b"9 size=x\n", tarfile.XHDTYPE) + member("b", b"") + END,
            1,
            "'x' is no number",
        ),
        (
            member("a.txt", b"x") + header("x", 1 << 21, tarfile.XHDTYPE) + bytes(1 << 21) + END,
            1,
            "2,097,152 bytes of a name",
        ),
    ],
)
def test_what_is_cut_off_or_damaged_is_told(tmp_path: Path, content: bytes, whole: int, message: str) -> None:
    found, members = walk(put(tmp_path / "a.tar", content))
    assert len(found) == whole
    assert members.cut is not None
    assert "a.tar is damaged or cut off at byte" in members.cut.message
    with pytest.raises(DataError, match=message):
        raise members.cut


@given(cut=st.integers(0, 4 * BLOCK - 1))
def test_wherever_it_is_cut_members_before(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = member("a.txt", b"x" * 100) + member("b.txt", b"y" * 100) + END
    path = put(tmp_path_factory.mktemp("cut") / "a.tar", content[:cut])
    if cut < BLOCK:
        refused(DataError, "no tar file", walk, path)
        return
    found, members = walk(path)
    assert members.cut is not None
    assert len(found) == (0 if cut < BLOCK + 100 else 1 if cut < 3 * BLOCK + 100 else 2)


@pytest.mark.parametrize("name", ["../a.txt", "/etc/passwd", "a/../../b.txt", "C:a.txt", "..\\a.txt"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = shard(tmp_path / "a.tar", [("fine.txt", b"x"), (name, b"x")])
    refused(ImageError, r"points outside .*a\.tar \(byte 1,024\)", walk, path)


def grouped(tmp_path: Path, *files: tuple[str, bytes], picture: str | None = None) -> list[Sample]:
    path = shard(tmp_path / "s.tar", files)
    with open(path, "rb") as handle:
        return list(samples_of(path, Members(path, handle), picture))


def test_samples_are_neighbours_with_one_key(tmp_path: Path) -> None:
    files = [
        (name, b"x") for name in ("d.e/0.JPG", "d.e/0.txt", "d.e/1.png", "d.e/1.seg.png", "0.npy", "none")
    ]
    found = grouped(tmp_path, *files)
    assert [(one.key, sorted(one.parts)) for one in found] == [
        ("d.e/0", ["jpg", "txt"]),
        ("d.e/1", ["png"]),
        ("0", []),
    ]
    assert sorted(grouped(tmp_path, *files, picture="seg.png")[1].parts) == ["seg.png"]


def test_one_name_twice_in_a_sample_and_two_pictures(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"byte 1,536: 0\.TXT is there twice"):
        grouped(tmp_path, ("0.txt", b"x"), ("0.TXT", b"y"))
    sample = grouped(tmp_path, ("0.jpg", b"x"), ("0.png", png(1)))[0]
    refused(DataError, "0 has 2 pictures: jpg, png", sample.picture)
    assert sample.picture("png") == sample.parts["png"]
    assert sample.picture("webp") is None


def test_shards_of_folders_patterns_and_files(tmp_path: Path) -> None:
    for name in (
        *("train/08.tar", "train/09.tar", "train/10.tar", "val/00.tar"),
        *("val/._00.tar", "val/readme.txt"),
    ):
        put_at = tmp_path / name
        put_at.parent.mkdir(exist_ok=True)
        put_at.touch()

    def names(pattern: str) -> list[str]:
        return [one.name for one in find_shards(tmp_path / pattern)]

    assert names("") == ["train/08", "train/09", "train/10", "val/00"]
    assert names("train/{08..10}.tar") == ["08", "09", "10"]
    assert names("{val,train}/[01]0.tar") == ["val/00", "train/10"]
    assert names("train/*.tar") == ["08", "09", "10"]
    assert names("val/00.tar") == ["00"]
    refused(DataError, r"2 of 4 files .* are missing, the first: .*11\.tar", names, "train/{09..12}.tar")
    refused(DataError, "no shards", names, "test/*.tar")
    refused(UsageError, "more than 1,000,000 files", names, "{0..999}/{0..999}/{0..9}.tar")


def test_compressed_shards_and_names_that_are_there_twice(tmp_path: Path) -> None:
    (tmp_path / "00.tar").touch()
    (tmp_path / "01.tar.gz").touch()
    caught = refused(DataError, r"01\.tar\.gz is compressed", find_shards, tmp_path)
    assert "gunzip" in caught.fix
    refused(DataError, r"01\.tar\.gz is compressed", find_shards, tmp_path / "01.tar.gz")
