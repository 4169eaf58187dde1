"""Blocks encoded by actors of a Ray cluster; their rows come back to this process, which writes them.

Only the dataset must lie where every machine of the cluster finds it: the encoder is sent, no file is written there.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import stopping
from diptych.core.extras import require
from diptych.data.collection import Collection
from diptych.data.row_store import RowPlan
from diptych.encoders import encode


class _Actor:
    """An encoder in a process of the cluster."""

    def __init__(self, files: dict[str, bytes], share: Sequence[Any], kind: str, plan: RowPlan) -> None:
        self._kind, self._plan = kind, plan
        with tempfile.TemporaryDirectory() as home:
            for name, content in files.items():
                (file := Path(home) / name).parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            self._encoder, self._collection, self._threads = encode.worker(Path(home), *share)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        of = (self._encoder, self._collection, self._kind, self._plan, [int(row["block"])], self._threads)
        [(block, rows)] = encode.encoded_blocks(*of)
        return {"block": block, "rows": rows.astype(self._plan.dtype).tobytes()}


def encode_over_ray(
    saved: Path, mark: str, collection: Collection, halves: Sequence[Any], actors: int, accelerator: str
) -> None:
    """Encode the missing blocks of each half with the encoder in a folder, until a stop is requested."""
    ray, data = require("ray", purpose="encoding over Ray"), require("ray.data", "ray", "encoding over Ray")
    ray.init(ignore_reinit_error=True, log_to_driver=False, configure_logging=False)
    is_cuda = accelerator in ("cuda", "gpu") or (accelerator == "auto" and "GPU" in ray.cluster_resources())
    files = {str(file.relative_to(saved)): file.read_bytes() for file in saved.rglob("*") if file.is_file()}
    share = (mark, collection, "cuda:0" if is_cuda else "cpu", 1)  # Ray shows an actor its own GPU alone
    for half in halves:
        plan, missing = half.store.plan, [{"block": block} for block in half.store.missing().tolist()]
        work = data.from_items(missing, override_num_blocks=len(missing) or None).map(
            _Actor,
            fn_constructor_args=(files, share, half.kind, plan),
            concurrency=actors,
            num_gpus=int(is_cuda),
        )
        rows = work.iter_rows() if missing else ()
        made = ((int(one["block"]), np.frombuffer(one["rows"], plan.dtype)) for one in rows)
        half.follow(encode.write_blocks(half.store, ((at, of.reshape(-1, *plan.shape)) for at, of in made)))
        if stopping():
            return
