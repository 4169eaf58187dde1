"""Corrupt a valid input: bytes, JSON and TOML values, array headers, archives' members, files themselves."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.targets import pack

TEXTS = (
    *("", ".", "..", "../../../ESCAPED", "{sandbox}/ESCAPED", "a/b", "C:\\x", "nul\0byte", "half \ud800"),
    *("é" * 99, "x" * 5_000, "=cmd|'/C calc'!A0", "\x1b[2J\u202e", "<script>", "%s%n", "NaN", "-1", "1e999"),
)
NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 0.5)
_DIGITS, _NESTED = "@DIGITS@", "@NESTED@"
_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"a": 1}, float("inf"), float("nan"), _DIGITS, _NESTED),
    *(*NUMBERS, *TEXTS),
)
_SHAPES = ("(-1, 2)", "()", "(0,)", f"({10**30},)", "(1099511627776,)", "(2, -3)", "(1" + "0" * 5_000 + ",)")
_TYPES = ("|O", "<f8", "<i8", "|S0", "<U99", "<z9", "|V8", ">f4", "|b1", "<M8[ns]", "('<f4', (2,))")
_HEADERS = (b"'''", b"{'descr'", b"[]", b"(" * 3_000, b"1 2", b"\xff\xfe", b"{'descr': '<f4'}", b"")
_TOML = (
    *("1" + "0" * 5_000, "[" * 2_000, "nan", "inf", "-1", "0", "true", '""', '"../../ESCAPED"', "{}", "[]"),
    *("{a = {b = 1}}", '["*", 3]', "1979-05-27", '"\\u0000"', "{drop_rate = 'x'}", "{no_such_option = 1}"),
    *("{num_classes = -5}", "{in_chans = 'x'}", "{pretrained_cfg = 3}", '"hf_hub:a/b"', '"resnet1"', "1e400"),
)

Mutation = Callable[[bytes, random.Random, str], bytes]
"""Changes the content of a file; the last argument is the folder that nothing may be written to."""


def mutate(folder: Path, rng: random.Random, sandbox: Path) -> str:
    """Damage one or two files of a folder; return in words what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        files = sorted(path for path in folder.rglob("*") if _is_small(path))
        if not files:
            break
        path = rng.choice(files)
        if rng.random() < 0.15:
            what = _replaced(path, rng, sandbox)
        else:
            content = path.read_bytes()
            how = rng.choice((corrupted, *[_OF_ENDING.get(path.suffix, corrupted)] * 4))
            try:
                content = how(content, rng, str(sandbox))
            except Exception:  # corrupted before, so that its form is not known any more
                content = corrupted(content, rng, "")
            path.write_bytes(content)
            what = f"{how.__name__} {content[:50]!r}"
        done.append(f"{path.relative_to(folder)}: {what}")
    return "; ".join(done)


def _is_small(path: Path) -> bool:
    """Return whether a file was not put there by a mutation: those that are large or endless are never read."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 24


def _replaced(path: Path, rng: random.Random, sandbox: Path) -> str:
    """Put something else in the file's place."""
    content = path.read_bytes()
    path.unlink()
    ways: dict[str, Callable[[], object]] = {
        "gone": lambda: None,
        "folder": path.mkdir,
        "loop": lambda: path.symlink_to(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "pipe": lambda: os.mkfifo(path),
        "outside": lambda: path.symlink_to(sandbox / "nowhere"),
        "empty": path.touch,
        "large": lambda: (path.write_bytes(content), os.truncate(path, 1 << 42)),
    }
    how = rng.choice(list(ways))
    ways[how]()
    return how


def corrupted(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    """Flip, cut, insert or repeat bytes."""
    place, few = rng.randrange(len(content) + 1), rng.randrange(1, 40)
    flipped = bytearray(content)
    for _ in range(few % 9 if content else 0):
        flipped[rng.randrange(len(content))] = rng.choice((0, 255, 128, rng.randrange(256)))
    before, after = content[:place], content[place:]
    ways = (before, before + rng.randbytes(few) + after, before + after[few:], before + bytes(few) + after)
    return rng.choice((*ways, content + after, bytes(flipped)))


def _value(rng: random.Random, sandbox: str) -> Any:
    value = rng.choice(_VALUES)
    return value.replace("{sandbox}", sandbox) if isinstance(value, str) else value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: what it is in, and its key or number there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((value, key), *_places(one))]


def _json(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    value = json.loads(content)
    places = _places(value)
    where, key = rng.choice(places) if places and rng.random() < 0.95 else ([value], 0)
    how = rng.randrange(8)
    if how == 0:
        del where[key]
    elif how == 1 and isinstance(where, dict):
        where[str(_value(rng, sandbox))[:300]] = where.pop(key)
    elif how == 2 and isinstance(where, list):
        where.extend([where[key]] * rng.choice((1, 1_000)))
    else:
        where[key] = _value(rng, sandbox)
    text = json.dumps(value if places else where[0] if where else None)
    text = text.replace(f'"{_DIGITS}"', "9" * 5_000).replace(f'"{_NESTED}"', "[" * 20_000 + "]" * 20_000)
    return text.encode()


def _json_lines(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    lines = content.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = _json(lines[place], rng, sandbox)
    return b"\n".join(lines) + b"\n"


def _array(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    """Change the header of an ``.npy`` file."""
    length = int.from_bytes(content[8:10], "little")
    header, rest = content[10 : 10 + length], content[10 + length :]
    shape, dtype = rng.choice(_SHAPES), rng.choice(_TYPES)
    header = rng.choice(
        (
            re.sub(rb"'shape': \([^)]*\)", f"'shape': {shape}".encode(), header),
            re.sub(rb"'descr': '[^']*'", f"'descr': {dtype!r}".encode(), header),
            rng.choice(_HEADERS),
            corrupted(header, rng, sandbox),
        )
    )
    version = rng.choice((content[6:8], content[6:8], b"\x02\x00", b"\x03\x00", b"\x09\x09"))
    width = 2 if version == b"\x01\x00" else 4
    return content[:6] + version + len(header).to_bytes(4, "little")[:width] + header + rest


def _archive(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    """Change, drop, double, rename or over-pack a member."""
    with _zip(content) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    name, member = members.pop(rng.randrange(len(members)))
    how = rng.choice(("array", "array", "array", "drop", "double", "rename", "bomb", "lzma"))
    if how == "array":
        members.append((name, _array(member, rng, sandbox)))
    elif how == "double":
        members += [(name, member), (name, corrupted(member, rng, sandbox))]
    elif how == "rename":
        members.append((rng.choice(("../x.npy", "/abs.npy", "x", "a b c", "é" * 50)), member))
    elif how == "bomb":
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}" % (300 << 20)
        members.append(
            (name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(300 << 20))
        )
    elif how == "lzma":
        return pack([*members, (name, member)], zipfile.ZIP_LZMA)
    return pack(members)


def _zip(content: bytes) -> zipfile.ZipFile:
    import io

    return zipfile.ZipFile(io.BytesIO(content))


def _packed(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    inside = gzip.decompress(content)
    how = rng.randrange(5)
    if how == 0:
        return gzip.compress(bytes(300 << 20).replace(b"\0", b" "), 1)
    if how == 1:
        return content + rng.randbytes(30)
    return gzip.compress(content if how == 2 else corrupted(inside, rng, sandbox), mtime=0)


def _toml(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    lines = content.decode().splitlines()
    place = rng.choice([place for place, line in enumerate(lines) if "=" in line])
    changed = f"{lines[place].partition('=')[0]}= {rng.choice(_TOML)}"
    lines[place : place + 1] = rng.choice(([], [lines[place]] * 2, [changed], [changed], [changed]))
    return ("\n".join(lines) + "\n").encode()


def _text(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    """Change a word, the encoding or the order of lines."""
    text = content.decode()
    how = rng.randrange(5)
    if how < 3:
        value = str(rng.choice((*TEXTS, *TEXTS, *NUMBERS))).replace("{sandbox}", sandbox)
        word = rng.choice(re.findall(r"[\w.-]+", text))
        return text.replace(word, value, 1).encode("utf-8", "surrogatepass")
    if how == 3:
        return text.encode(rng.choice(("utf-16", "latin-1", "utf-32", "cp037")), "replace")
    lines = text.splitlines(keepends=True)
    rng.shuffle(lines)
    return "".join(lines * rng.choice((1, 2))).encode()


def _tensors(content: bytes, rng: random.Random, sandbox: str) -> bytes:
    """Change the JSON header of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header = _json(content[8 : 8 + length], rng, sandbox)
    size = rng.choice((len(header), len(header), len(header), 1 << 62, 0))
    return size.to_bytes(8, "little") + header + content[8 + length :]


_OF_ENDING: dict[str, Mutation] = {
    **{".json": _json, ".jsonl": _json_lines, ".npy": _array, ".npz": _archive, ".gz": _packed},
    **{".toml": _toml, ".csv": _text, ".txt": _text, ".xml": _text, ".safetensors": _tensors},
}
