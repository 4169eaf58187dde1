"""From a collection and an encoder to embeddings on disk, block by block: a block depends only on its number."""

import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import RESUME, check_stop, stopping, task, track
from diptych.core.errors import (
    CaptionError,
    DiptychError,
    ImageError,
    Interrupted,
    MismatchError,
    NumericalError,
    UsageError,
)
from diptych.core.files import check_replaceable
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder, try_lock
from diptych.core.processes import in_processes
from diptych.data.collection import Collection
from diptych.data.loading import default_workers, each_picture_content, read_ahead
from diptych.data.row_store import RowPlan, RowStore
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.encoders.given_rows import GivenRows

logger: logging.Logger = logging.getLogger(__name__)

_IMAGE_BLOCK = 64
_TEXT_BLOCK = 8192
_BLOCKS_PER_TASK = 8  # that lie together, so that one of several processes can read ahead


def device_for(accelerator: str, processes: int) -> str:
    """Return ``"cpu"`` or ``"cuda"`` for several processes of this machine, one GPU each."""
    import torch

    if accelerator not in ("auto", "cpu", "cuda", "gpu"):
        raise UsageError(f"accelerator {accelerator!r} with {processes} processes", "use cpu, cuda or auto")
    gpus = torch.cuda.device_count()
    if accelerator == "cpu" or (accelerator == "auto" and not gpus):
        return "cpu"
    if processes > gpus:
        raise UsageError(f"{processes} processes for {gpus} GPUs", "one process per GPU, or accelerator cpu")
    return "cuda"


@dataclass(frozen=True)
class _Half:
    kind: str  # "image" or "text"
    store: RowStore
    ids: Sequence[str]
    embedded: dict[str, Any]  # further fields of the embeddings

    def follow(self, counts: Iterable[int], done: int | None = None) -> None:
        """Show how many rows there are, ``done`` of them from before."""
        plan, done = self.store.plan, self.store.done() if done is None else done
        with task(f"embedding {plan.noun}", plan.count, plan.noun, done) as bar:
            for count in counts:
                bar.advance(count)


def encode_collection(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,
    split: str | None = None,
    *,
    processes: int = 1,
    accelerator: str = "auto",
    ray: bool = False,
    contents: Sequence[str] | None = None,
) -> EncodedCollection:
    """Embed images and captions into ``folder``, or open what is there when it is the same.

    "The same" is: the same encoder fingerprint, ids, captions and bytes of images. Of the same, what an
    interrupted call had finished is used, and what is missing or corrupt is recreated.

    Args:
        split: of the collection, for the metadata.
        processes: of this machine that share the work, each with an encoder of its own.
        accelerator: of several processes: ``cpu``, ``cuda`` (one GPU each) or ``auto``.
        ray: the processes are actors of the Ray cluster that this process belongs to, or starts.
        contents: fingerprint of each image's bytes, where they are known; they are not read for it then.
    """
    folder = Path(folder)
    if processes < 1:
        raise UsageError(f"{processes} processes", "give 1 or more")
    shared = (processes > 1 or ray) and not isinstance(encoder, GivenRows)
    if shared and getattr(encoder, "base", encoder).family in ("wrapped", "mteb"):
        text = f"{encoder.name} is made of functions given in Python, which other processes do not have"
        raise UsageError(text, "use one process")
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
            "read the data with the reader's option regions=FILE.npy, or without it",
        )
    metadata = metadata_of(encoder, collection, split, contents)
    if (found := _finished(folder, metadata)) is not None:
        return found
    for name in sorted(EncodedCollection.PARTS):
        check_replaceable(folder / name, Embeddings.marker())
    with exclusive_folder(folder):
        (folder / EncodedCollection.marker()).unlink(missing_ok=True)
        halves = _halves(encoder, collection, folder, metadata)
        if shared:
            _encode_in_processes(encoder, collection, halves, processes, accelerator, ray)
        else:
            for half in halves:
                blocks = half.store.missing().tolist()
                made = encoded_blocks(encoder, collection, half.kind, half.store.plan, blocks)
                half.follow(write_blocks(half.store, made))
                if stopping():
                    break
        _finish(halves)
        images, texts = (Embeddings.open(folder / name) for name in ("images", "texts"))
        EncodedCollection(images, texts, collection.caption_image, metadata).write_header(folder)
    return EncodedCollection.open(folder)


def stored_collection(
    encoder: DualEncoder, collection: Collection, folder: Path | str, split: str | None = None
) -> EncodedCollection | None:
    """Open the embeddings in ``folder`` where :func:`encode_collection` would use them as they are."""
    folder = Path(folder)
    if not EncodedCollection.is_at(folder) or encoder.takes != collection.holds:
        return None
    return _finished(folder, metadata_of(encoder, collection, split))


def _finished(folder: Path, metadata: dict[str, Any]) -> EncodedCollection | None:
    try:
        found = EncodedCollection.open(folder) if EncodedCollection.is_at(folder) else None
    except DiptychError:
        return None  # corrupt: recreated
    return found if found is not None and found.about == metadata else None


def contents_of(collection: Collection) -> Iterator[str]:
    """Yield a fingerprint of each image's bytes until a stop is requested."""
    for content in each_picture_content(collection):
        yield content
        check_stop("stopped while images were read for the first time", "the same command begins anew")


def metadata_of(
    encoder: DualEncoder, collection: Collection, split: str | None, contents: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the metadata that embeddings of a collection have; reads its images where ``contents`` are not known."""
    read: Any = contents_of(collection) if contents is None else iter(contents)
    if isinstance(encoder, GivenRows):  # of which the images need not be there
        read = encoder.fingerprint
    return {
        "dataset": collection.name,
        "split": split,
        "data": fingerprint(collection.text_fingerprint, read),
        "encoder": encoder.describe(),
        "notes": list(collection.notes),
    }


def _halves(
    encoder: DualEncoder, collection: Collection, folder: Path, metadata: dict[str, Any]
) -> list[_Half]:
    halves = []
    for name, kind, noun, ids, block in (
        ("images", "image", "images", collection.image_ids, _IMAGE_BLOCK),
        ("texts", "text", "captions", collection.caption_ids, _TEXT_BLOCK),
    ):
        embedded = {
            "encoder": encoder.fingerprint,
            "data": metadata["data"],
            "kind": kind,
            "about": metadata,
            "similarity": encoder.similarity,
        }
        try:
            found = Embeddings.open(folder / name)
            if len(found) == len(ids) and all(getattr(found, key) == embedded[key] for key in embedded):
                continue  # finished before something interrupted the other half
        except DiptychError:
            pass  # missing or corrupt
        of = {key: value for key, value in embedded.items() if key != "about"}
        plan = RowPlan(of, len(ids), (encoder.width,), block, noun=noun)
        halves.append(_Half(kind, RowStore.begin(folder / name, plan), ids, embedded))
    return halves


def _finish(halves: Sequence[_Half]) -> None:
    if any(len(half.store.missing()) for half in halves):
        counts = [(half.store.done(), half.store.plan) for half in halves]
        done = " and ".join(f"{count:,} of {plan.count:,} {plan.noun}" for count, plan in counts)
        raise Interrupted(f"stopped: {done} are embedded and kept", RESUME)
    for half in halves:
        half.store.finish(partial(Embeddings, half.ids, **half.embedded))


def encoded_blocks(
    encoder: DualEncoder,
    collection: Collection,
    kind: str,
    plan: RowPlan,
    blocks: Sequence[int],
    threads: int | None = None,
) -> Generator[tuple[int, np.ndarray], None, None]:
    """Encode blocks of a collection's images or captions; yield their numbers and rows."""
    if isinstance(encoder, GivenRows):
        work = encoder.blocks(collection, kind, map(plan.rows_of, blocks))
    elif kind == "image":
        work = _images(encoder, collection, plan, blocks, threads)
    else:
        work = _captions(encoder, collection, plan, blocks)
    with closing(work):
        yield from zip(blocks, work, strict=True)


def write_blocks(store: RowStore, made: Generator[tuple[int, np.ndarray], None, None]) -> Iterator[int]:
    """Write blocks, and yield how many rows each has, until a stop is requested."""
    with store, closing(made):
        for block, rows in made:
            store.write(block, rows)
            yield len(rows)
            if stopping():
                return


def _images(
    encoder: DualEncoder, collection: Collection, plan: RowPlan, blocks: Sequence[int], threads: int | None
) -> Generator[np.ndarray, None, None]:
    def prepared(row: int) -> tuple[str, Any]:
        name = collection.image_ids[row]
        with _naming(f"image {name}", [name]):
            return name, encoder.prepared(collection.item(row), name)

    # Images that are not preprocessed may be large: of them few are held.
    threads = default_workers() if threads is None else threads
    torch = sys.modules.get("torch")  # where an encoder needs it, it has been imported
    prepare_next = torch is not None and encoder.prepares and bool(torch.cuda.is_available())
    for block in plan.read_blocks(prepared, blocks, threads, prepare_next):
        names, items = zip(*block, strict=True)
        with _naming(f"among images {names[0]} to {names[-1]}", names):
            rows = encoder.encode_prepared(items, names)
        yield rows


def _captions(
    encoder: DualEncoder, collection: Collection, plan: RowPlan, blocks: Sequence[int]
) -> Generator[np.ndarray, None, None]:
    for block in blocks:
        places = plan.rows_of(block)
        first = collection.caption_ids[places.start]
        with _naming(f"of the captions from {first} on", [first]):
            rows = encoder.encode_texts(list(collection.captions[places.start : places.stop]))
        yield rows


@contextmanager
def _naming(what: str, names: Sequence[str]) -> Iterator[None]:
    """Put ``what`` before the message of an error that has none of ``names`` in it."""
    try:
        yield
    except (ImageError, CaptionError, NumericalError) as error:
        if any(name in error.message for name in names):
            raise
        raise type(error)(f"{what}: {error.message}", error.fix) from None


def _encode_in_processes(
    encoder: DualEncoder,
    collection: Collection,
    halves: Sequence[_Half],
    processes: int,
    accelerator: str,
    ray: bool,
) -> None:
    device = "" if ray else device_for(accelerator, processes)
    collection = replace(collection, records=None, caption_records=None)
    try:
        pickle.dumps(collection)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the collection cannot be sent to other processes: {error}", "use one process"
        ) from error
    tasks = []
    for half in halves:
        missing = half.store.missing()
        size = max(1, min(_BLOCKS_PER_TASK, -(-len(missing) // processes)))
        parts = [missing[start : start + size].tolist() for start in range(0, len(missing), size)]
        tasks.append([(half.kind, half.store.target, half.store.plan, part) for part in parts])
    flat = [one for part in tasks for one in part]
    if not flat:
        return
    target = halves[0].store.target
    # Under a name that the next use of the folder removes where a kill leaves it.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent) as home:
        saved = encoder.save(Path(home) / "encoder")
        if ray:
            from diptych.encoders.encode_ray import encode_over_ray

            encode_over_ray(saved, encoder.fingerprint, collection, halves, processes, accelerator)
            return
        threads = max(1, default_workers() // processes)
        share = (saved, encoder.fingerprint, collection, device, threads)
        begun = [half.store.done() for half in halves]  # before any process writes
        counts = in_processes(flat, _encode_task, processes, worker, share, ordered=True)
        for half, part, done in zip(halves, tasks, begun, strict=True):
            half.follow(islice(counts, len(part)), done)
        next(counts, None)  # processes that are still loading the encoder end before it is removed


def worker(
    saved: Path, fingerprint: str, collection: Collection, device: str, threads: int
) -> tuple[DualEncoder, Collection, int]:
    """Load a saved encoder in a process of its own."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)
    named = f"cuda:{_free_gpu(saved.parent)}" if device == "cuda" else device
    encoder = DualEncoder.load(saved, device=named)
    if encoder.fingerprint != fingerprint:
        raise MismatchError(
            f"the encoder was {fingerprint}, saved and loaded it is {encoder.fingerprint}",
            "its family does not save all that matters: use one process",
        )
    return encoder, collection, threads


def _encode_task(
    worker: tuple[DualEncoder, Collection, int], blocks: tuple[str, Path, RowPlan, list[int]]
) -> int:
    encoder, collection, threads = worker
    kind, target, plan, part = blocks
    made = encoded_blocks(encoder, collection, kind, plan, part, threads)
    return sum(write_blocks(RowStore(target, plan), made))


def _free_gpu(folder: Path) -> int:
    import torch

    for number in range(torch.cuda.device_count()):
        file = folder / f"gpu-{number}"
        file.touch()
        try:
            try_lock(file)  # the handle stays open as long as the process
        except BlockingIOError:
            continue
        return number
    raise UsageError("there are more processes than GPUs", "use fewer processes")


def without_bad_images(collection: Collection) -> tuple[Collection, list[str]]:
    """Return the collection without images that cannot be read, and what was wrong with each; reads every image."""

    def problem(row: int) -> str:
        try:
            collection.item(row)
        except ImageError as error:
            return error.message
        return ""

    messages = read_ahead(problem, range(collection.n_images))
    found = list(track(messages, "checking images", collection.n_images, "images"))
    problems = [message for message in found if message]
    for message in problems:
        logger.warning("left out: %s", message)
    good = np.flatnonzero([not message for message in found])
    return (collection.subset(good) if problems else collection), problems
