"""A process in which no optional library can be imported: ``python base_alone.py FOLDER`` runs verbs as ``pip install
diptych`` has them, and prints their exit codes and errors as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

from diptych.core.extras import EXTRA_OF

COMMANDS = (
    "data scenes --out scenes --train 8 --val 4 --test 8 --size 32",
    "evaluate rows:good --data scenes --out first",
    "evaluate poor --data scenes --out second",
    "compare first second",
    "embed rows:good --data scenes --out embedded",
    "analyse protocol embedded --target rsum=300 --out protocol",
    "index embedded",
    "search embedded/index-images-exact good/texts.npy",
    "index embedded --engine hnsw --of texts",
    "search embedded/index-texts-hnsw good/images.npy",
    "search inverted bags.npy",
    "info",
    "info embedded",
    "info scenes",
    "info measures",
    "info engines",
)
REFUSED = (
    ("train scenes", "train"),
    ("demo", "train"),
    ("evaluate hf:NAME --data scenes --out third", "pretrained"),
    ("sparse train embedded", "train"),
    ("data shortcuts scenes --out sheet.png", "figures"),
    ("data shop-log --out visits", "commerce"),
)


def given_embeddings() -> None:
    """Write embeddings of the generated scenes as another program would."""
    from pathlib import Path

    import numpy as np

    import diptych as dp

    collection, draw = dp.read("scenes"), np.random.default_rng(0)
    images = draw.normal(size=(len(collection.image_ids), 8))
    texts = images[collection.caption_image]
    for name, noise in (("good", 0.1), ("poor", 2.0)):
        folder = Path(name)
        folder.mkdir()
        sides = (("images", images, collection.image_ids), ("texts", texts, collection.caption_ids))
        for side, rows, ids in sides:
            changed = rows + noise * draw.normal(size=rows.shape)
            np.save(folder / f"{side}.npy", changed.astype(np.float32))
            (folder / f"{side}.txt").write_text("\n".join(ids))


def given_bags() -> None:
    """Index bags of terms that another program made, and write some as queries."""
    import numpy as np
    from scipy.sparse import csr_array

    from diptych.encoders.embeddings import SparseEmbeddings, canonical_rows
    from diptych.index import build_index

    draw, terms = np.random.default_rng(0), [f"term-{number}" for number in range(40)]
    weights = draw.random((300, 40)) * (draw.random((300, 40)) < 0.2)
    bags = canonical_rows(csr_array(weights.astype(np.float32)))
    ids = [str(number) for number in range(300)]
    build_index(SparseEmbeddings(ids, bags, terms, "head", "data", "image", {})).save("inverted")
    np.save("bags.npy", bags[:20].toarray())
    np.save("expected.npy", np.sort((bags[:20] @ bags.T).toarray(), axis=1)[:, :-6:-1])


def from_python() -> dict[str, Any]:
    """Search the bags, evaluate arrays, and read what an evaluation wrote for TREC's tools."""
    import numpy as np
    from scipy.sparse import csr_array

    import diptych as dp
    from diptych.metrics import read_qrels, read_run
    from diptych.sparse.sparsified import SparsifiedCollection

    assert SparsifiedCollection.marker()
    found = dp.open_index("inverted").find(csr_array(np.load("bags.npy")), 5)
    scores = [[hit.score for hit in one] for one in found]
    return {
        "error": np.abs(np.load("expected.npy") - scores).max(),
        "rsum": dp.evaluate(np.eye(3), np.eye(3)).rsum,
        "queries": len(read_run("first/evaluation/t2i.run")),
        "judged": len(read_qrels("first/evaluation/t2i.qrels")),
    }


def main(folder: str) -> None:
    absent = [*EXTRA_OF, "pandas", "sqlglot", "Stemmer"]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: it cannot be imported
    os.chdir(folder)
    from diptych import cli

    done: dict[str, Any] = {}
    for command in (*COMMANDS, *(command for command, _ in REFUSED)):
        sys.argv = ["diptych", *command.split()]
        errors = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            try:
                cli.main()
            except SystemExit as ended:
                done[command] = (ended.code, errors.getvalue())
        if command.startswith("data scenes"):
            given_embeddings()
            given_bags()
    print(json.dumps({"commands": done, "python": from_python()}, default=float))


if __name__ == "__main__":
    main(sys.argv[1])
