"""Runs of scenes made here or in other processes, in order.

The other processes are plain interpreters that read a chunk per line and answer a line. They do not
import the program that started them, as those of ``multiprocessing`` do: a script needs no
``if __name__ == "__main__"``, and neither standard input nor a notebook is a special case.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diptych.core.errors import DiptychError
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
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
    workers = min(workers, len(chunks))
    if workers <= 1:
        yield from map(make_chunk, chunks)
        return
    with ExitStack() as stack:
        idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        for _ in range(workers):
            process = _start()
            stack.callback(_stop, process)
            idle.put(process)

        def ask(chunk: Chunk) -> list[dict[str, Any]]:
            process = idle.get()
            try:
                return _ask(process, chunk)
            finally:
                idle.put(process)

        pool = stack.enter_context(ThreadPoolExecutor(workers))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        yield from pool.map(ask, chunks)


def _start() -> subprocess.Popen[str]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
    )


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):  # a request that the process did not live to read
                stream.close()
    process.wait()


def _ask(process: subprocess.Popen[str], chunk: Chunk) -> list[dict[str, Any]]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(chunk)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        raise DiptychError(
            f"a process that drew scenes ended without an answer (exit code {process.wait()})",
            "see its message above, or pass workers=1",
        )
    reply = json.loads(answer)
    if "errno" in reply:
        raise OSError(reply["errno"], reply["message"])
    images: list[dict[str, Any]] = reply["images"]
    return images


def serve() -> None:
    """What another process runs: a chunk per line of standard input, a line of entries for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"images": make_chunk(Chunk(**json.loads(line)))}
        except OSError as error:
            reply = {"errno": error.errno, "message": error.strerror or str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
