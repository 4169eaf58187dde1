"""What is served: indexes with their encoders, warmed before they are ready, and replaced while they are searched."""

import asyncio
import hashlib
import json
import logging
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, DiptychError, UnknownNameError, UsageError
from diptych.core.files import short_names
from diptych.encoders.embeddings import check_still_there
from diptych.index.contract import Index
from diptych.index.engine import OF_PRODUCTS
from diptych.index.journal import StoredIndex, open_index
from diptych.report.searcher import Searcher, origin_of, searcher_of
from diptych.service.guard import Counters
from diptych.service.lanes import Lane
from diptych.service.options import ServeOptions
from diptych.service.problems import ProblemError
from diptych.service.queries import Answer, Part, Query, QueryEncoder, Rows, fused

logger: logging.Logger = logging.getLogger("diptych.service")

FACTS = ("path", "size", "modified", "content")
"""Fields of an item's metadata that say where its file is and how it was; clients set none of them."""

_EVERY = 1.0  # seconds between looks at what is on disk
_FEW_VALUES = 30  # of a field that a page offers to filter by
_MOST_RECORDS = 200_000  # that are read for it
_MOST_HELD = 100_000  # items whose captions and metadata are kept
_DEEP = 100  # hits of each index that are fused, at least

Hits = Sequence[tuple[str, float]]


class RemoteIndex:
    """An index on a server, which other programs may change; what :class:`StoredIndex` is of one on disk."""

    is_replaced, sent = False, None  # there is no place for files

    def __init__(self, address: str) -> None:
        self.index: Index = open_index(address)
        self.add, self.delete = self.index.add, self.index.delete

    @property
    def fingerprint(self) -> str:
        """Return another name each time: the server does not say when the content changes."""
        return uuid.uuid4().hex

    def refresh(self) -> bool:
        """Count the items anew."""
        before, index = len(self.index), self.index
        return getattr(index, "refresh", index.__len__)() != before


class ServedIndex:
    """An index under its name; requests hold on to :attr:`searcher`, which a replacement does not change."""

    def __init__(
        self, name: str, folder: Path | str, searcher: Searcher, stored: StoredIndex | RemoteIndex, lane: Lane
    ) -> None:
        self.name, self.folder, self.lane = name, folder, lane
        self.searcher, self.stored = searcher, stored
        self.fields: dict[str, list[Any]] = {}
        self._held: dict[str, str] = {}  # what is known of items, as JSON up to their score
        self._held_of = ""  # the fingerprint of the content that it is of

    @property
    def sparse(self) -> bool:
        return self.searcher.index.engine().vectors == "sparse"

    @property
    def fingerprint(self) -> str:
        return self.stored.fingerprint

    async def answer(self, parts: Sequence[Part], depth: int, **more: Any) -> Answer:
        """Encode and search; an item that is searched with is not among what is found."""
        without = {part.value for part in parts if part.kind == "item" and part.weight > 0}
        index = self.searcher.index
        query = Query(index, parts, depth + len(without) if depth else 0, **more)
        found: Answer = await self.lane.do(query, max(1, len(parts)))
        kept = [hit for hit in found.hits if hit[0] not in without][:depth]
        return Answer(found.vector, kept)

    async def described(self, hits: Hits) -> list[dict[str, Any]]:
        """Return hits as the API gives them."""
        found: list[dict[str, Any]] = json.loads(await self.as_json(hits))
        return found

    async def as_json(self, hits: Hits) -> str:
        """Return hits as the API gives them; what is known of an item is looked up and encoded once."""
        if self._held_of != (mark := self.fingerprint) or len(self._held) > _MOST_HELD:
            self._held, self._held_of = {}, mark
        held = self._held
        if new := [name for name, _ in hits if name not in held]:
            work = partial(self._look_up, new)  # a server is asked from another thread
            held |= await asyncio.to_thread(work) if self.searcher.index.on_server else work()
        return f"[{', '.join([f'{held[name]}{score!r}}}' for name, score in hits])}]"

    def _look_up(self, names: Sequence[str]) -> dict[str, str]:
        self.searcher.index.prefetch(names)
        texts = {name: json.dumps({"id": name, **self._item(name)}) for name in names}
        return {name: f'{text[:-1]}, "score": ' for name, text in texts.items()}

    def _item(self, name: str) -> dict[str, Any]:
        """Return what is known of an item."""
        searcher = self.searcher
        record = searcher.record(name)
        known: dict[str, Any] = {"captions": [], "image": None, "path": record.get("path")}
        known["metadata"] = {key: value for key, value in record.items() if key not in FACTS}
        with suppress(DataError):  # the collection no longer holds it: it is found all the same
            known["captions"] = searcher.captions(name)
            known["path"] = known["path"] or searcher.path(name, record) or None
            if known["path"] or searcher.shows(name, record):
                known["image"] = f"/v1/items/{quoted(name)}/image?index={quoted(self.name)}"
        return known

    def forget(self) -> None:
        """Look items up again: where they are is known by now."""
        self._held_of = ""

    def read_fields(self) -> None:
        """Find the fields of metadata with few values, of an index that is here."""
        if self.searcher.index.on_server:
            return
        counts: dict[str, Counter[Any]] = {}
        for place, record in enumerate(self.searcher.index.records.values()):
            if place >= _MOST_RECORDS:
                break
            for field, value in record.items():
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(one, str | int | bool) and field not in FACTS:
                        counts.setdefault(field, Counter())[one] += 1
        few = {field: found for field, found in counts.items() if 1 < len(found) <= _FEW_VALUES}
        self.fields = {field: [value for value, _ in found.most_common()] for field, found in few.items()}


def quoted(text: str) -> str:
    """Return a name as a part of an address."""
    from urllib.parse import quote

    return quote(text, safe="")


class Serving:
    """All indexes of a service, by name."""

    def __init__(self, targets: Sequence[str], options: ServeOptions, counters: Counters) -> None:
        self.folders: list[str] = [str(one) for target in targets for one in indexes_in(target)]
        self.options, self.counters = options, counters
        self.indexes: dict[str, ServedIndex] = {}
        self.ready = False
        self.problem: DiptychError | None = None
        self.on_problem: Callable[[], None] = lambda: None
        self._encoders: dict[Any, tuple[Searcher, Lane]] = {}
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self.complete = asyncio.Event()  # set when images can be encoded, too

    def get(self, name: str | None) -> ServedIndex:
        if not self.ready:
            loading = "encoders and indexes are being loaded"
            raise ProblemError(503, loading, "GET /v1/health says when it is ready", {"Retry-After": "1"})
        if name is None:
            return next(iter(self.indexes.values()))
        if name not in self.indexes:
            raise UnknownNameError("index", name, self.indexes)
        return self.indexes[name]

    async def open(self) -> None:
        """Open and warm all indexes; then the service is ready."""
        names = short_names([Path(folder) for folder in self.folders])
        try:
            for name, folder in zip(names, self.folders, strict=True):
                self.indexes[name] = served = await asyncio.to_thread(self._opened, name, folder)
                await self._warm(served)
        except DiptychError as error:
            self.problem = error
            self.on_problem()
            return
        self.ready = True
        try:
            for key, (searcher, _) in self._encoders.items():
                await asyncio.to_thread(self._complete_encoder, key, searcher)
        except DiptychError as error:
            logger.warning("images cannot be encoded: %s", error)
        self.complete.set()
        for served in list(self.indexes.values()):
            await asyncio.to_thread(self._look_closer, served)

    def _complete_encoder(self, key: Any, searcher: Searcher) -> None:
        """Load what only images need, which texts need not wait for."""
        partial = searcher.encoder
        if getattr(getattr(partial, "encoder", partial), "texts_only", False):
            whole = searcher_of(searcher.index, Path(key), key, ()).encoder
            for one in (searcher, *(served.searcher for served in self.indexes.values())):
                if one.encoder is partial:
                    one.encoder = whole

    def _opened(self, name: str, folder: str) -> ServedIndex:
        stored = RemoteIndex(folder) if folder.startswith("qdrant:") else StoredIndex(folder)
        searcher, lane = self._searcher(stored, folder)
        stored.index.check_origin(searcher.fingerprint)
        _ = "" in stored.index  # the places of ids are read now, not while another thread adds some
        self.counters.items.labels(name).set(len(stored.index))
        return ServedIndex(name, folder, searcher, stored, lane)

    def _searcher(self, stored: StoredIndex | RemoteIndex, folder: str) -> tuple[Searcher, Lane]:
        """Return an index with its query encoder; indexes of one encoder share it and its lane."""
        index = stored.index
        origin = origin_of(index)
        key = self.options.encoder or (origin.model if origin else None)
        if OF_PRODUCTS in index.about:
            from diptych.report.products import ProductSearcher

            searcher: Searcher = ProductSearcher.open(index, Path(folder))
            return searcher, self._lane(searcher, str(folder))
        if key in self._encoders:
            there, lane = self._encoders[key]
            return Searcher(index, there.encoder, there.note), lane
        if key is None:
            searcher = Searcher(index)
        else:
            if self.options.encoder is None:
                check_still_there(key, folder)
            searcher = searcher_of(index, Path(folder), key, () if self.ready else ("words",))
        return searcher, self._lane(searcher, key)

    def _lane(self, searcher: Searcher, key: Any) -> Lane:
        encoder = QueryEncoder(searcher.encode_texts, searcher.encode_images)
        options = self.options
        lane = Lane(
            encoder.process, limit=options.queue, wait=options.wait / 1000, observe=self.counters.batch
        )
        self._encoders[key] = searcher, lane
        return lane

    async def _warm(self, served: ServedIndex) -> None:
        """Do once what every search does: kernels are loaded, memory is mapped, networks are compiled."""
        if served.searcher.encoder is not None and len(served.searcher.index):
            with suppress(DiptychError):  # a search will say what is wrong
                await served.answer([Part("text", "two dogs play in the snow")], 10)

    def _look_closer(self, served: ServedIndex) -> None:
        """Read what the first search need not wait for: where images are, which values metadata has."""
        with suppress(DiptychError):
            served.read_fields()
            served.searcher.locate()
            served.forget()

    async def watch(self) -> None:
        """Follow what other processes write: changes are read, a new index is opened beside the old one."""
        while True:
            await asyncio.sleep(_EVERY)
            for served in list(self.indexes.values()):
                try:
                    await self.follow(served)
                except (DiptychError, OSError) as error:
                    logger.warning("index %s: %s", served.name, error)

    async def follow(self, served: ServedIndex) -> None:
        """Bring an index up to date with what lies on the disk."""
        if not served.stored.is_replaced:
            await served.lane.do(served.stored.refresh)
        if served.stored.index is served.searcher.index and not served.stored.is_replaced:
            self.counters.items.labels(served.name).set(len(served.stored.index))
            return
        fresh = await asyncio.to_thread(self._opened, served.name, str(served.folder))
        await self._warm(fresh)
        self.indexes[served.name] = fresh
        self.counters.swaps.inc()
        await asyncio.to_thread(self._look_closer, fresh)

    def close(self) -> None:
        """Finish what is waiting."""
        for _, lane in self._encoders.values():
            lane.close()

    def kept(self, key: str) -> bytes | None:
        """Return the answer to the same question of the same indexes."""
        if (found := self._answers.get(key)) is not None:
            self._answers.move_to_end(key)
            self.counters.cached.inc()
        return found

    def keep(self, key: str, answer: bytes) -> None:
        """Keep an answer, as many as there may be."""
        self._answers[key] = answer
        while len(self._answers) > self.options.cache:
            self._answers.popitem(last=False)

    async def search(
        self,
        served: Sequence[ServedIndex],
        parts: Sequence[Part],
        first: int,
        k: int,
        threshold: float | None,
        **more: Any,
    ) -> tuple[list[tuple[str, float]], bool]:
        """Return hits ``first`` to ``first + k`` and whether there are more; several indexes are fused."""
        depth = first + k + 1
        if len(served) > 1:
            depth = max(_DEEP, depth)
        waiting = [one.answer(parts, depth, **more) for one in served]
        found = await asyncio.gather(*waiting) if len(served) > 1 else [await waiting[0]]
        hits = list(found[0].hits) if len(found) == 1 else fused([one.hits for one in found])
        if threshold is not None:
            hits = [hit for hit in hits if hit[1] >= threshold]
        return hits[first : first + k], len(hits) > first + k

    async def rows(
        self, served: ServedIndex, texts: Sequence[str], images: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Encode texts and images with an index's encoder."""
        if images:
            await self.complete.wait()
        found: tuple[list[Any], list[Any]] = await served.lane.do(
            Rows(texts, images), len(texts) + len(images)
        )
        return found


def answer_key(served: Sequence[ServedIndex], content: bytes) -> str:
    """Name a question by the content of the indexes and of the request."""
    marks = "\0".join(f"{one.name}\0{one.fingerprint}" for one in served)
    return hashlib.blake2b(marks.encode() + b"\0" + content, digest_size=16).hexdigest()


def indexes_in(target: str) -> Iterator[Path | str]:
    """Yield the index that is named, or those of a run's folder."""
    if target.startswith("qdrant:"):
        yield target
        return
    folder = Path(target)
    if (folder / "index.json").is_file():
        yield folder.resolve()
        return
    found = sorted(
        path.parent for pattern in ("*/index.json", "*/*/index.json") for path in folder.glob(pattern)
    )
    if not found:
        fix = "make one: diptych index RUN" if folder.is_dir() else "diptych demo makes one to try it with"
        raise UsageError(f"there is no index in {target}", fix)
    yield from (path.resolve() for path in found)


def pages_of(served: ServedIndex) -> Mapping[str, Path]:
    """Return the reports that lie beside an index, by name."""
    if str(served.folder).startswith("qdrant:"):
        return {}
    home = Path(served.folder).parent
    pages = {path.stem: path for path in sorted(home.glob("*.html")) if path.is_file()}
    return {name: path for name, path in pages.items() if name not in ("search", "found")}
