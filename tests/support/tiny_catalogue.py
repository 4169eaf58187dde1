"""A shop of 24 products: three levels, pictures, and of everything one that lacks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.commerce.catalogue import Catalogue, catalogue_of
from diptych.data.collection import Collection
from diptych.data.images import FolderSource

DRESSES = ("Women", "Clothing", "Dresses")
COATS = ("Women", "Clothing", "Coats")
RINGS = ("Women", "Accessories", "Rings")
TROUSERS = ("Men", "Clothing", "Trousers")
SHIRTS = ("Men", "Clothing", "Shirts")
BELTS = ("Men", "Accessories", "Belts")

LEAVES = (DRESSES, COATS, RINGS, TROUSERS, SHIRTS, BELTS)
"""Each has four products; "Clothing" and "Accessories" stand under both roots."""

COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200), "green": (30, 160, 30), "grey": (128, 128, 128)}

NO_PICTURE, NO_TITLE, NO_ATTRIBUTES, NO_CATEGORY, TWO_PATHS, HALF_PATH = (
    "p05",
    "p10",
    "p15",
    "p19",
    "p00",
    "p17",
)
"""The odd ones: p00 is a dress and a coat, p17 a "Men > Clothing" and no more is known."""


def tiny_records() -> list[dict[str, Any]]:
    """One record per product, p00 to p23."""
    records: list[dict[str, Any]] = []
    for row in range(24):
        leaf, colour = LEAVES[row // 4], list(COLOURS)[row % 4]
        records.append(
            {
                "title": f"{colour.title()} {leaf[-1].lower().removesuffix('s')} no. {row}",
                "attributes": {"colour": colour, "material": ["cotton", "wool"][: 1 + row % 2]},
                "category_path": list(leaf),
            }
        )
    records[0] = {**records[0], "category_paths": [list(DRESSES), list(COATS)]}
    del records[0]["category_path"]
    records[10]["title"] = ""
    records[15]["attributes"] = {}
    del records[19]["category_path"]
    records[17]["category_path"] = list(SHIRTS[:2])
    return records


def tiny_collection(folder: Path) -> Collection:
    """The products, their 16 × 16 pictures written into ``folder``; of each leaf two train, one val, one test."""
    records = tiny_records()
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"p{row:02d}" for row in range(len(records))]
    draws = np.random.default_rng(0)
    for row, name in enumerate(names):
        if name == NO_PICTURE:
            continue
        colour = np.array(list(COLOURS.values())[row % 4])
        pixels = np.full((16, 16, 3), 255, dtype=np.int64)
        size = 3 + row // 4  # what it is shows in its size, so that a picture says something of its category
        pixels[2 : 2 + 2 * size, 8 - size : 8 + size] = colour
        pixels = np.clip(pixels + draws.integers(-8, 9, pixels.shape), 0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{name}.png")
    captioned = [row for row, record in enumerate(records) if record["title"]]
    return Collection(
        name="tiny",
        image_ids=names,
        captions=[records[row]["title"] for row in captioned],
        caption_ids=[f"{names[row]}#0" for row in captioned],
        caption_image=np.array(captioned),
        splits=[("train", "train", "val", "test")[row % 4] for row in range(len(records))],
        source=FolderSource(folder, [f"{name}.png" for name in names]),
        source_rows=np.array([-1 if name == NO_PICTURE else row for row, name in enumerate(names)]),
        records=records,
    )


def tiny_catalogue(folder: Path) -> Catalogue:
    """The same as a catalogue."""
    return catalogue_of(tiny_collection(folder))
