from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tar_shards import BLOCK, END, header, member, shard

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.data.shards import IGNORED, CutError, Member, find_shards, read_members


def walk(path: Path) -> tuple[list[Member], CutError | None, int]:
    """Members, the error behind them, and how many were passed over."""
    found: list[Member] = []
    counts: Counter[str] = Counter()
    with open(path, "rb") as handle:
        try:
            for member in read_members(path, handle, counts):
                found.append(member)
        except CutError as cut:
            return found, cut, counts[IGNORED]
    return found, None, counts[IGNORED]


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


NAMES = st.from_regex(r"([a-dé]{1,40}/){0,3}[a-dé]{1,40}\.[a-d]{1,3}", fullmatch=True)


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
    found, cut, ignored = walk(path)
    whole = path.read_bytes()
    read = [(f"{one.key}.{one.ending}", whole[one.offset : one.offset + one.size]) for one in found]
    assert (read, cut, ignored) == (expected, None, 0)


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
    found, _, ignored = walk(path)
    assert [(one.key, one.ending) for one in found] == [("b", "txt")]
    assert ignored == 3


FINE = member("a.txt", b"x")
LOOP = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n28 GNU.sparse.name=b.txt   \n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no mark of the end"),
        (bytes(100), "no mark of the end"),
        (header("b.txt", 600) + b"y" * 88, "'b.txt' has 600 bytes, 88 are left"),
        (b"z" * BLOCK + END, "no mark of the end"),
        (header("b.txt", 1 << 60) + END, "has 1,152,921,504,606,846,976 bytes"),
        (header("b.txt", -2048) + END, "b.txt|bad|no mark"),
        (header("x", 1 << 21, tarfile.XHDTYPE) + bytes(1 << 21), "a header of more than"),
        (
            member("x", b"17 size=-1048576\n", tarfile.XHDTYPE) + header("b.txt", 0) + END,
            "b.txt|invalid|no mark",
        ),
        (member("x", LOOP, tarfile.XHDTYPE) + header("b.txt", 0), "."),
        (member("x", b"13 path=b.t\n", tarfile.XHDTYPE) * 1200 + END, "."),
    ],
)
def test_what_is_cut_off_or_corrupt_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    found, cut, _ = walk(put(tmp_path / "a.tar", FINE + content))
    assert [one.key for one in found] == ["a"]
    assert cut is not None
    assert re.search(rf"a\.tar is corrupt or cut off behind byte .*({message})", cut.message), cut.message


@given(cut=st.integers(0, 4 * BLOCK - 1))
def test_wherever_it_is_cut_members_before(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = member("a.txt", b"x" * 100) + member("b.txt", b"y" * 100) + END
    path = put(tmp_path_factory.mktemp("cut") / "a.tar", content[:cut])
    if cut < BLOCK + 100:
        refused(DataError, "no tar file", walk, path)
        return
    found, error, _ = walk(path)
    assert error is not None
    assert len(found) == (1 if cut < 3 * BLOCK + 100 else 2)


@pytest.mark.parametrize("name", ["../a.txt", "/etc/passwd.txt", "a/../../b.txt", "C:a.txt", "..\\a.txt"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = shard(tmp_path / "a.tar", [("fine.txt", b"x"), (name, b"x")])
    refused(ImageError, r"points outside .*a\.tar \(byte 1,024\)", walk, path)


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
    assert "gunzip" in refused(DataError, r"01\.tar\.gz is compressed", find_shards, tmp_path).fix
    refused(DataError, r"01\.tar\.gz is compressed", find_shards, tmp_path / "01.tar.gz")
