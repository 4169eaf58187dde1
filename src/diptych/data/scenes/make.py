"""Generate a dataset of scenes, and read it.

A scene depends on (seed, split, index, k, size, objects) alone. So any number of processes makes the same
bytes, and a larger dataset begins with the scenes of the smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import UsageError
from diptych.core.processes import available_cores, in_processes
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource
from diptych.data.scenes.cached import Specification, cached_dataset, read_header
from diptych.data.scenes.captions import finer as with_finer_captions
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import ROLES
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


VERSION = 1
"""Raised whenever the same seed would give other pictures or captions; part of the cache's key."""

_CHUNK = 64
_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many
_SMALLEST, _LARGEST = 32, 1024


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
    counts = dict(zip(SPLITS, (n_train, n_val, n_test), strict=True))
    total = sum(counts.values())
    both = _range_of(objects)
    if min(counts.values()) < 0 or not total:
        raise UsageError(f"{counts} scenes were asked for", "give counts of 0 or more, not all 0")
    if k < 1:
        raise UsageError(f"{k} captions per image were asked for", "give k=1 or more")
    check_size(size)
    if workers is None:
        workers = 1 if total < _SERIAL_BELOW else available_cores()
    check_workers(workers)

    def write(folder: Path) -> dict[str, Any]:
        images: list[dict[str, Any]] = []
        with task("drawing scenes", total, "pictures") as bar:
            for made in in_processes(list(chunks(folder)), make_chunk, workers, ordered=True):
                images.extend(made)
                bar.advance(len(made))
        return {"images": images}

    def chunks(folder: Path) -> Iterator[Chunk]:
        before = 0
        for split, count in counts.items():
            if count:
                (folder / split).mkdir()
            for start in range(0, count, _CHUNK):
                yield Chunk(
                    seed, k, size, split, start, min(start + _CHUNK, count), before, str(folder), both
                )
            before += count

    parameters = {"n_train": n_train, "n_val": n_val, "n_test": n_test, "seed": seed, "k": k, "size": size}
    # The usual number of objects goes without saying, as it did before there was another.
    wanted = Specification(
        "scenes",
        "scenes",
        VERSION,
        parameters if both == OBJECTS else {**parameters, "objects": both},
        usual={"objects": OBJECTS},
    )
    return cached_dataset(folder, wanted, write)


def check_size(size: int) -> None:
    """Raise UsageError unless pictures can have this side."""
    if not _SMALLEST <= size <= _LARGEST:
        raise UsageError(f"pictures of {size} pixels were asked for", f"give size={_SMALLEST} to {_LARGEST}")


def check_workers(workers: int) -> None:
    """Raise UsageError unless there is a process to work."""
    if workers < 1:
        raise UsageError(f"{workers} workers were asked for", "give workers=1 or more")


def _range_of(objects: int | Sequence[int]) -> tuple[int, int]:
    """Return the least and the most objects of a scene."""
    both = (objects, objects) if isinstance(objects, int) else tuple(objects)
    if len(both) != 2:
        raise UsageError(
            f"objects are {list(both)}", "give a number of objects, or the least and the most of them"
        )
    least, most = map(int, both)
    if not 1 <= least <= most <= len(ROLES):
        raise UsageError(
            f"scenes of {least} to {most} objects were asked for",
            f"give objects=1 to {len(ROLES)}, or the least and the most of them",
        )
    return least, most


def read_scenes(folder: Path | str, finer: int = 0) -> Collection:
    """Read what :func:`make_scenes` made."""
    if not isinstance(finer, int) or isinstance(finer, bool) or finer < 0:
        raise UsageError(f"finer is {finer!r}", "give the number of further topics, e.g. finer=2, or 0")
    header = read_header(folder, "scenes", "scenes", VERSION, "diptych data scenes")
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
