"""Runs of scenes made here or in other processes, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.processes import answer_lines, in_order
from diptych.data.scenes.world import OBJECTS, generator, world_of

__all__ = ["Chunk", "make_chunk", "make_chunks", "serve"]

_PROGRAM = "from diptych.data.scenes.chunks import serve; serve()"


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
    """Make chunks, in this process (``workers`` = 1) or in others, and yield their entries in order.

    Raises:
        OSError: a picture could not be written, here or there.
        DiptychError: another process ended without an answer.
    """
    return in_order(make_chunk, chunks, workers, _PROGRAM)


def serve() -> None:
    """What another process runs: a chunk per line of standard input, a line of entries for each."""
    answer_lines(lambda given: make_chunk(Chunk(**given)))
