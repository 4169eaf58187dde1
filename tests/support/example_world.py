"""A folder in which the commands of the README and of every help find what they name, as small stand-ins.

Datasets are generated scenes under the names and in the formats of the real ones; models are tiny and random, in a
cache as Hugging Face keeps it. Nothing is fetched.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from commands import RECIPE

REPOSITORY = Path(__file__).parents[2]
_CAPTIONS = ("a red dog", "two dogs play in the snow", "a kayak on a lake")


@dataclass(frozen=True)
class World:
    """The folder, and what a command in it needs of the environment."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the environment: a quiet machine without a network."""
        own = self.folder / ".world"
        paths = [REPOSITORY / "src", *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            "PATH": f"{self.folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "DIPTYCH_CACHE": str(own / "cache"),
            "DIPTYCH_WORDNET": str(own / "wordnet"),
            "NLTK_DATA": str(own / "nltk"),
            "HF_HOME": str(own / "huggingface"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "120",
        }

    def run(self, line: str, seconds: float = 1800) -> subprocess.CompletedProcess[str]:
        """Run a line as a shell does that stops at the first failure of a pipe."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def prepare(self, *lines: str) -> None:
        """Run lines that have to succeed."""
        for line in lines:
            done = self.run(line)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"

    def copy(self, folder: Path) -> World:
        """Copy it: pictures, models and what is replaced whole as links, everything else as files of its own."""
        shared = (".png", ".jpg", ".safetensors", ".run", ".npy", ".npz", "dataset_coco.json")

        def one(source: str, target: str) -> None:
            (os.link if source.endswith(shared) else shutil.copy2)(source, target)

        # Models are read alone; computed features are shared, as a user's cache is.
        kept = self.folder / ".world"

        def not_kept(place: str, names: list[str]) -> list[str]:
            return [".world"] if Path(place) == self.folder and ".world" in names else []

        shutil.copytree(self.folder, folder, symlinks=True, copy_function=one, ignore=not_kept)
        (folder / ".world").symlink_to(kept.resolve())
        return World(folder)


def example_world(folder: Path) -> World:
    """Make the folder."""
    world = World(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _command(folder / ".venv" / "bin")
    (folder / "recipes").symlink_to(REPOSITORY / "src" / "diptych" / "training" / "recipes")
    (folder / "tiny.toml").write_text(RECIPE.format(path="flickr8k"), encoding="utf-8")
    own = folder / ".world"
    _language(own)
    _models(own / "huggingface" / "hub")
    _checkpoints(folder)
    _collections(folder, _scenes(own))
    _lists(folder)
    _catalogues(folder)
    _scores(folder)
    _events(folder)
    return world


def _command(folder: Path) -> None:
    """Write the command as an installed package has it, of this working copy."""
    folder.mkdir(parents=True)
    (folder / "diptych").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m diptych "$@"\n', encoding="utf-8")
    (folder / "diptych").chmod(0o755)


def _language(own: Path) -> None:
    from tiny_tagger import write_tagger
    from tiny_wordnet import write_database, write_lmf

    write_tagger(own / "nltk")
    write_database(own / "wordnet")
    write_lmf(own.parent / "english-wordnet-2024.xml.gz")


def _models(hub: Path) -> None:
    """A cache of Hugging Face's with every model that is named: CLIPs, sentence encoders, timm's networks."""
    import timm
    from safetensors.torch import save_file

    from tests.encoders.targets.tiny_sentence import sentence_folder
    from tests.encoders.tiny_pretrained import transformers_folder

    transformers_folder("clip", _snapshot(hub, "openai/clip-vit-base-patch32"))
    transformers_folder("clip", _snapshot(hub, "NAME"))
    name = _snapshot(hub, "sentence-transformers/NAME")
    transformers_folder("clip", name / "0_CLIPModel")
    modules = [
        {"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}
    ]
    (name / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    sentence_folder(_snapshot(hub, "sentence-transformers/all-MiniLM-L6-v2"))
    for timms in ("resnet50.a1_in1k", "mobilenetv2_100.ra_in1k"):
        network = timm.create_model(timms.partition(".")[0], pretrained=False)
        target = _snapshot(hub, f"timm/{timms}")
        target.mkdir(parents=True)
        save_file(network.state_dict(), target / "model.safetensors")
        about = {"architecture": timms.partition(".")[0], "pretrained_cfg": dict(network.pretrained_cfg)}
        (target / "config.json").write_text(json.dumps(about, default=str), encoding="utf-8")


def _snapshot(hub: Path, name: str) -> Path:
    """Return where the files of a model lie."""
    root, revision = hub / f"models--{name.replace('/', '--')}", "0" * 40
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(revision, encoding="utf-8")
    (root / "snapshots").mkdir()
    return root / "snapshots" / revision


def _checkpoints(folder: Path) -> None:
    """ALBEF and X-VLM, each a folder for the configuration that its tiny sizes need."""
    from safetensors.torch import save_file

    from tests.encoders.official.tiny_official import SWIN, TEXT, VIT, albef_state, xvlm_state
    from tests.encoders.tiny_pretrained import bert_tokenizer

    kinds = {"flickr30k.pth": (albef_state(), VIT), "checkpoint_best.pth": (xvlm_state(), SWIN)}
    for name, (state, vision) in kinds.items():
        (folder / name).mkdir()
        tensors = {key: tensor.clone().contiguous() for key, tensor in state.items()}
        save_file(tensors, folder / name / "model.safetensors")
        about = {"vision_config": vision, "text_config": {**TEXT, "num_hidden_layers": 4}}
        (folder / name / "config.json").write_text(json.dumps(about), encoding="utf-8")
        vocabulary = bert_tokenizer().get_vocab()
        words = sorted(vocabulary, key=lambda word: int(vocabulary[word]))
        (folder / name / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


Scene = Mapping[str, Any]


def _scenes(own: Path) -> dict[str, list[Scene]]:
    """Pictures with their five captions, by split; files by their whole path."""
    from diptych.data.scenes import make_scenes

    folder = make_scenes(own / "scenes", 200, 40, 5000, size=64, workers=1)
    splits: dict[str, list[Scene]] = {"train": [], "val": [], "test": []}
    for image in json.loads((folder / "dataset.json").read_text(encoding="utf-8"))["images"]:
        captions = [sentence["raw"] for sentence in image["sentences"]]
        splits[image["split"]].append({"file": folder / image["filename"], "captions": captions})
    return splits


def _collections(folder: Path, scenes: Mapping[str, Sequence[Scene]]) -> None:
    sizes = {"train": 160, "val": 40, "test": 160}
    _karpathy(folder / "flickr8k", "flickr8k", _parts(scenes, sizes), lambda number: f"{number}.jpg")
    _karpathy(folder / "flickr30k", "flickr30k", _parts(scenes, sizes), lambda number: f"{number}.jpg")
    coco = _parts(scenes, {"train": 200, "val": 40, "test": 5000})
    _karpathy(folder / "coco", "coco", coco, lambda number: f"COCO_val2014_{number:012d}.jpg", "val2014")
    _annotations(folder, coco)
    _rows(folder / "vectors", sum(sizes.values()))
    shutil.copytree(folder / "flickr30k" / "images", folder / "images", copy_function=os.link)
    shutil.copy(folder / "flickr30k" / "dataset_flickr30k.json", folder / "flickr30k.json")
    shutil.copy(folder / "coco" / "dataset_coco.json", folder / "dataset_coco.json")
    (folder / "COCO").symlink_to("coco")
    _own(folder, _parts(scenes, {"train": 120, "val": 20, "test": 20}))
    _birds(folder / "cub", scenes["train"])
    from PIL import Image

    with Image.open(scenes["test"][0]["file"]) as picture:
        picture.convert("RGB").save(folder / "holiday.jpg", "JPEG")
    np.savez(folder / "mnist.npz", **_digits())


def _parts(scenes: Mapping[str, Sequence[Scene]], sizes: Mapping[str, int]) -> list[tuple[str, Scene]]:
    return [(split, scene) for split, size in sizes.items() for scene in scenes[split][:size]]


def _karpathy(
    folder: Path, name: str, parts: Sequence[tuple[str, Scene]], named: Any, below: str = ""
) -> None:
    """Karpathy's JSON; the picture of row 287 is ``287.jpg``, its sentences are numbered from 1435."""
    (folder / "images" / below).mkdir(parents=True)
    entries = []
    for row, (split, scene) in enumerate(parts):
        os.link(scene["file"], folder / "images" / below / named(row))
        numbers = range(5 * row, 5 * row + 5)
        entries.append(
            {
                "filename": named(row),
                **({"filepath": below, "cocoid": row} if below else {}),
                "imgid": row,
                "split": split,
                "sentids": list(numbers),
                "sentences": [
                    {"raw": raw, "tokens": raw.lower().rstrip(".").split(), "imgid": row, "sentid": number}
                    for raw, number in zip(scene["captions"], numbers, strict=True)
                ],
            }
        )
    (folder / f"dataset_{name}.json").write_text(
        json.dumps({"dataset": name, "images": entries}), encoding="utf-8"
    )


def _rows(folder: Path, n_images: int) -> None:
    """Embeddings of Flickr30k made elsewhere: captions near their pictures."""
    folder.mkdir()
    images = np.random.default_rng(0).normal(size=(n_images, 24)).astype(np.float32)
    texts = np.repeat(images, 5, axis=0) + np.random.default_rng(1).normal(size=(5 * n_images, 24))
    made = {"images": (images, ".jpg"), "texts": (texts.astype(np.float32), "")}
    for name, (rows, ending) in made.items():
        np.save(folder / f"{name}.npy", rows)
        ids = "".join(f"{row}{ending}\n" for row in range(len(rows)))
        (folder / f"{name}.txt").write_text(ids, encoding="utf-8")


def _annotations(folder: Path, coco: Sequence[tuple[str, Scene]]) -> None:
    """What was annotated later: finer captions, ratings of pairs (CxC), the experts' of Flickr8k."""
    (folder / "coco-fg").mkdir()
    tested = [(row, scene) for row, (split, scene) in enumerate(coco) if split == "test"]
    finer = {
        f"COCO_val2014_{row:012d}": [
            f"{raw.rstrip('.')}, beside two striped things" for raw in scene["captions"]
        ]
        for row, scene in tested
    }
    (folder / "coco-fg" / "MSCOCO_FG_ann.json").write_text(json.dumps(finer), encoding="utf-8")
    shutil.copy(folder / "coco-fg" / "MSCOCO_FG_ann.json", folder / "MSCOCO_FG_ann.json")
    first = 5 * tested[0][0]
    rated = dict.fromkeys((caption, row) for row, _ in tested for caption in (5 * row, first))
    lines = ["caption,image,agg_score,sampling_method"]
    lines += [
        f"COCO_val2014:sentid:{caption},COCO_val2014_{row:012d}.jpg,{4.8 if caption == 5 * row else 3.2},c2i"
        for caption, row in rated
    ]
    for data in (folder / "Crisscrossed-Captions" / "data", folder / "crisscrossed" / "data"):
        data.mkdir(parents=True)
        (data / "sits_test.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    votes = [
        f"{image}.jpg\t{caption}.jpg#{caption % 5}\t{1 + image % 4}\t{1 + caption % 4}\t{1 + image % 3}"
        for image in range(200, 300)
        for caption in (image, image + 1, image + 7)
    ]
    (folder / "ExpertAnnotations.txt").write_text("\n".join(votes) + "\n", encoding="utf-8")


def _own(folder: Path, parts: Sequence[tuple[str, Scene]]) -> None:
    """``shop.csv``, whose pictures lie in ``pictures`` and, as downloaded ones do, in ``images``."""
    import csv

    (folder / "pictures").mkdir()
    with open(folder / "shop.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["image", "title", "split"])
        for row, (split, scene) in enumerate(parts):
            name = f"product-{row}.jpg"
            os.link(scene["file"], folder / "pictures" / name)
            os.link(scene["file"], folder / "images" / name)
            table.writerows([name, title, split] for title in scene["captions"][:2])


def _birds(folder: Path, scenes: Sequence[Scene]) -> None:
    from miniatures import cub

    names = cub(folder, of_each=40)
    for name, scene in zip(names, scenes, strict=False):
        picture = folder / "CUB_200_2011" / "images" / name
        picture.unlink()
        os.link(scene["file"], picture)
        texts = folder / "cvpr2016_cub" / "text_c10" / f"{name.removesuffix('.jpg')}.txt"
        texts.write_text("\n".join(scene["captions"] * 2) + "\n", encoding="utf-8")


def _digits() -> dict[str, Any]:
    """MNIST's arrays, of noise."""
    draws = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for part, count in (("train", 600), ("test", 100)):
        made[f"x_{part}"] = draws.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        made[f"y_{part}"] = np.arange(count, dtype=np.uint8) % 10
    return made


def _lists(folder: Path) -> None:
    for name in ("captions.txt", "queries.txt"):
        (folder / name).write_text("\n".join(_CAPTIONS) + "\n", encoding="utf-8")


def _catalogues(folder: Path) -> None:
    """Category trees in each format, a merchant's feed and XMarket's metadata."""
    from tiny_catalogue import tiny_records

    records = [record for record in tiny_records() if record["title"] and record.get("category_path")]
    paths = dict.fromkeys(tuple(one["category_path"][:depth]) for one in records for depth in (1, 2, 3))
    numbers = {path: number for number, path in enumerate(paths, 1)}
    google = ["# Google_Product_Taxonomy_Version: 2021-09-21"]
    google += [f"{number} - {' > '.join(path)}" for path, number in numbers.items()]
    (folder / "taxonomy-with-ids.en-US.txt").write_text("\n".join(google) + "\n", encoding="utf-8")
    table = ["id,parent_id,name", "900,899,Lost"]
    table += [f"{number},{numbers.get(path[:-1], '')},{path[-1]}" for path, number in numbers.items()]
    (folder / "categories.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    feed = ["id,title,image_link,product_type,color"]
    for row, one in enumerate(records * 4):
        kind = " > ".join(one["category_path"])
        shown = folder / "images" / f"f{row}.jpg"
        os.link(folder / "images" / f"product-{row}.jpg", shown)
        feed.append(
            f"f{row},{one['title']} {row},https://host/f{row}.jpg,{kind},{one['attributes'].get('colour', 'red')}"
        )
    (folder / "feed.csv").write_text("\n".join(feed) + "\n", encoding="utf-8")


def addresses(folder: Path, host: str) -> None:
    """Write what is downloaded: a list of pictures and XMarket's metadata, all on ``host``."""
    names = ("a.jpg", "b.png", "c.webp")
    lines = ["id,address", *(f"{name[0]},{host}/ok/{name}" for name in names), f"d,{host}/gone/d.jpg"]
    (folder / "images.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with gzip.open(folder / "metadata_us_Shoes.json.gz", "wt", encoding="utf-8") as file:
        for number, name in enumerate(names):
            product = {
                "asin": f"B00{number}",
                "title": f"Shoes no. {number}",
                "categories": [["Clothing", "Shoes", "Boots"]],
                "imgUrl": json.dumps({f"{host}/ok/{name}": [500, 500]}),
                "imgs": json.dumps([f"{host}/ok/{name}"]),
            }
            file.write(json.dumps(product) + "\n")


def leave_more(folder: Path) -> None:
    """Write what is made from results of the README's commands: sessions to score, a file of the shop's categories."""
    example, shop = folder / "scorer" / "example.json", folder / "shop" / "truth.json"
    if example.is_file():
        session = json.loads(example.read_text(encoding="utf-8"))
        (folder / "sessions.jsonl").write_text(f"{json.dumps(session)}\n" * 3, encoding="utf-8")
        events = [{**event, "client_id": "c1"} for event in session["events"]]
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (folder / "events.jsonl").write_text(lines, encoding="utf-8")
    if shop.is_file():
        from diptych.data.products import paths_of
        from diptych.data.readers import read_collection

        paths = {
            path for record in read_collection(folder / "shop").records or () for path in paths_of(record)
        }
        lines = "".join(" > ".join(path) + "\n" for path in sorted(paths))
        (folder / "categories.txt").write_text(lines, encoding="utf-8")


def _scores(folder: Path) -> None:
    """Scores of 20 pictures and their 100 captions, contrastive ones and the matching head's."""
    draws = np.random.default_rng(0)
    truth = np.repeat(np.eye(20), 5, axis=1)
    for name in ("itc", "itm"):
        np.save(folder / f"{name}.npy", (truth + draws.normal(0, 0.6, truth.shape)).astype(np.float32))


def _events(folder: Path) -> None:
    """Raw logs: UCI's table of sessions, YooChoose's clicks and buys, a shop's own CSV."""
    from uci_sessions import made_up_table

    made_up_table(folder / "online_shoppers_intention.csv", 1200)
    draws = np.random.default_rng(0)
    clicks, buys, events = [], [], ["id,ts,action,device"]
    for session in range(300):
        day, hour = 1 + session % 28, session % 24
        length = int(draws.integers(1, 12))
        for page in range(length):
            time = f"2014-04-{day:02d}T{hour:02d}:{page:02d}:00.000Z"
            clicks.append(f"{session},{time},{214536500 + int(draws.integers(50))},0")
            events.append(f"c{session % 90},{time},page,{('pc', 'smartphone')[session % 2]}")
        if session % 4 == 0:
            buys.append(f"{session},2014-04-{day:02d}T{hour:02d}:59:00.000Z,214536500,12462,1")
            events.append(f"c{session % 90},2014-04-{day:02d}T{hour:02d}:59:00.000Z,purchase,pc")
    (folder / "clicks.dat").write_text("\n".join(clicks) + "\n", encoding="utf-8")
    (folder / "buys.dat").write_text("\n".join(buys) + "\n", encoding="utf-8")
    (folder / "events.csv").write_text("\n".join(events) + "\n", encoding="utf-8")


_TRAIN = "diptych train tiny.toml --quiet"
_SCENES = "diptych data scenes --train 200 --val 40 --test 60 --out scenes --quiet"
_CHANGES = {
    "infonce": "--data scenes",
    "triplet": "--data scenes --set objective.name=triplet",
    "smoothap": "--data scenes --set objective.name=smoothap --set batches.plan=grouped",
    "coco": "--data coco",
}


def _stressed(*names: str) -> list[str]:
    runs = ("runs/infonce", "runs/triplet")
    how = "--perturb typos --seeds 1 --quiet"
    return [
        f"diptych analyse stress {run} {how} --out stress/{name}"
        for run, name in zip(runs, names, strict=True)
    ]


FIRST = [
    _SCENES,
    *(f"{_TRAIN} {change} --out runs/{name}" for name, change in _CHANGES.items()),
    *(f"diptych evaluate runs/{name} --quiet" for name in ("infonce", "triplet", "smoothap")),
    *_stressed("one", "other"),
]
"""Commands that make what the README's commands take as made."""

_INDEX = "diptych index runs/flickr8k --quiet"
_LATENT = "--set reconstruction.kind=latent"
_SPARSE = "diptych sparse train hf:NAME --data flickr30k --out sparse --set training.epochs=2 --quiet"
_NEW_PRODUCTS = "diptych data products --n 300 --seed 1 --out new-products --quiet"

BEFORE: dict[str, list[str]] = {
    "analyse audit": [
        f"{_TRAIN} --data scenes --set objective.name=ifm --out runs/ifm",
        f"{_TRAIN} --data scenes {_LATENT} --out runs/ltd",
    ],
    "analyse protocol": [
        f"diptych embed hf:NAME --data flickr30k --split {split} --out {split} --quiet"
        for split in ("test", "val")
    ],
    "categories evaluate": [_NEW_PRODUCTS],
    "categories fill": [_NEW_PRODUCTS],
    "categories index": [_NEW_PRODUCTS],
    "categories pick": [_NEW_PRODUCTS],
    "compare": [
        *(
            f"{_TRAIN} --data scenes --set seed={seed} {change} --out seeds/{name}/{seed}"
            f" && diptych evaluate seeds/{name}/{seed} --quiet"
            for name, change in {"baseline": "", "ltd": _LATENT}.items()
            for seed in (0, 1)
        ),
        *_stressed("gru", "bag-of-words"),
    ],
    "intent evaluate": [
        "diptych data shop-log --visitors 1500 --seed 1 --out later --quiet",
        "diptych intent ingest later --out later-log --quiet",
        "diptych intent features later-log --out later-features --quiet",
    ],
    "search": [
        _INDEX,
        f"{_INDEX} --of texts",
        "diptych index runs/flickr8k/sparse --engine cascade --quiet",
        "diptych categories index runs/shop --quiet",
    ],
    "sparse explain": [_SPARSE, "diptych index sparse --quiet"],
    "sparse terms": [_SPARSE],
    "sparse train": ["rm -r runs/flickr8k/sparse"],
}
"""Commands by verb that make what its examples take as made, beyond what the README's commands leave."""
