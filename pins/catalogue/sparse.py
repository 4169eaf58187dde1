"""A sparse head, its measures and its search."""

from __future__ import annotations

from typing import Any

import numpy as np

from pins import adapters
from pins.adapters import diptych
from pins.numbers import record, text_digest
from pins.registry import pin
from pins.world import PUBLISHED, World

QUERY = "a red square left of a blue star"


def hits(ids: list[list[str]], scores: np.ndarray) -> dict[str, Any]:
    """Search results in short."""
    lines = [" ".join(one) for one in ids]
    return {"first": lines[0], "ids": text_digest("\n".join(lines)), "scores": record(scores)}


@pin("sparse.head")
def head(world: World) -> Any:
    """Training, measures and rows of a head."""
    images, texts = adapters.sparse_rows_of(world.head)
    found: dict[str, Any] = {
        "epochs": adapters.steps_of(world.head),
        "measures": adapters.sparse_measures_of(world.head),
    }
    for name, rows in (("images", images), ("texts", texts)):
        found[name] = {
            "columns": record(rows.indices.astype(np.int64)),
            "weights": record(rows.data.astype(np.float32)),
        }
    return found


@pin("sparse.expansion")
def expansion(world: World) -> Any:
    """Heads with other controls of expansion, stopped and resumed."""
    found = {}
    for control in ("0", "1", "c+w"):
        out = world.folder / f"head-{control}"
        given = (
            "sparse",
            "train",
            str(world.run),
            *PUBLISHED,
            f"--expansion={control}",
            "--eta=1e-3",
            "--accelerator=cpu",
        )
        given = (*given, "--set=training.epochs=2", "--set=training.batch_size=16", f"--out={out}")
        with adapters.interrupted_at(5):
            diptych(*given, code=130)
        diptych(*given)
        found[control] = {
            "epochs": adapters.steps_of(out),
            "measures": adapters.sparse_measures_of(out),
        }
    return found


@pin("sparse.search")
def search(world: World) -> Any:
    """Indices of the head's rows, by the command line; terms and an explanation as printed."""
    found: dict[str, Any] = {}
    _, texts = adapters.sparse_rows_of(world.head)
    for engine in ("inverted", "cascade", "impacts"):
        out = world.folder / f"sparse-index-{engine}"
        diptych("index", str(world.head), f"--engine={engine}", f"--out={out}")
        found[engine] = hits(*adapters.found_in(out, texts, 10))
        found[f"{engine}, printed"] = adapters.printed_hits(diptych("search", str(out), QUERY, "-k", "5"))
    found["terms"] = adapters.printed_weights(diptych("sparse", "terms", str(world.head), QUERY))
    found["explained"] = adapters.printed_numbers(
        diptych("sparse", "explain", str(world.head), QUERY, "-k", "1")
    )
    return found


@pin("sparse.dense-search", fast=True)
def dense_search(world: World) -> Any:
    """Indices of the run's own rows, of images and of texts."""
    found: dict[str, Any] = {}
    images, texts = adapters.encoded(world.run, world.scenes)
    for engine in ("exact", "hnsw"):
        for of, queries in (("images", texts), ("texts", images)):
            out = world.folder / f"dense-index-{engine}-{of}"
            diptych("index", str(world.run), f"--engine={engine}", f"--of={of}", f"--out={out}")
            found[f"{engine} of {of}"] = hits(*adapters.found_in(out, queries, 10))
            found[f"{engine} of {of}, printed"] = adapters.printed_hits(
                diptych("search", str(out), QUERY, "-k", "5")
            )
    return found
