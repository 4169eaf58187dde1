"""Indexes of collections: built, and brought up to date with files that are new, changed, copied or gone."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from diptych.core.context import check_stop, report_to, stopping, task
from diptych.core.errors import DataError, DiptychError, ImageError, UsageError
from diptych.core.options import parameter, parse_values
from diptych.data.collection import WHOLE, Collection
from diptych.data.images import image_content
from diptych.data.loading import batched, read_ahead
from diptych.data.source import OutOption, SplitOption
from diptych.encoders.embeddings import EncodedCollection, Origin
from diptych.index.contract import Index, build_index, engine_of
from diptych.index.engine import OF_PRODUCTS
from diptych.index.journal import StoredIndex
from diptych.report.searcher import CollectionCaptions

_BLOCK = 256  # images that are encoded and then durable


class IndexOptions(SplitOption, OutOption):
    """Options of indexing."""

    engine: str | None = parameter(
        None,
        "The engine; exact for dense embeddings, inverted for sparse ones.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")
    of: Literal["images", "texts"] = parameter("images", "Items to find.")


@dataclass
class Update:
    """What of a collection's images an index does not hold as it is.

    Attributes:
        rows: of the collection, the images that are to be encoded.
        ids: under which they are inserted: those of the items that they replace, else the collection's.
        replaced: those of the ids whose file changed.
        known: how many images are there as they are.
        copies: files that are left out, each with the file of the same content.
        problems: messages of images that could not be read; filled by :func:`add_images`.
    """

    rows: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)
    known: int = 0
    copies: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def collection_records(collection: Collection, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the metadata of each image, or of each caption: its own, the split, and of an image's file the facts."""
    images: Iterable[int] = range(collection.n_images)
    splits, own = list(collection.splits), collection.records
    if kind != "image":
        images, own = collection.caption_image.tolist(), collection.caption_records
    for image, record in zip(images, own or itertools.repeat({}), strict=own is not None):
        facts = file_facts(collection.image_path(image)) if kind == "image" else {}
        split = splits[image]
        yield {**record, **facts, **({} if split == WHOLE else {"split": split})}


def file_facts(path: str) -> dict[str, Any]:
    """Return a file's path, size in bytes and time of its last change in seconds; no more than there is."""
    facts: dict[str, Any] = {"path": path} if path else {}
    with suppress(OSError):
        state = os.stat(path)
        facts |= {"size": state.st_size, "modified": state.st_mtime}
    return facts


def check_takes_images(index: Index) -> None:
    kind = index.about.get("kind", "image")
    if kind != "image" or OF_PRODUCTS in index.about:
        found = "products" if OF_PRODUCTS in index.about else f"{kind}s"
        raise UsageError(f"an index of {found} takes no images", "add to an index of images")
    if not index.engine().filters:
        raise UsageError(
            f"the {index.engine_name} engine keeps no metadata to know files by", "index with another engine"
        )


def new_images(index: Index, collection: Collection) -> Update:
    """Return what of a collection's images is new to an index, or changed.

    A file is known by its path, size and time, and where these differ by the fingerprint of its content, if it is
    known; an image that is no file by its id. A file is a copy of another one of the same content that is still there.
    """
    check_takes_images(index)
    records = index.records
    by_path: dict[str, tuple[str, Any]] = {}
    by_size: dict[int, list[str]] = {}
    for name, record in records.items():
        if path := record.get("path"):
            by_path[path] = name, record
            by_size.setdefault(record.get("size", -1), []).append(path)
    update, taken = Update(), set[str]()

    @cache
    def content(path: str) -> str:
        known = by_path.get(path, ("", {}))[1].get("content")
        return str(known) if known else image_content(Path(path))

    def original(path: str, size: int) -> str:
        others = (other for other in by_size.get(size, ()) if Path(other).is_file())
        return next((other for other in others if content(other) == image_content(Path(path))), "")

    for row, name in enumerate(collection.image_ids):
        path = collection.image_path(row)
        facts = file_facts(path)
        own, record = by_path.get(path, ("", {}))
        if (not path and name in index) or (own and _unchanged(record, facts)):
            update.known += 1
        elif not own and path and (twin := original(path, facts.get("size", -1))):
            update.copies.append((path, twin))
        else:
            free = (
                one for one in _names(name, collection.name, path) if one not in index and one not in taken
            )
            update.rows.append(row)
            update.ids.append(own or next(free))
            update.replaced |= {own} if own else set()
            taken.add(update.ids[-1])
            if not own and path:
                by_size.setdefault(facts.get("size", -1), []).append(path)
    return update


def _unchanged(record: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    if "size" not in record or all(record.get(key) == facts.get(key) for key in ("size", "modified")):
        return True
    known = record.get("content")
    return bool(known) and record["size"] == facts.get("size") and known == image_content(Path(facts["path"]))


def _names(name: str, collection: str, path: str) -> Iterator[str]:
    """Yield ids for an image whose own one may be that of another image."""
    yield from (name, f"{collection}/{name}", *([path] if path else []))
    yield from (f"{collection}/{name} ({number})" for number in itertools.count(2))


def add_images(stored: StoredIndex, collection: Collection, update: Update, encoder: Any) -> int:
    """Encode new images and insert them, a block at a time, each durable before the next; return how many.

    A stop is heeded after a block; what was inserted is known to the next :func:`new_images`.
    """
    stored.index.check_origin(encoder.fingerprint)
    added = 0

    def load(row: int) -> Any:
        try:
            return collection.item(row)
        except ImageError as error:
            return error

    with task("adding images", len(update.rows), "images") as bar:
        for block in batched(zip(update.rows, update.ids, strict=True), _BLOCK):
            loaded = list(zip(block, read_ahead(load, [row for row, _ in block]), strict=True))
            update.problems += [item.message for _, item in loaded if isinstance(item, ImageError)]
            good = [(row, name, item) for (row, name), item in loaded if not isinstance(item, ImageError)]
            if good:
                rows, names, items = map(list, zip(*good, strict=True))
                with report_to(None):
                    vectors = encoder.encode_images(items)
                part = collection.subset(rows)
                records = list(collection_records(part, "image"))
                for record in records:
                    if "size" in record:
                        record["content"] = image_content(Path(record["path"]))
                captions = (
                    [part.captions_of(row) for row in range(part.n_images)] if part.n_captions else None
                )
                replace = not update.replaced.isdisjoint(names)
                more = {"replace": replace, "encoder": encoder.fingerprint}
                stored.add(names, vectors, records=records, captions=captions, **more)
                added += len(names)
            bar.advance(len(block))
            check_stop(f"stopped: {added:,} of {len(update.rows):,} images are added and kept")
    return added


def missing_files(index: Index, below: Path | None = None) -> list[str]:
    """Return the ids of images whose files are gone; of those that were below a folder."""
    check_takes_images(index)
    records = index.records
    paths = ((name, record.get("path")) for name, record in records.items())
    inside = ((name, Path(path)) for name, path in paths if path)
    return [
        name for name, path in inside if (below is None or path.is_relative_to(below)) and not path.is_file()
    ]


def copies_among(collection: Collection) -> list[tuple[str, str]]:
    """Return the files of a collection that are copies of earlier ones, each with that; those of one size are read."""
    by_size: dict[Any, dict[str, str]] = {}
    copies, paths = [], (collection.image_path(row) for row in range(collection.n_images))
    sizes = [(facts["size"], facts["path"]) for facts in map(file_facts, paths) if "size" in facts]
    several = Counter(size for size, _ in sizes)
    for size, path in sizes:
        if several[size] > 1:
            known = by_size.setdefault(size, {})
            first = known.setdefault(image_content(Path(path)), path)
            copies += [(path, first)] * (first != path)
    return copies


def near_duplicates(index: Index, least: float, k: int = 20) -> list[list[tuple[str, float]]]:
    """Return groups of items of which each is as similar as ``least`` to another one, with that similarity.

    Every item is searched for; of more than ``k`` equal ones a group may be cut into several.
    """
    if index.engine().vectors != "dense":
        raise UsageError(
            f"scores of the {index.engine_name} engine are no cosines", "look in an index of dense embeddings"
        )
    names: list[str] = index.ids  # type: ignore[attr-defined]
    group, best = {name: name for name in names}, dict[str, float]()

    def first(name: str) -> str:
        while group[name] != name:
            group[name] = name = group[group[name]]
        return name

    with task("comparing images", len(names), "images") as bar:
        for block in batched(names, _BLOCK):
            for name, hits in zip(block, index.search(index.vectors(block), k), strict=True):
                for other, score in hits:
                    if other != name and score >= least:
                        group[first(other)] = first(name)
                        for one in (name, other):
                            best[one] = max(score, best.get(one, score))
            bar.advance(len(block))
            check_stop("stopped", "the same command begins anew")
    groups: dict[str, list[tuple[str, float]]] = {}
    for name in names:
        if name in best:
            groups.setdefault(first(name), []).append((name, best[name]))
    return sorted(groups.values(), key=lambda one: -max(score for _, score in one))


def settled_changes(
    folder: Path, every: float, wait: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Yield at once, and each time that files below a folder changed and then stayed the same for ``every`` seconds.

    Ends where a stop is requested.
    """

    def state() -> list[tuple[Any, ...]]:
        files = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
        return sorted(tuple(file_facts(file).values()) for file in files)

    done: list[tuple[Any, ...]] | None = None
    before: list[tuple[Any, ...]] | None = state()
    while not stopping():
        now = state()
        if now == before and now != done:
            done = now
            yield
        else:
            before = now
            wait(every)


def index_collection(
    encoded: EncodedCollection, origin: Origin, options: IndexOptions
) -> tuple[Index, Collection | None]:
    """Return an index of a collection's images or captions, and the collection where its data is there."""
    whole = None
    with suppress(
        DiptychError
    ):  # embeddings whose dataset is gone are searched without captions and metadata
        whole = origin.collection()
    settings = parse_values(options.option, "--option")
    built = index_encoded(encoded, options.of, options.engine, whole, settings)
    built.about["origin"] = asdict(origin)
    return built, whole


def index_encoded(
    encoded: EncodedCollection,
    of: str,
    engine: str | None,
    collection: Collection | None,
    settings: Mapping[str, Any],
) -> Index:
    """Return an index of the images or captions of what is encoded, with the captions and metadata of a collection."""
    sides, more = {"images": encoded.images, "texts": encoded.texts}, dict(settings)
    items, (others,) = sides.pop(of), sides.values()
    if not len(items):
        raise DataError(f"{encoded.about['dataset']} has no {of} to index", "give the others with --of")
    if collection is not None and engine_of(items, engine).filters:
        more.setdefault("records", list(collection_records(collection, items.kind)))
    if collection is not None:
        more["captions"] = CollectionCaptions(collection, items.kind)
    # The other modality is what the index will be queried with: recall is measured on it.
    return build_index(items, engine, sample=others.rows[:1000] if len(others) else None, **more)
