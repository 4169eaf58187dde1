"""What is fuzzed: for each target, the files of a valid small input and what is done with them."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Make = Callable[[Path], None]
Use = Callable[[Path, Path], object]


class Target(NamedTuple):
    """A kind of input: its name, what writes a valid one into a folder, and what opens it as a user would.

    What opens it may write below its second argument.
    """

    name: str
    make: Make
    use: Use


def files(content: Callable[[], Mapping[str, Any]]) -> Make:
    """Return what writes files: arrays, JSON, JSON lines, texts and bytes, by their names."""

    def make(folder: Path) -> None:
        for name, value in content().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".npy":
                np.save(path, value)
            elif path.suffix == ".npz":
                np.savez_compressed(path, **value)
            elif path.suffix == ".jsonl":
                path.write_text("".join(json.dumps(line) + "\n" for line in value))
            elif path.suffix == ".json":
                path.write_text(json.dumps(value))
            else:
                path.write_bytes(value if isinstance(value, bytes) else value.encode())

    return make


def opens(
    function: str, name: str = "", *more: Any, then: Callable[[Any], object] = id, **options: Any
) -> Use:
    """Return what calls a function of the package (``module:name``) with an input's file, and looks at the result."""

    def use(folder: Path, out: Path) -> None:
        module, _, attribute = function.partition(":")
        found: Any = importlib.import_module(f"diptych.{module}")
        for part in attribute.split("."):
            found = getattr(found, part)
        then(found(folder / name, *more, **options))

    return use


def each(*uses: Use) -> Use:
    """Return what does several things, whether others are refused or not."""

    def use(folder: Path, out: Path) -> None:
        from diptych.core.errors import DiptychError

        for one in uses:
            try:
                one(folder, out)
            except DiptychError:
                continue

    return use


def prepare() -> None:
    """Import what inputs are opened with, once, before processes are forked."""
    import torch

    torch.set_num_threads(1)
    for name in (
        "cli.evaluate",
        "commerce.taxonomy",
        "encoders.two_tower",
        "evaluation.result",
        "index",
        "training.run",
    ):
        importlib.import_module(f"diptych.{name}")
    importlib.import_module("timm")


def picture(kind: str = "PNG", mode: str = "RGB") -> bytes:
    """Return an image file."""
    from PIL import Image

    held = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (16, 12, 4), dtype=np.uint8)
    Image.fromarray(noise).convert(mode).save(held, kind)
    return held.getvalue()


def _look(found: Any) -> None:
    """Look at everything in a collection."""
    each(*(lambda folder, out, row=row: found.item(row) for row in range(min(4, found.n_images))))(
        Path(), Path()
    )
    _ = found.split_sizes, found.text_fingerprint, list(found.captions[:9]), list(found.image_ids[:9])


_read = partial(opens, "data.readers:read_collection", then=_look)


def _pictures() -> dict[str, Any]:
    return {f"images/{row}.png": picture() for row in range(4)}


def _karpathy() -> dict[str, Any]:
    splits = ("train", "val", "test", "restval")
    entries = [
        {
            "filename": f"{row}.png",
            "split": split,
            "imgid": row,
            "sentences": [{"raw": f"a thing {row} {n}", "sentid": 5 * row + n} for n in range(2)],
        }
        for row, split in enumerate(splits)
    ]
    return {**_pictures(), "dataset.json": {"dataset": "things", "images": entries}}


def _embed(folder: Path, out: Path) -> None:
    """Read it, and embed it with given rows: folders of results have the names of its splits and its own."""
    from diptych.cli.sources import encoded_of
    from diptych.data.readers import read_collection
    from diptych.data.source import PartSpec

    _read()(folder, out)
    found = read_collection(str(folder))
    rows = out / "rows"
    rows.mkdir()
    for kind, ids in (("images", found.image_ids), ("texts", found.caption_ids)):
        np.save(rows / f"{kind}.npy", np.ones((len(ids), 4), dtype=np.float32))
        (rows / f"{kind}.txt").write_text("".join(f"{name}\n" for name in ids), errors="surrogatepass")
    for split in [*list(found.split_sizes)[:3], None]:
        encoded_of(str(rows), PartSpec(data=folder), split)


def _pairs() -> dict[str, Any]:
    lines = [{"image": f"{row}.png", "caption": f"thing {row}", "split": "test"} for row in range(4)]
    return {**_pictures(), "pairs.jsonl": lines}


def _table() -> dict[str, Any]:
    rows = "".join(f'{row}.png,"thing, {row}",test\n' for row in range(4))
    return {**_pictures(), "pairs.csv": "image,caption,split\n" + rows}


def _shards() -> dict[str, Any]:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for row in range(3):
            record = json.dumps({"key": row, "caption": f"thing {row}"}).encode()
            for ending, content in (("png", picture()), ("txt", b"thing"), ("json", record)):
                info = tarfile.TarInfo(f"{row:05d}.{ending}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return {"train-0000.tar": held.getvalue()}


def _regions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for split in ("train", "dev", "test"):
        found[f"{split}_ims.npy"] = np.ones((10, 3, 4), dtype=np.float32)
        found[f"{split}_caps.txt"] = "".join(f"thing {row}\n" for row in range(10))
    return found


def _feed() -> dict[str, Any]:
    item = "<item><g:id>{0}</g:id><title>Thing {0}</title><g:image_link>x/{0}.png</g:image_link></item>\n"
    head = '<?xml version="1.0" encoding="utf-8"?><rss xmlns:g="http://base.google.com/ns/1.0"><channel>\n'
    return {"feed.xml": head + "".join(item.format(row) for row in range(4)) + "</channel></rss>"}


def _images() -> dict[str, Any]:
    modes = "PNG RGBA, PNG LA, PNG P, JPEG CMYK, JPEG RGB, GIF P, WEBP RGB, BMP RGB, PPM L, TIFF RGB, TIFF F"
    kinds = [one.split() for one in modes.split(", ")]
    return {f"{mode}.{kind.lower()}": picture(kind, mode) for kind, mode in kinds}


def _decode(folder: Path, out: Path) -> None:
    from diptych.data.images import FolderSource

    source = FolderSource(folder, sorted(path.name for path in folder.iterdir()))
    for row in range(len(source.names)):
        each(lambda *_, row=row: source.read(row), lambda *_, row=row: source.content(row))(folder, out)


def _packed() -> dict[str, Any]:
    content = json.dumps([{"caption": "a thing", "image": "a.png", "image_id": "coco_1"}] * 5).encode()
    digits = {"x_train": np.zeros((20, 4, 4), np.uint8), "y_train": (np.arange(20) % 10).astype(np.uint8)}
    words = {"words": np.array(["a", "b"]), "vectors": np.eye(2)}
    return {"a.json.gz": gzip.compress(content, mtime=0), "words.npz": words, "digits.npz": digits}


def _rows(count: int) -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _embeddings(kind: str, count: int) -> Any:
    from diptych.encoders.embeddings import Embeddings

    ids = [f"{kind} {row}" for row in range(count)]
    return Embeddings(ids, _rows(count), encoder="e", data="d", kind=kind, about={})


def _make_embeddings(folder: Path) -> None:
    _embeddings("image", 6).save(folder / "images")
    _embeddings("text", 12).save(folder / "texts")
    about = {"dataset": "things", "split": "test", "data": "d", "notes": []}
    files(lambda: {"caption_image.npy": np.repeat(np.arange(6), 2), "about.json": about})(folder)


def _look_at_rows(found: Any) -> None:
    for side in (found.images, found.texts):
        side.check_finite()
        _ = list(side.ids), side.width, len(side)


def _make_result(folder: Path) -> None:
    from diptych.evaluation.evaluate import evaluate
    from diptych.metrics import GroundTruth

    truth = GroundTruth.from_caption_image(np.repeat(np.arange(6), 2), 6)
    evaluate(_rows(6), _rows(12), truth).save(folder / "result")


def _make_index(folder: Path) -> None:
    from diptych.index import build_index

    for engine in ("exact", "hnsw"):
        build_index(_embeddings("image", 20), engine).save(folder / engine)


def _search(found: Any) -> None:
    list(found.search(_rows(2), 3))


def _logs() -> dict[str, Any]:
    return {
        "a.jsonl": [{"time": 1000 + n, "client": "c", "action": "view", "price": 1.5} for n in range(9)],
        "a.csv": "time;client;action\n" + "".join(f"{n};c;view\n" for n in range(9)),
        "b.csv.gz": gzip.compress(b"time,client,action\n1,c,view\n", mtime=0),
        "map.toml": '[columns]\ntime = "time"\nclient = "client"\naction = "action"\n',
        "log/log.json": {"format": 1, "name": "l", "events": 3},
    }


def _check(found: Any) -> None:
    from diptych.commerce.logs.ingest import describe_whole

    describe_whole(found)


def _taxonomies() -> dict[str, Any]:
    tree = {"categories": [{"id": 1, "name": "Things", "children": [{"id": 2, "name": "Red"}]}]}
    paths = "1 - Things\n2 - Things > Red\n3 - Things > Red > Small\n"
    return {"paths.txt": paths, "table.csv": "id,name,parent\n1,Things,\n2,Red,1\n", "tree.json": tree}


RECIPE = """name = "fuzz"
data.path = "nowhere"
objective = {name = "triplet", margin = 0.2}
batches.size = 4
[model]
width = 8
[model.image]
backbone = "test_efficientnet"
backbone_options = {drop_rate = 0.1}
preprocessing = {size = 32, resize = 32}
[model.text]
word_width = 8
min_count = 1
[[stages]]
epochs = 1
learning_rate = 1e-3
train = ["*"]
"""


def _make_run(folder: Path) -> None:
    from diptych.training.recipe import parse_recipe
    from diptych.training.run import Run

    (folder / "recipe.toml").write_text(RECIPE)
    run = Run.prepare(folder / "run", parse_recipe(RECIPE, "fuzz"))
    run.begin({})
    run.log(step=1, loss=0.5)
    run.log(step=2, loss=0.25)


def _look_at_run(run: Any) -> None:
    _ = run.finished, list(run.metrics())
    run.rewind_metrics(1)


def _build(recipe: Any) -> None:
    from diptych.encoders.image_tower import ImageTower

    ImageTower(recipe.model.image, recipe.model.width)


def _linear() -> Any:
    import torch

    model = torch.nn.Linear(4, 3)
    return model, torch.optim.Adam(model.parameters())


def _make_checkpoint(folder: Path) -> None:
    import torch

    from diptych.training.checkpoint import Place, save_checkpoint

    model, optimizer = _linear()
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    state = {"seen": torch.ones(2)}
    save_checkpoint(folder / "checkpoint", Place(), model, optimizer, state, lambda name: True)


def _load(folder: Path, out: Path) -> None:
    model, optimizer = _linear()
    each(
        opens("training.checkpoint:read_place", "checkpoint"),
        opens("training.checkpoint:load_weights", "checkpoint", model, lambda name: True),
        opens("training.checkpoint:load_moments", "checkpoint", model, optimizer),
    )(folder, out)


def pack(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of members."""
    held = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(held, "w", method) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return held.getvalue()


_look_at_file = partial(opens, "commerce.logs.formats:look_at", then=_check)
_taxonomy = partial(opens, "commerce.taxonomy:read_taxonomy")

TARGETS = [
    Target("karpathy", files(_karpathy), _embed),
    Target("pairs_lines", files(_pairs), _read("pairs.jsonl", "pairs")),
    Target("pairs_table", files(_table), _read("pairs.csv", "pairs")),
    Target("shards", files(_shards), _read("", "webdataset")),
    Target("regions", files(_regions), _read("", "precomp")),
    Target("feed", files(_feed), _read("feed.xml", "feed")),
    Target("pictures", files(_images), _decode),
    Target(
        "archives",
        files(_packed),
        each(
            opens("core.reading:read_json", "a.json.gz"),
            opens("core.reading:read_jsonl", "a.json.gz", then=list),
            opens("data.word_vectors:read_word_vectors", "words.npz", "--static"),
            opens("analysis.shortcuts.digits:read_digit_file", "digits.npz"),
        ),
    ),
    Target(
        "embeddings",
        _make_embeddings,
        opens("encoders.embeddings:EncodedCollection.open", then=_look_at_rows),
    ),
    Target(
        "evaluation",
        _make_result,
        opens("evaluation.result:Result.open", "result", then=lambda found: found.protocol_line()),
    ),
    Target(
        "index", _make_index, each(*(opens("index:open_index", e, then=_search) for e in ("exact", "hnsw")))
    ),
    Target(
        "logs",
        files(_logs),
        each(
            *(_look_at_file(name) for name in ("a.jsonl", "a.csv", "b.csv.gz")),
            opens("commerce.logs:read_mapping", "map.toml"),
            opens("commerce.logs.log:Log.open", "log"),
        ),
    ),
    Target("taxonomies", files(_taxonomies), each(*map(_taxonomy, ("paths.txt", "table.csv", "tree.json")))),
    Target(
        "recipes",
        _make_run,
        each(
            opens("training.recipe:load_recipe", "recipe.toml", then=_build),
            opens("training.run:Run.open", "run", then=_look_at_run),
        ),
    ),
    Target("checkpoints", _make_checkpoint, _load),
]
