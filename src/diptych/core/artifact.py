"""Artifact: a dataclass that can be saved and opened.

::

    @dataclass(frozen=True, eq=False)
    class Counts(Artifact, kind="counts", recreate="diptych analyse cocos RUN"):
        objective: str
        spread: Spread                     # another dataclass
        per_query: dict[str, np.ndarray]   # arrays are stored next to the header

    counts.save("out")        # a folder: counts.json, arrays.npz
    counts.save("out.npz")    # one file with header and arrays
    counts.save("out.json")   # one file; for artifacts without arrays
    Counts.open("out")

A field ``folder`` that is not among the arguments (``init=False``) is where the artifact was opened.

The fields' types are the format: a value of another type, a missing field, another version, another kind
or other bytes are refused by :meth:`Artifact.open` with what to do. Saving is atomic in all three layouts.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import shlex
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from diptych.core.errors import StorageError, nearest_path
from diptych.core.files import atomic_folder, atomic_path, recover_folder, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import file_errors, map_array, parse_json, read_arrays, read_json

if TYPE_CHECKING:
    import numpy as np

ARRAYS = "arrays.npz"
_HEADER = "header"
_ARRAY, _NUMBER = "@array", "@number"
# Key of a field's metadata: its name on disk, where files were written before the field was renamed.
STORED_AS = "stored_as"
# What a word in a command can be, where it is not the artifact of that name.
_HELD = {"RUN": ("run", "embedded_collection", "sparse", "diptych")}

T = TypeVar("T")


class Artifact:
    """Base of every dataclass that is kept on disk.

    Class arguments:
        kind: names the artifact in its header, its folder's marker (``KIND.json``) and in messages.
        version: of its format; another one is refused.
        recreate: the command that makes another one, for messages.
        mapped: fields whose arrays are ``.npy`` files, memory-mapped when opened.
        files: fields that :meth:`write_files` writes and :meth:`read_files` reads.
        parts: fields that are artifacts themselves, each in its own folder. A folder of parts is written in
            place, its marker last: without the marker it is not finished.
    """

    KIND: ClassVar[str] = ""
    FORMAT: ClassVar[int] = 1
    RECREATE: ClassVar[str] = ""
    MAPPED: ClassVar[frozenset[str]] = frozenset()
    FILES: ClassVar[frozenset[str]] = frozenset()
    PARTS: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls,
        kind: str = "",
        version: int = 1,
        recreate: str = "",
        mapped: Iterable[str] = (),
        files: Iterable[str] = (),
        parts: Iterable[str] = (),
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        if kind:
            cls.KIND, cls.FORMAT, cls.RECREATE, cls.MAPPED = kind, version, recreate, frozenset(mapped)
            cls.FILES, cls.PARTS = frozenset(files), frozenset(parts)

    @classmethod
    def marker(cls) -> str:
        """Return the name of the header's file in a folder."""
        return f"{cls.KIND}.json"

    def write_files(self, folder: Path) -> None:
        """Write further files into the folder before it gets its name; overridden where there are any."""

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that :meth:`write_files` wrote; ``content`` is the header's."""
        return {}

    def save(self, path: Path | str, of: str = "", also: Callable[[Path], object] | None = None) -> Path:
        """Write a ``.json`` file, an ``.npz`` file or a folder; all or nothing.

        Args:
            path: its ending chooses the layout.
            of: fingerprint of what it was made from, checked by :meth:`open`.
            also: writes further files into a folder, such as a page, before it gets its name.

        Raises:
            UsageError: the folder holds other things; one with parts is filled in place and keeps them.
            StorageError: the write failed; an older version is untouched.
        """
        path = Path(path)
        header, arrays = self._encoded(of)
        if path.suffix == ".json":
            if arrays:
                raise TypeError(
                    f"{self.KIND} has arrays ({', '.join(arrays)}): save it as .npz or as a folder"
                )
            write_json(path, header)
        elif path.suffix == ".npz":
            import numpy as np

            text = json.dumps(header, ensure_ascii=False, allow_nan=False)
            write_arrays(path, {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays})
        elif self.PARTS:
            (path / self.marker()).unlink(missing_ok=True)
            for name in sorted(self.PARTS):
                getattr(self, name).save(path / name)
            self.write_header(path, of)
        else:
            with atomic_folder(path, self.marker()) as temporary:
                if also is not None:
                    also(temporary)
                self._write_into(temporary, header, arrays)
        return path

    def write_header(self, folder: Path, of: str = "") -> None:
        """Write all but the parts into a folder that is filled in place; arrays mapped from it stay as they are."""
        header, arrays = self._encoded(of)
        missing = {name: array for name, array in arrays.items() if not _lies_in(array, folder)}
        self._write_into(folder, header, missing)

    def _write_into(self, folder: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        import numpy as np

        self.write_files(folder)
        for name in [name for name in arrays if name.split("/")[0] in self.MAPPED]:
            array = np.ascontiguousarray(arrays.pop(name))
            np.save(_array_file(folder, name), array, allow_pickle=False)
        if arrays:
            write_arrays(folder / ARRAYS, arrays)
        write_json(folder / self.marker(), header)

    def _encoded(self, of: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays: dict[str, np.ndarray] = {}
        content = encode(self, arrays, leave_out=self.FILES | self.PARTS)
        header = {
            "artifact": self.KIND,
            "format": self.FORMAT,
            "of": of,
            "fingerprint": fingerprint(content),
            "content": content,
        }
        return header, arrays

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            StorageError: nothing is there, it is corrupt, of another kind or version, or made ``of`` other things.
        """
        path = Path(path)
        fix = f"recreate it: {cls.RECREATE}" if cls.RECREATE else "recreate it"
        arrays: Mapping[str, np.ndarray] = {}
        if path.suffix == ".json":
            header = read_json(path, fix=fix)
        elif path.suffix == ".npz":
            arrays = read_arrays(path, fix=fix)
            if _HEADER not in arrays:
                raise StorageError(f"{path} holds no artifact", "check the path, or recreate it")
            header = parse_json(arrays[_HEADER].tobytes(), path)
        else:
            recover_folder(path)
            if not (path / cls.marker()).exists():
                raise StorageError(*not_here(path, cls.KIND, cls.marker(), cls.RECREATE))
            header = read_json(_inside(path, cls.marker()), fix=fix)
        content = cls._checked(header, path, of, fix)
        if path.suffix not in (".json", ".npz"):
            arrays = _folder_arrays(path, content, fix)
        with file_errors(path, fix=fix):
            kept = {name: _stored_fields(cls)[name][1].open(path / name) for name in sorted(cls.PARTS)}  # type: ignore[arg-type]
            kept |= cls.read_files(path, content)
            found: Self = _decode_record(cls, content, arrays, kept)
        own = getattr(cls, "__dataclass_fields__", {}).get("folder")
        if own is not None and not own.init:
            object.__setattr__(found, "folder", path if path.is_dir() else path.parent)
        return found

    @classmethod
    def _checked(cls, header: Any, path: Path, of: str, fix: str) -> Any:
        """Return the header's content once kind, version, origin and fingerprint are right."""
        if not isinstance(header, dict) or header.get("artifact") != cls.KIND:
            found = header.get("artifact", "something else") if isinstance(header, dict) else "something else"
            raise StorageError(f"{path} holds {found}, expected {cls.KIND}", "check the path")
        if header.get("format") != cls.FORMAT:
            raise StorageError(
                f"{path} holds {cls.KIND} of format {header.get('format')}, this version reads {cls.FORMAT}",
                fix,
            )
        if of and header.get("of") != of:
            raise StorageError(f"{path} was made from other inputs ({header.get('of')}, expected {of})", fix)
        content = header.get("content")
        if header.get("fingerprint") != fingerprint(content):
            raise StorageError(f"{path} is corrupt: its content does not have its fingerprint", fix)
        return content

    @classmethod
    def is_at(cls, path: Path | str) -> bool:
        """Return whether a folder holds this kind of artifact; what a kill left of it is repaired first."""
        recover_folder(path)
        return (Path(path) / cls.marker()).is_file()


def not_here(path: Path, kind: str, marker: str, make: str) -> tuple[str, str]:
    """Return what to say of a path that does not hold an artifact: where one is, or the command that makes one.

    A word in capitals in ``make`` becomes the path where it holds that, e.g. a log for ``LOG``.
    """
    if not path.exists():
        return f"{path} does not exist", nearest_path(path) + (f"make one: {make}" if make else "")
    fix = f"make one: {make}" if make else "check the path"
    if found := sorted(path.glob(f"*/{marker}")):
        fix = f"it is in {shlex.quote(str(found[0].parent))}"
    else:
        for word in re.findall(r"\b[A-Z]{2,}\b", make):
            if any((path / f"{one}.json").is_file() for one in _HELD.get(word, (word.lower(),))):
                fix = f"make one: {make.replace(word, shlex.quote(str(path)), 1)}"
    return f"{path} holds no {kind} (no {marker})", fix


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an ``.npz`` file atomically; the same arrays are the same bytes."""
    import numpy as np

    with atomic_path(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, allow_pickle=False, **arrays)


def _lies_in(array: np.ndarray, folder: Path) -> bool:
    file = getattr(array, "filename", None)
    return file is not None and Path(file).parent.resolve() == folder.resolve()


def _array_file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '.').replace(' ', '_')}.npy"


def _folder_arrays(folder: Path, content: Any, fix: str) -> dict[str, np.ndarray]:
    """Open the arrays that a header names: memory-mapped files, and what ``arrays.npz`` holds."""
    stored = read_arrays(_inside(folder, ARRAYS), fix=fix) if (folder / ARRAYS).exists() else {}
    return {
        name: stored[name]
        if name in stored
        else map_array(_inside(folder, _array_file(folder, name).name), fix=fix)
        for name in _array_names(content)
    }


def _inside(folder: Path, name: str) -> Path:
    """Return a file's path; StorageError where a link leads it out of the folder."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise StorageError(
            f"{path} is a link out of the folder, to {path.resolve()}", "copy the file instead"
        )
    return path


def _array_names(content: Any) -> Iterable[str]:
    if isinstance(content, dict):
        if _ARRAY in content:
            yield str(content[_ARRAY])
        else:
            for value in content.values():
                yield from _array_names(value)
    elif isinstance(content, list):
        for value in content:
            yield from _array_names(value)


def encode(
    value: Any, arrays: dict[str, np.ndarray], name: str = "", leave_out: Set[str] = frozenset()
) -> Any:
    """Return ``value`` as JSON-able data; its arrays go to ``arrays`` under the names of their places."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_NUMBER: repr(float(value))}
    kind: Any = type(value)
    if _is_record(kind):
        return {
            stored: encode(getattr(value, key), arrays, _place(name, key))
            for stored, (key, _) in _stored_fields(kind).items()
            if key not in leave_out
        }
    if isinstance(value, Mapping):
        return {str(key): encode(one, arrays, _place(name, str(key))) for key, one in value.items()}
    if hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != ():
        arrays[name] = value
        return {_ARRAY: name}
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a NumPy number
        return encode(value.item(), arrays, name)
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes):
        return [encode(one, arrays, _place(name, str(place))) for place, one in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{name or type(value).__name__}: a {type(value).__name__} cannot be stored")


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or (isinstance(kind, type) and hasattr(kind, "_fields"))


def _place(name: str, key: str) -> str:
    return f"{name}/{key}" if name else key


def decode(kind: Any, value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the value of type ``kind`` that :func:`encode` made ``value`` of; TypeError for any other."""
    if isinstance(value, dict) and value.keys() == {_ARRAY}:
        value = arrays[value[_ARRAY]]
    elif isinstance(value, dict) and value.keys() == {_NUMBER}:
        value = float(value[_NUMBER])
    if kind is Any or isinstance(kind, TypeVar):
        if isinstance(value, dict):
            return {key: decode(Any, one, arrays) for key, one in value.items()}
        return [decode(Any, one, arrays) for one in value] if isinstance(value, list) else value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(inner, value, arrays)
    if origin is Literal:
        return _expect(value in inner, value, kind)
    if origin is typing.Annotated:
        return decode(inner[0], value, arrays)
    if kind is None or kind is type(None):
        return _expect(value is None, value, kind)
    bare = origin or kind
    if _is_record(bare):
        return _decode_record(bare, value, arrays)
    if bare in (int, float, bool, str):
        fits = isinstance(value, bare) or (bare is float and isinstance(value, int))
        _expect(fits and (bare is bool or not isinstance(value, bool)), value, kind)
        return bare(value)
    if bare is Path:
        return Path(_of_type(value, str))
    if bare is tuple:
        return _decode_tuple(inner, value, arrays)
    if hasattr(bare, "model_validate"):
        return bare.model_validate(value)
    if isinstance(bare, type) and issubclass(bare, Mapping):
        first, second = inner or (Any, Any)
        read_key = int if first is int else float if first is float else str
        return {read_key(key): decode(second, one, arrays) for key, one in _of_type(value, dict).items()}
    if hasattr(bare, "__array_interface__") or getattr(bare, "__name__", "") == "ndarray":
        return _expect(hasattr(value, "__array_interface__"), value, kind)
    if isinstance(bare, type) and issubclass(bare, Sequence | Set | Iterable):
        found = [decode(inner[0] if inner else Any, one, arrays) for one in _of_type(value, list)]
        return bare(found) if bare in (set, frozenset) else found
    raise TypeError(f"a field of type {kind} cannot be stored")


def _decode_union(kinds: tuple[Any, ...], value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    for kind in kinds:
        try:
            return decode(kind, value, arrays)
        except (TypeError, ValueError, KeyError):
            continue
    return _expect(False, value, Union[kinds])  # noqa: UP007


def _decode_record(
    kind: Any, value: Any, arrays: Mapping[str, np.ndarray], kept: Mapping[str, Any] | None = None
) -> Any:
    given, fields = _of_type(value, dict), _stored_fields(kind)
    if unknown := given.keys() - fields.keys():
        raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    known = ((*fields[key], one) for key, one in given.items())
    return kind(**{name: decode(hint, one, arrays) for name, hint, one in known}, **(kept or {}))


def _decode_tuple(inner: tuple[Any, ...], value: Any, arrays: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
    given = list(value) if isinstance(value, tuple) else _of_type(value, list)
    if not inner or inner[-1] is Ellipsis:
        return tuple(decode(inner[0] if inner else Any, one, arrays) for one in given)
    _expect(len(given) == len(inner), given, inner)
    return tuple(decode(kind, one, arrays) for kind, one in zip(inner, given, strict=True))


@functools.cache
def _stored_fields(kind: Any) -> dict[str, tuple[str, Any]]:
    """Return name on disk → name and type of a record's fields; types must be importable where the class is defined."""
    hints = typing.get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        fields = [field for field in dataclasses.fields(kind) if field.init]
        return {one.metadata.get(STORED_AS, one.name): (one.name, hints[one.name]) for one in fields}
    return {name: (name, hints[name]) for name in kind._fields}


def _of_type(value: Any, kind: type[Any]) -> Any:
    return _expect(isinstance(value, kind), value, kind)


def _expect(fits: bool, value: T, kind: Any) -> T:
    if not fits:
        raise TypeError(f"{str(value)[:60]!r} is no {getattr(kind, '__name__', kind)}")
    return value
