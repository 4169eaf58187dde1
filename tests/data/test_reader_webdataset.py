from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tar_shards import BLOCK, END, header, member, png, samples, shard

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.data import images as image_files
from diptych.data.readers import read_collection, webdataset
from diptych.data.shards import IGNORED, CutError, Member, find_shards, read_members


def test_a_folder_of_shards(tmp_path: Path) -> None:
    shard(tmp_path / "train" / "000.tar", samples(1, 2))
    shard(tmp_path / "train" / "001.tar", samples(3))
    shard(tmp_path / "validation" / "000.tar", samples(1))
    found = read_collection(tmp_path)
    ids = ["train/000/00001", "train/000/00002", "train/001/00003", "validation/000/00001"]
    assert list(found.image_ids) == ids
    assert list(found.captions) == ["picture 1", "picture 2", "picture 3", "picture 1"]
    assert found.caption_ids[0] == "train/000/00001#0"
    assert found.split_sizes == {"train": 3, "val": 1}
    assert found.notes == ()
    assert [found.image(row).getpixel((0, 0)) for row in (2, 0, 3)] == [(3, 0, 0), (1, 0, 0), (1, 0, 0)]
    assert found.split("val").image(0).getpixel((0, 0)) == (1, 0, 0)
    (tmp_path / "3.png").write_bytes(png(3))
    assert found.source.content(2) == fingerprint_file(tmp_path / "3.png")
    assert not list((Path(os.environ["DIPTYCH_CACHE"]) / "collections").rglob("*.png")), "nothing is unpacked"
    wrong = {"missing": "never", "caption": "cls", "truncated": 1, "validation": 2, "centric": "x"}
    for option, value in wrong.items():
        refused(UsageError, str(value), read_collection, tmp_path, **{option: value})
    (tmp_path / "pairs.csv").write_text("image,caption\na.png,one\n")
    assert list(read_collection(tmp_path).captions) == ["one"], "other formats come first"


def test_captions_in_json_and_in_lines(tmp_path: Path) -> None:
    said = json.dumps({"caption": "from json", "url": "u", "n": [1]}).encode()
    files = [
        *(("0.png", png(0)), ("0.json", said)),
        ("0.txt", b"\xef\xbb\xbffrom text\nsecond line\n"),
        ("0.cls", b"17\n"),
        *(("1.png", png(1)), ("1.json", b'{"caption": ["one", "two"]}')),
    ]
    shard(tmp_path / "test.tar", files)
    found = read_collection(tmp_path)
    assert list(found.captions) == ["from text\nsecond line", "one", "two"]
    assert list(found.records) == [{"shard": "test", "url": "u", "n": [1], "class": 17}, {"shard": "test"}]
    assert found.subset([1]).records[0] == {"shard": "test"}  # type: ignore[index]
    lines = read_collection(tmp_path, caption_lines=True)
    assert lines.captions_of(0) == ["from text", "second line"]
    only = read_collection(tmp_path, caption="json", centric="object")
    assert list(only.captions) == ["from json", "one", "two"]
    assert only.centric == "object"
    other = read_collection(tmp_path, caption="json", caption_key="url", missing="skip")
    assert list(other.captions) == ["u"]
    assert other.notes == ("1 samples without caption left out",)


def test_shards_are_gone_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = shard(tmp_path / "train.tar", samples(1))
    walks: list[int] = []
    through = webdataset.read_members

    def counted(*given: Any) -> Any:
        walks.append(1)
        return through(*given)

    monkeypatch.setattr(webdataset, "read_members", counted)
    for _ in range(2):
        assert list(read_collection(tmp_path).captions) == ["picture 1"]
    assert len(walks) == 1
    shard(file, samples(2))
    os.utime(file, ns=(1, 1))
    assert list(read_collection(tmp_path).captions) == ["picture 2"]
    read_collection(tmp_path, test=0.2)  # shares are of splits, which are not stored
    assert len(walks) == 2


def bad(*files: tuple[str, bytes], end: bytes = END) -> Callable[[Path], None]:
    return lambda folder: shard(folder / "train.tar", files, end) and None  # type: ignore[func-returns-value]


SAMPLE = samples(1)


def test_bad_shards(tmp_path: Path) -> None:
    cases: tuple[tuple[Callable[[Path], None], str], ...] = (
        (bad(*SAMPLE, end=b""), r"train\.tar is corrupt or cut off behind byte 2,048 of 2,048: no"),
        (bad(*SAMPLE, end=header("2.png", 9999) + b"x"), r"behind byte 1,024 of 2,561: '2.png' has"),
        (bad(*SAMPLE, *samples(2), *SAMPLE), "image id 'train/00001' occurs twice"),
        (bad(("1.png", png(1))), r"0 samples have no image and 1 no caption, 0 have both; the"),
        (bad(("1.txt", b"x"), *SAMPLE), "1 samples have no image and 0 no caption, 1 have both"),
        (bad(("1.png", png(1)), ("1.json", b"{no")), r"sample '1' at byte 512: its \.json is"),
        (bad(("1.png", png(1)), ("1.json", b"[1]")), r"is no JSON object but \[1\]"),
        (bad(("1.png", png(1)), ("1.json", b"[" * 100_000)), "is not JSON: it is nested too"),
        (bad(("1.png", png(1)), ("1.json", b"9" * 5000)), "is not JSON: Exceeds the limit"),
        (bad(("1.png", png(1)), ("1.txt", b"x" * (1 << 21))), "has 2,097,152 bytes, more than"),
        (bad(("1.png", png(1)), ("1.txt", b"caf\xe9")), "caption of .*'1' .* is not UTF-8"),
        (bad(("1.png", png(1)), ("1.txt", b" \n")), "caption of .*'1' .* is empty"),
        (bad(("1.png", png(1)), ("1.json", b'{"caption": "\\ud800a"}')), "half a character"),
        (bad(), "no sample with image and caption in 1 shards"),
        (lambda folder: (folder / "train.tar.gz").touch() or bad(*SAMPLE)(folder), "is compressed"),
        (lambda folder: (folder / "train.tar").symlink_to(folder / "gone"), "does not exist"),
    )
    for number, (make, message) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder)
        assert refused(DataError, message, read_collection, folder).fix


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    texts = [
        ("3.txt", b"lonely"),
        ("4.png", png(4)),
        ("4.txt", b"..."),
        ("5.png", png(5)),
        ("5.txt", b"\xff"),
    ]
    files = [*samples(1), ("2.png", png(2)), *texts]
    link = member("9.png", b"", b"2") + member("9.txt", b"a link")
    shard(tmp_path / "train-0.tar", files, end=link + END)
    shard(tmp_path / "train-1.tar", samples(6, 7), end=header("8.png", 999))
    found = read_collection(tmp_path, missing="skip", truncated="skip", skip_bad_captions=True)
    assert list(found.image_ids) == ["train-0/00001", "train-0/4", "train-0/5", "train-1/00006"]
    assert found.captions_per_image.tolist() == [1, 0, 0, 1]
    assert [note.split()[0] for note in found.notes] == ["2", "1", "2", "1", "1"]
    assert "1 shards that are cut off used up to there" in found.notes


def test_bombs_and_shards_that_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard(tmp_path / "train.tar", samples(1))
    found = read_collection(tmp_path)
    monkeypatch.setattr("diptych.data.shards.MAX_BYTES", 10)
    refused(ImageError, r"train\.tar, image at byte 512 has \d+ bytes, more than the 10", found.image, 0)
    monkeypatch.undo()
    monkeypatch.setattr(image_files.decode_image, "__defaults__", (15,))
    refused(ImageError, "has 4 × 4 pixels, more than the 15 allowed", found.image, 0)
    monkeypatch.undo()
    shard(tmp_path / "train.tar", samples(1, 2))
    monkeypatch.setattr("diptych.data.readers.webdataset.MAX_BYTES", 10)
    refused(DataError, "its image has .* more than the 10 allowed", read_collection, tmp_path)
    monkeypatch.undo()
    file = shard(tmp_path / "train.tar", [("1.png", b"no picture"), ("1.txt", b"x"), *samples(2)])
    found = read_collection(tmp_path)
    refused(ImageError, r"image at byte 512 is not an image Pillow can read", found.image, 0)
    file.write_bytes(file.read_bytes()[:600])
    refused(ImageError, "ends at byte 600", found.image, 1)
    file.unlink()
    refused(ImageError, r"train\.tar does not exist", found.source.content, 1)


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


def test_what_is_cut_off_or_corrupt_is_told(tmp_path: Path) -> None:
    for content, message in (
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
    ):
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


def test_names_that_lead_out_are_refused(tmp_path: Path) -> None:
    for name in ("../a.txt", "/etc/passwd.txt", "a/../../b.txt", "C:a.txt", "..\\a.txt"):
        path = shard(tmp_path / "a.tar", [("fine.txt", b"x"), (name, b"x")])
        refused(ImageError, r"points outside .*a\.tar \(byte 1,024\)", walk, path)


def test_shards_of_folders_patterns_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("diptych.data.shards.MAX_SHARDS", 99)
    refused(UsageError, "more than 99 files", names, "{0..9}/{0..9}/{0..9}.tar")
