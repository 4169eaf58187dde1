"""What is fuzzed: for each target, a valid small input and what is done with it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes:
        name: of the target.
        make: writes a valid input into an empty folder.
        use: opens it as a user would, and may write below its second argument.
    """

    name: str
    make: Callable[[Path], None]
    use: Callable[[Path, Path], None]


TARGETS: list[Target] = []


def target(make: Callable[[Path], None]) -> Callable[[Callable[[Path, Path], None]], None]:
    """Declare a target, named as the function that uses the input."""

    def declare(use: Callable[[Path, Path], None]) -> None:
        TARGETS.append(Target(use.__name__, make, use))

    return declare


def attempt(*actions: Callable[[], object]) -> None:
    """Do each of some things, whether others are refused or not."""
    from diptych.core.errors import DiptychError

    for action in actions:
        try:
            action()
        except DiptychError:
            continue


def prepare() -> None:
    """Import what inputs are opened with, once, before processes are forked."""
    import timm
    import torch

    import diptych.cli.app
    import diptych.cli.sources
    import diptych.data.readers
    import diptych.data.taxonomy
    import diptych.encoders.two_tower
    import diptych.evaluation.result
    import diptych.index
    import diptych.training.checkpoint
    import diptych.training.run

    torch.set_num_threads(1)
    _ = timm, diptych


def _picture(kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    from PIL import Image

    held = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (16, 12, 4), dtype=np.uint8)
    Image.fromarray(noise).convert(mode).save(held, kind, **options)
    return held.getvalue()


def _read(path: Path, out: Path, reader: str | None = None, **options: Any) -> None:
    """Read a collection and look at everything in it."""
    from diptych.data.readers import read_collection

    found = read_collection(str(path), reader, **options)
    attempt(*(lambda row=row: found.item(row) for row in range(min(4, found.n_images))))  # type: ignore[misc]
    _ = found.split_sizes, found.text_fingerprint, list(found.captions[:9]), list(found.image_ids[:9])
    _ = found.records[:3] if found.records is not None else None


def _make_karpathy(folder: Path) -> None:
    entries = []
    (folder / "images").mkdir()
    for row, split in enumerate(("train", "val", "test", "restval")):
        (folder / "images" / f"{row}.png").write_bytes(_picture())
        sentences = [{"raw": f"a thing {row} {n}", "sentid": 5 * row + n, "tokens": ["a"]} for n in range(2)]
        entry = {
            "filename": f"{row}.png",
            "split": split,
            "sentences": sentences,
            "imgid": row,
            "cocoid": row,
        }
        entries.append(entry)
    (folder / "dataset.json").write_text(json.dumps({"dataset": "things", "images": entries}))


@target(_make_karpathy)
def karpathy(folder: Path, out: Path) -> None:
    """Read it, and embed it with given rows: folders of results have the names of its splits and its own."""
    from diptych.cli.sources import DataChoice, encoded_of
    from diptych.data.readers import read_collection

    _read(folder, out)
    found = read_collection(str(folder))
    rows = out / "rows"
    rows.mkdir()
    for kind, ids in (("images", found.image_ids), ("texts", found.caption_ids)):
        np.save(rows / f"{kind}.npy", np.ones((len(ids), 4), dtype=np.float32))
        (rows / f"{kind}.txt").write_text("".join(f"{name}\n" for name in ids), errors="surrogatepass")
    for split in [*list(found.split_sizes)[:3], None]:
        encoded_of(str(rows), DataChoice(data=folder), split)


def _make_pairs(folder: Path) -> None:
    _make_karpathy(folder)
    (folder / "dataset.json").unlink()
    lines = [{"image": f"{row}.png", "caption": f"thing {row}", "split": "test"} for row in range(4)]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@target(_make_pairs)
def pairs_lines(folder: Path, out: Path) -> None:
    _read(folder / "pairs.jsonl", out, "pairs")


def _make_table(folder: Path) -> None:
    _make_pairs(folder)
    (folder / "pairs.jsonl").unlink()
    rows = "".join(f'{row}.png,"thing, {row}",test\n' for row in range(4))
    (folder / "pairs.csv").write_text("image,caption,split\n" + rows)


@target(_make_table)
def pairs_table(folder: Path, out: Path) -> None:
    _read(folder / "pairs.csv", out, "pairs")


def _make_shards(folder: Path) -> None:
    with tarfile.open(folder / "train-0000.tar", "w") as archive:
        for row in range(3):
            record = json.dumps({"key": row, "caption": f"thing {row}"}).encode()
            for ending, content in (("png", _picture()), ("txt", b"thing"), ("json", record)):
                info = tarfile.TarInfo(f"{row:05d}.{ending}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


@target(_make_shards)
def shards(folder: Path, out: Path) -> None:
    _read(folder, out, "webdataset")


def _make_precomp(folder: Path) -> None:
    for split in ("train", "dev", "test"):
        np.save(folder / f"{split}_ims.npy", np.ones((10, 3, 4), dtype=np.float32))
        (folder / f"{split}_caps.txt").write_text("".join(f"thing {row}\n" for row in range(10)))


@target(_make_precomp)
def regions(folder: Path, out: Path) -> None:
    _read(folder, out, "precomp")


_FEED = """<?xml version="1.0" encoding="utf-8"?><rss xmlns:g="http://base.google.com/ns/1.0"><channel>
{}</channel></rss>"""
_ITEM = "<item><g:id>{0}</g:id><title>Thing {0}</title><g:image_link>x/{0}.png</g:image_link></item>\n"


def _make_feed(folder: Path) -> None:
    (folder / "feed.xml").write_text(_FEED.format("".join(_ITEM.format(row) for row in range(4))))


@target(_make_feed)
def feed(folder: Path, out: Path) -> None:
    _read(folder / "feed.xml", out, "feed")


def _make_pictures(folder: Path) -> None:
    for kind, mode in (
        *(("PNG", "RGBA"), ("PNG", "I;16"), ("PNG", "P"), ("JPEG", "CMYK"), ("JPEG", "RGB")),
        *(("GIF", "P"), ("WEBP", "RGB"), ("BMP", "RGB"), ("TIFF", "RGB"), ("PPM", "L")),
    ):
        content = _picture(kind, "L" if mode == "I;16" else mode)
        (folder / f"{mode.replace(';', '')}.{kind.lower()}").write_bytes(content)


@target(_make_pictures)
def pictures(folder: Path, out: Path) -> None:
    from diptych.data.images import FolderSource

    names = sorted(path.name for path in folder.iterdir())
    source = FolderSource(folder, names)
    for row in range(len(names)):
        attempt(lambda row=row: source.read(row), lambda row=row: source.content(row))  # type: ignore[misc]


def _make_packed(folder: Path) -> None:
    content = json.dumps([{"caption": "a thing", "image": "a.png", "image_id": "coco_1"}] * 5).encode()
    (folder / "a.json.gz").write_bytes(gzip.compress(content, mtime=0))
    np.savez_compressed(folder / "words.npz", words=np.array(["a", "b"]), vectors=np.eye(2))
    pictures, labels = np.zeros((20, 4, 4), np.uint8), np.arange(20) % 10
    np.savez_compressed(folder / "digits.npz", x_train=pictures, y_train=labels.astype(np.uint8))


@target(_make_packed)
def archives(folder: Path, out: Path) -> None:
    from diptych.analysis.shortcuts.digit_files import read_npz
    from diptych.core.errors import DataError
    from diptych.core.reading import read_json, read_jsonl
    from diptych.data.word_vectors import read_word_vectors

    attempt(
        lambda: read_json(folder / "a.json.gz", DataError),
        lambda: list(read_jsonl(folder / "a.json.gz")),
        lambda: read_word_vectors(folder / "words.npz", "--static"),
        lambda: read_npz(folder / "digits.npz"),
    )


def _rows(count: int) -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _embeddings(kind: str, count: int) -> Any:
    from diptych.encoders.embeddings import Embeddings

    ids = [f"{kind} {row}" for row in range(count)]
    return Embeddings(ids, _rows(count), encoder="e", data="d", kind=kind, about={})


def _make_embeddings(folder: Path) -> None:
    from diptych.core.files import write_json

    _embeddings("image", 6).save(folder / "images")
    _embeddings("text", 12).save(folder / "texts")
    np.save(folder / "caption_image.npy", np.repeat(np.arange(6), 2))
    write_json(folder / "about.json", {"dataset": "things", "split": "test", "data": "d", "notes": []})


@target(_make_embeddings)
def embeddings(folder: Path, out: Path) -> None:
    from diptych.encoders.encoded import EncodedCollection

    found = EncodedCollection.open(folder)
    for side in (found.images, found.texts):
        side.check_finite()
        _ = list(side.ids), side.width, len(side)


def _make_result(folder: Path) -> None:
    from diptych.evaluation.evaluate import evaluate
    from diptych.metrics import GroundTruth

    truth = GroundTruth.from_caption_image(np.repeat(np.arange(6), 2), 6)
    evaluate(_rows(6), _rows(12), truth).save(folder / "result")


@target(_make_result)
def evaluation(folder: Path, out: Path) -> None:
    from diptych.evaluation.result import Result

    found = Result.open(folder / "result")
    _ = found.protocol_line(), found.value("R@1", "i2t"), found.per_query["t2i"]["R@5"]


def _make_index(folder: Path) -> None:
    from diptych.index import build_index

    for engine in ("exact", "hnsw"):
        build_index(_embeddings("image", 20), engine).save(folder / engine)


@target(_make_index)
def index(folder: Path, out: Path) -> None:
    from diptych.index import open_index

    for engine in ("exact", "hnsw"):
        attempt(lambda engine=engine: list(open_index(folder / engine).search(_rows(2), 3)))  # type: ignore[misc]


def _make_log(folder: Path) -> None:
    lines = [{"time": 1000 + n, "client": "c", "action": "view", "price": 1.5} for n in range(9)]
    (folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "a.csv").write_text("time;client;action\n" + "".join(f"{n};c;view\n" for n in range(9)))
    (folder / "b.csv.gz").write_bytes(gzip.compress(b"time,client,action\n1,c,view\n", mtime=0))
    (folder / "map.toml").write_text('[columns]\ntime = "time"\nclient = "client"\naction = "action"\n')
    (folder / "log").mkdir()
    (folder / "log" / "log.json").write_text(json.dumps({"format": 1, "name": "l", "events": 3}))


@target(_make_log)
def logs(folder: Path, out: Path) -> None:
    from diptych.data.logs.log import Log
    from diptych.data.logs.mapping import read_mapping
    from diptych.data.logs.source_files import check_whole, look_at

    attempt(
        *(lambda name=name: check_whole(look_at(folder / name)) for name in ("a.jsonl", "a.csv", "b.csv.gz")),
        lambda: read_mapping(folder / "map.toml"),
        lambda: Log.open(folder / "log"),
    )


def _make_taxonomy(folder: Path) -> None:
    (folder / "paths.txt").write_text("1 - Things\n2 - Things > Red\n3 - Things > Red > Small\n")
    (folder / "table.csv").write_text("id,name,parent\n1,Things,\n2,Red,1\n3,Small,2\n")
    tree = {"categories": [{"id": 1, "name": "Things", "children": [{"id": 2, "name": "Red"}]}]}
    (folder / "tree.json").write_text(json.dumps(tree))


@target(_make_taxonomy)
def taxonomies(folder: Path, out: Path) -> None:
    from diptych.data.taxonomy import read_taxonomy

    attempt(*(lambda path=path: read_taxonomy(path) for path in sorted(folder.iterdir())))  # type: ignore[misc]


RECIPE = """name = "fuzz"
[data]
path = "nowhere"
[model]
width = 8
[model.image]
backbone = "test_efficientnet"
backbone_options = {drop_rate = 0.1}
[model.image.preprocessing]
size = 32
resize = 32
[model.text]
word_width = 8
min_count = 1
[objective]
name = "triplet"
margin = 0.2
[batches]
size = 4
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


@target(_make_run)
def recipes(folder: Path, out: Path) -> None:
    from diptych.encoders.image_tower import ImageTower
    from diptych.training.recipe import load_recipe
    from diptych.training.run import Run

    def build() -> None:
        recipe = load_recipe(folder / "recipe.toml")
        ImageTower(recipe.model.image, recipe.model.width)

    attempt(build)
    run = Run.open(folder / "run")
    _ = run.finished, list(run.metrics())
    run.rewind_metrics(1)


def _make_checkpoint(folder: Path) -> None:
    import torch

    from diptych.training.checkpoint import Place, save_checkpoint

    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    state = {"seen": torch.ones(2)}
    save_checkpoint(folder / "checkpoint", Place(), model, optimizer, state, lambda name: True)


@target(_make_checkpoint)
def checkpoints(folder: Path, out: Path) -> None:
    import torch

    from diptych.training.checkpoint import load_moments, load_weights, read_place

    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters())
    saved = folder / "checkpoint"
    attempt(
        lambda: read_place(saved),
        lambda: load_weights(saved, model, lambda name: True),
        lambda: load_moments(saved, model, optimizer),
    )


def pack(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of members."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return held.getvalue()
