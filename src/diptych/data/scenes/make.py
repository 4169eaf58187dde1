"""Making a dataset of scenes, once, and finding it again.

A scene depends on (seed, split, index, k, size, objects) alone. So any number of processes makes the same
bytes, and a larger dataset begins with the scenes of the smaller one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, cache_root, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.processes import available_cores, in_processes
from diptych.core.reading import read_json
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource
from diptych.data.scenes.captions import finer as with_finer_captions
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import ROLES
from diptych.data.scenes.made_once import HEADER, Wanted, found, refuse_strange
from diptych.data.scenes.world import OBJECTS, SPLITS, generator, world_of


@dataclass(frozen=True)
class Chunk:
    """Scenes ``start`` to ``stop`` of one split, of a dataset with ``before`` scenes ahead of the split.

    ``folder`` holds a folder for the split; the pictures go there. ``objects`` are the least and the most
    objects of a scene.
    """

    seed: int
    k: int
    size: int
    split: str
    start: int
    stop: int
    before: int
    folder: str
    objects: tuple[int, int] = OBJECTS


def make_chunk(chunk: Chunk) -> list[dict[str, Any]]:
    """Draw the scenes of one chunk and describe them: one entry of ``dataset.json`` per scene."""
    images = []
    for index in range(chunk.start, chunk.stop):
        name = (chunk.seed, chunk.split, index)
        world = world_of(*name, chunk.objects)
        facts = world.facts()
        filename = f"{chunk.split}/{index:06}.png"
        picture = draw_world(world, generator(*name, "picture"), chunk.size)
        # noise does not compress: level 1 is about as small as level 9 here, and several times faster
        picture.save(Path(chunk.folder, filename), "PNG", compress_level=1)
        image = chunk.before + index
        sentences = [
            {
                "raw": caption.text,
                "sentid": image * chunk.k + number,
                "imgid": image,
                "states": list(caption.states),
            }
            for number, caption in enumerate(write_captions(facts, generator(*name, "captions"), chunk.k))
        ]
        images.append(
            {
                "filename": filename,
                "imgid": image,
                "split": chunk.split,
                "sentids": [sentence["sentid"] for sentence in sentences],
                "facts": facts,
                "sentences": sentences,
            }
        )
    return images


def make_chunks(chunks: Sequence[Chunk], workers: int) -> Iterator[list[dict[str, Any]]]:
    """Make chunks, in this process (``workers`` = 1) or in others, and yield their entries in order."""
    return in_processes(chunks, make_chunk, workers, ordered=True)


VERSION = 1
"""Raised whenever the same seed would give other pictures or captions; part of the cache's key."""

DATASET_FILE = HEADER

_CHUNK = 64
_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many
_SMALLEST, _LARGEST = 32, 1024


@dataclass(frozen=True)
class _Parameters:
    n_train: int
    n_val: int
    n_test: int
    seed: int
    k: int
    size: int
    objects: tuple[int, int] = OBJECTS

    def check(self) -> None:
        counts = self.counts()
        if min(counts.values()) < 0 or not sum(counts.values()):
            raise UsageError(f"{counts} scenes were asked for", "give counts of 0 or more, not all 0")
        if self.k < 1:
            raise UsageError(f"{self.k} captions per image were asked for", "give k=1 or more")
        if not _SMALLEST <= self.size <= _LARGEST:
            raise UsageError(
                f"pictures of {self.size} pixels were asked for", f"give size={_SMALLEST} to {_LARGEST}"
            )
        least, most = self.objects
        if not 1 <= least <= most <= len(ROLES):
            raise UsageError(
                f"scenes of {least} to {most} objects were asked for",
                f"give objects=1 to {len(ROLES)}, or the least and the most of them",
            )

    def counts(self) -> dict[str, int]:
        return dict(zip(SPLITS, (self.n_train, self.n_val, self.n_test), strict=True))

    def fingerprint(self) -> str:
        return fingerprint("scenes", VERSION, self.said())

    def said(self) -> dict[str, Any]:
        """What ``dataset.json`` says of them; the usual number of objects goes without saying, as it did
        before there was another."""
        said = asdict(self)
        if self.objects == OBJECTS:
            del said["objects"]
        return said

    def chunks(self, folder: Path) -> Iterator[Chunk]:
        before = 0
        for split, count in self.counts().items():
            for start in range(0, count, _CHUNK):
                stop = min(start + _CHUNK, count)
                yield Chunk(
                    self.seed, self.k, self.size, split, start, stop, before, str(folder), self.objects
                )
            before += count


def make_scenes(
    folder: Path | str | None = None,
    n_train: int = 4000,
    n_val: int = 500,
    n_test: int = 500,
    *,
    seed: int = 0,
    k: int = 5,
    size: int = 64,
    objects: int | Sequence[int] = OBJECTS,
    workers: int | None = None,
) -> Path:
    """Make a dataset of scenes, or find the one made earlier: PNG files and ``dataset.json``.

    Args:
        size: side of the square pictures, in pixels.
    """
    parameters = _Parameters(n_train, n_val, n_test, seed, k, size, _range_of(objects))
    parameters.check()
    if workers is not None and workers < 1:
        raise UsageError(f"{workers} workers were asked for", "give workers=1 or more")
    target = cache_root() / "scenes" / parameters.fingerprint() if folder is None else Path(folder)
    wanted = Wanted(
        "scenes", "scenes", VERSION, parameters.fingerprint(), asdict(parameters), {"objects": OBJECTS}
    )
    if _is_whole(target, wanted):
        return target
    refuse_strange(target, wanted)
    total = sum(parameters.counts().values())
    if workers is None:
        workers = 1 if total < _SERIAL_BELOW else available_cores()
    with atomic_folder(target) as temporary, task("drawing scenes", total, "pictures") as bar:
        for split, count in parameters.counts().items():
            if count:
                (temporary / split).mkdir()
        images: list[dict[str, Any]] = []
        for made in make_chunks(list(parameters.chunks(temporary)), workers):
            images.extend(made)
            bar.advance(len(made))
        header = {
            "dataset": "scenes",
            "version": VERSION,
            "fingerprint": parameters.fingerprint(),
            **parameters.said(),
            "images": images,
        }
        # without indentation: half the size, and several times faster to write and to read
        write_text(temporary / DATASET_FILE, json.dumps(header, separators=(",", ":")) + "\n")
    return target


def _range_of(objects: int | Sequence[int]) -> tuple[int, int]:
    """The least and the most objects of a scene."""
    both = (objects, objects) if isinstance(objects, int) else tuple(objects)
    if len(both) != 2:
        raise UsageError(
            f"objects are {list(both)}", "give a number of objects, or the least and the most of them"
        )
    return int(both[0]), int(both[1])


def _is_whole(folder: Path, wanted: Wanted) -> bool:
    """Whether ``folder`` holds exactly this dataset, with every picture."""
    header = found(folder, wanted)
    return header is not None and all((folder / image["filename"]).is_file() for image in header["images"])


def read_scenes(folder: Path | str, finer: int = 0) -> Collection:
    """Read what :func:`make_scenes` made."""
    if not isinstance(finer, int) or isinstance(finer, bool) or finer < 0:
        raise UsageError(f"finer is {finer!r}", "give the number of further topics, e.g. finer=2, or 0")
    path = Path(folder) / DATASET_FILE
    header = read_json(path)
    if not isinstance(header, dict) or header.get("dataset") != "scenes":
        raise DataError(f"{path} holds no scenes", "make them with `diptych scenes`")
    if header.get("version") != VERSION:
        raise DataError(
            f"{path} holds scenes of version {header.get('version')}, this version reads {VERSION}",
            "make them again with `diptych scenes`",
        )
    images = header["images"]
    least, most = header.get("objects", OBJECTS)
    shown = ""
    if (least, most) != OBJECTS:
        numbers = f"{least}" if least == most else f"{least} to {most}"
        shown = f", {numbers} {'object' if most == 1 else 'objects'} per image"
    names = [image["filename"] for image in images]
    sentences = [sentence for image in images for sentence in image["sentences"]]
    counts = [len(image["sentences"]) for image in images]
    collection = Collection(
        name="scenes",
        image_ids=names,
        captions=[sentence["raw"] for sentence in sentences],
        caption_ids=[str(sentence["sentid"]) for sentence in sentences],
        caption_image=np.repeat(np.arange(len(images), dtype=np.int64), counts),
        splits=[image["split"] for image in images],
        source=FolderSource(folder, names),
        source_rows=np.arange(len(images), dtype=np.int64),
        records=[{"facts": image["facts"]} for image in images],
        caption_records=[{"states": tuple(sentence["states"])} for sentence in sentences],
        notes=(
            f"scenes version {VERSION}, seed {header['seed']}, {header['size']} pixels, "
            f"{header['k']} captions per image{shown}",
        ),
        centric=_centric(least, most),
    )
    return with_finer_captions(collection, finer) if finer else collection


def _centric(least: int, most: int) -> Centric | None:
    """Several objects make a scene; where some pictures have one and some several, nobody can say."""
    return "object" if most == 1 else "scene" if least > 1 else None


def scenes(
    n_train: int = 4000,
    n_val: int = 500,
    n_test: int = 500,
    *,
    seed: int = 0,
    k: int = 5,
    size: int = 64,
    objects: int | Sequence[int] = OBJECTS,
    workers: int | None = None,
    folder: Path | str | None = None,
    finer: int = 0,
) -> Collection:
    """Make the scenes, or find them in the cache, and read them.

    Arguments are as in :func:`make_scenes`, ``finer`` as in :func:`read_scenes`: it changes no picture.
    """
    made = make_scenes(
        folder, n_train, n_val, n_test, seed=seed, k=k, size=size, objects=objects, workers=workers
    )
    return read_scenes(made, finer)
