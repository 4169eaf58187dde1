"""How a valid input is damaged: bytes, JSON and TOML values, array headers, archives' members, files themselves."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import shutil
import zipfile
import zlib
from pathlib import Path
from typing import Any

from fuzz.targets import pack

TEXTS = (
    *("", ".", "..", "../../../ESCAPED", "{sandbox}/ESCAPED", "a/b", "C:\\x", "nul\0byte", "half \ud800"),
    *("é" * 99, "x" * 5_000, "=cmd|'/C calc'!A0", "\x1b[2J\u202e", "<script>", "%s%n", "NaN", "-1", "1e999"),
)
NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 0.5)
_DIGITS = "@DIGITS@"
_NESTED = "@NESTED@"
_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"a": 1}, float("inf"), float("nan"), _DIGITS, _NESTED),
    *NUMBERS,
    *TEXTS,
)
_SHAPES = ("(-1, 2)", "()", "(0,)", f"({10**30},)", "(1099511627776,)", "(2, -3)", "(1" + "0" * 5_000 + ",)")
_TYPES = ("|O", "<f8", "<i8", "|S0", "<U99", "<z9", "|V8", ">f4", "|b1", "<M8[ns]", "('<f4', (2,))")
_HEADERS = (b"'''", b"{'descr'", b"[]", b"(" * 3_000, b"1 2", b"\xff\xfe", b"{'descr': '<f4'}", b"")
_TOML = (
    *("1" + "0" * 5_000, "[" * 2_000, "nan", "inf", "-1", "0", "true", '""', '"../../ESCAPED"', "{}", "[]"),
    *("{a = {b = 1}}", '["*", 3]', "1979-05-27", '"\\u0000"', "{drop_rate = 'x'}", "{no_such_option = 1}"),
    *("{num_classes = -5}", "{in_chans = 'x'}", "{pretrained_cfg = 3}", '"hf_hub:a/b"', '"resnet1"', "1e400"),
)


def mutate(folder: Path, rng: random.Random, sandbox: Path) -> str:
    """Damage one or two files of a folder; return in words what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if not files:
            break
        path = rng.choice(files)
        kinds = [_bytes, _bytes, _file]
        if path.suffix in (".json", ".jsonl"):
            kinds += [_json] * 6
        elif path.suffix == ".npy":
            kinds += [_array] * 4
        elif path.suffix == ".npz":
            kinds += [_archive] * 4
        elif path.suffix == ".toml":
            kinds += [_toml] * 6
        elif path.suffix in (".csv", ".txt", ".xml"):
            kinds += [_text] * 4
        elif path.suffix == ".gz":
            kinds += [_packed] * 4
        elif path.suffix == ".safetensors":
            kinds += [_tensors] * 4
        kind = rng.choice(kinds)
        what = kind(path, rng, sandbox)
        done.append(f"{path.relative_to(folder)}: {what}")
    return "; ".join(done)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert or repeat bytes."""
    how = rng.randrange(6)
    place = rng.randrange(len(content) + 1)
    if how == 0:
        return content[:place]
    if how == 1:
        return content[:place] + rng.randbytes(rng.randrange(1, 40)) + content[place:]
    if how == 2:
        return content[:place] + content[place + rng.randrange(1, 40) :]
    if how == 3:
        return content[:place] + bytes(rng.randrange(1, 200)) + content[place:]
    if how == 4:
        return content + content[place:]
    held = bytearray(content)
    for _ in range(rng.randrange(1, 9)):
        if held:
            held[rng.randrange(len(held))] = rng.choice((0, 255, 128, rng.randrange(256)))
    return bytes(held)


def _bytes(path: Path, rng: random.Random, sandbox: Path) -> str:
    path.write_bytes(damaged(path.read_bytes(), rng))
    return "bytes"


def _file(path: Path, rng: random.Random, sandbox: Path) -> str:
    """Put something else in the file's place."""
    how = rng.choice(("gone", "folder", "loop", "device", "pipe", "outside", "empty", "large", "socket"))
    content = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path)
    elif how == "device":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "outside":
        (sandbox / "outside").write_bytes(content)
        path.symlink_to(sandbox / "outside")
    elif how == "empty":
        path.touch()
    elif how == "large":
        with open(path, "wb") as handle:
            handle.write(content)
            handle.truncate(1 << 42)
    elif how == "socket":
        path.symlink_to(sandbox / "nowhere")
    return how


def _value(rng: random.Random, sandbox: Path) -> Any:
    value = rng.choice(_VALUES)
    return value.format(sandbox=sandbox) if isinstance(value, str) and "{sandbox}" in value else value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: what it is in, and its key or number there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((value, key), *_places(one))]


def _dumped(value: Any) -> bytes:
    text = json.dumps(value)
    text = text.replace(f'"{_DIGITS}"', "9" * 5_000).replace(f'"{_NESTED}"', "[" * 20_000 + "]" * 20_000)
    return text.encode()


def _changed(value: Any, rng: random.Random, sandbox: Path) -> Any:
    places = _places(value)
    if not places or rng.random() < 0.05:
        return _value(rng, sandbox)
    where, key = rng.choice(places)
    how = rng.randrange(8)
    if how == 0:
        del where[key]
    elif how == 1 and isinstance(where, dict):
        where[str(_value(rng, sandbox))[:300]] = where.pop(key)
    elif how == 2 and isinstance(where, list):
        where.extend([where[key]] * rng.choice((1, 1_000)))
    else:
        where[key] = _value(rng, sandbox)
    return value


def _json(path: Path, rng: random.Random, sandbox: Path) -> str:
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    place = rng.randrange(len(lines)) if lines else 0
    try:
        changed = _dumped(_changed(json.loads(lines[place]), rng, sandbox))
    except (ValueError, IndexError, RecursionError):  # damaged before
        return _bytes(path, rng, sandbox)
    before, after = (
        "".join(f"{line}\n" for line in part).encode() for part in (lines[:place], lines[place + 1 :])
    )
    path.write_bytes(before + changed + (b"\n" if path.suffix == ".jsonl" else b"") + after)
    return f"JSON {changed[:60]!r}"


def changed_array(content: bytes, rng: random.Random) -> bytes:
    """Change the header of an ``.npy`` file."""
    if len(content) < 10 or rng.random() < 0.2:
        return damaged(content, rng)
    length = int.from_bytes(content[8:10], "little")
    header, rest = content[10 : 10 + length], content[10 + length :]
    how = rng.randrange(4)
    if how == 0:
        shape = rng.choice(_SHAPES).encode()
        header = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + shape, header)
    elif how == 1:
        header = re.sub(rb"'descr': '[^']*'", f"'descr': {rng.choice(_TYPES)!r}".encode(), header)
    elif how == 2:
        header = rng.choice(_HEADERS)
    else:
        header = damaged(header, rng)
    version = rng.choice((content[6:8], content[6:8], b"\x02\x00", b"\x03\x00", b"\x09\x09"))
    width = 2 if version == b"\x01\x00" else 4
    return content[:6] + version + len(header).to_bytes(4, "little")[:width] + header + rest


def _array(path: Path, rng: random.Random, sandbox: Path) -> str:
    path.write_bytes(changed_array(path.read_bytes(), rng))
    return f"array {path.read_bytes()[10:70]!r}"


def _archive(path: Path, rng: random.Random, sandbox: Path) -> str:
    """Change, drop, double, rename or over-pack a member."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        place = rng.randrange(len(members))
    except (zipfile.BadZipFile, zlib.error, ValueError):
        return _bytes(path, rng, sandbox)
    name, content = members[place]
    how = rng.choice(("array", "array", "array", "drop", "double", "rename", "bomb", "lzma"))
    if how == "array":
        members[place] = (name, changed_array(content, rng))
    elif how == "drop":
        del members[place]
    elif how == "double":
        members.append((name, damaged(content, rng)))
    elif how == "rename":
        members[place] = (rng.choice(("../x.npy", "/abs.npy", "x", "a b c", "é" * 50)), content)
    elif how == "bomb":
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}" % (300 << 20)
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        members[place] = (name, start + bytes(300 << 20))
    path.write_bytes(pack(members, zipfile.ZIP_LZMA if how == "lzma" else zipfile.ZIP_DEFLATED))
    return f"archive {how} {name}"


def _packed(path: Path, rng: random.Random, sandbox: Path) -> str:
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        return _bytes(path, rng, sandbox)
    how = rng.choice(("inside", "inside", "twice", "tail", "bomb"))
    if how == "inside":
        path.write_bytes(gzip.compress(damaged(content, rng), mtime=0))
    elif how == "twice":
        path.write_bytes(gzip.compress(gzip.compress(content, mtime=0), mtime=0))
    elif how == "tail":
        path.write_bytes(path.read_bytes() + rng.randbytes(30))
    else:
        held = io.BytesIO()
        with gzip.GzipFile(fileobj=held, mode="wb", compresslevel=1, mtime=0) as packed:
            for _ in range(300):
                packed.write(b" " * (1 << 20))
        path.write_bytes(held.getvalue())
    return f"gzip {how}"


def _toml(path: Path, rng: random.Random, sandbox: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()
    assigned = [place for place, line in enumerate(lines) if "=" in line]
    if not assigned or rng.random() < 0.1:
        return _bytes(path, rng, sandbox)
    place = rng.choice(assigned)
    how = rng.randrange(5)
    if how == 0:
        lines.insert(place, lines[place])
    elif how == 1:
        del lines[place]
    else:
        lines[place] = f"{lines[place].partition('=')[0]}= {rng.choice(_TOML)}"
    path.write_text("\n".join(lines) + "\n")
    return f"TOML {lines[min(place, len(lines) - 1)][:60]!r}"


def _text(path: Path, rng: random.Random, sandbox: Path) -> str:
    """Change a word, an encoding or the order of lines."""
    text = path.read_text(errors="replace")
    how = rng.randrange(5)
    words = re.findall(r"[\w.-]+", text) or ["x"]
    word = rng.choice(words)
    if how < 3:
        value = rng.choice(TEXTS).format(sandbox=sandbox) if rng.random() < 0.7 else str(rng.choice(NUMBERS))
        text = text.replace(word, value, 1)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return f"text {word!r} → {value[:40]!r}"
    encoding = rng.choice(("utf-16", "latin-1", "utf-32", "cp037"))
    if how == 3:
        path.write_bytes(text.encode(encoding, "replace"))
        return encoding
    lines = text.splitlines(keepends=True)
    rng.shuffle(lines)
    path.write_text("".join(lines * rng.choice((1, 2))))
    return "lines shuffled"


def _tensors(path: Path, rng: random.Random, sandbox: Path) -> str:
    """Change the JSON header of a safetensors file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    try:
        header = _changed(json.loads(content[8 : 8 + length]), rng, sandbox)
    except (ValueError, RecursionError):
        return _bytes(path, rng, sandbox)
    text = _dumped(header)
    size = rng.choice((len(text), len(text), len(text), 1 << 62, 0))
    path.write_bytes(size.to_bytes(8, "little") + text + content[8 + length :])
    return f"tensors {text[:60]!r}"


def copied(folder: Path, target: Path) -> Path:
    """Copy a valid input."""
    shutil.copytree(folder, target)
    return target
