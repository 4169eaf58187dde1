"""Blocks of images and captions encoded by actors of a Ray cluster; rows come back to this process, which writes them.

Only the dataset must lie where every machine of the cluster finds it: the encoder is sent, no file is written there.
"""

from __future__ import annotations

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
    def __init__(
        self,
        files: dict[str, bytes],
        mark: str,
        collection: Collection,
        device: str,
        kind: str,
        plan: RowPlan,
    ) -> None:
        with tempfile.TemporaryDirectory() as home:
            for name, content in files.items():
                (file := Path(home) / name).parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            self._worker = encode.worker(Path(home), mark, collection, device, threads=1)
        self._kind, self._plan = kind, plan

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        encoder, collection, threads = self._worker
        plan, block = self._plan, int(row["block"])
        rows = next(encode.rows_of_blocks(encoder, collection, self._kind, plan, [block], threads))
        return {"block": block, "rows": rows.tobytes()}


def encode_over_ray(
    saved: Path, mark: str, collection: Collection, halves: Sequence[Any], actors: int, accelerator: str
) -> None:
    """Encode the missing blocks of each half with the encoder that is saved, until a stop is requested."""
    ray, data = require("ray", purpose="encoding over Ray"), require("ray.data", "ray", "encoding over Ray")
    ray.init(ignore_reinit_error=True, log_to_driver=False, configure_logging=False)
    is_cuda = accelerator in ("cuda", "gpu") or (accelerator == "auto" and "GPU" in ray.cluster_resources())
    files = {str(file.relative_to(saved)): file.read_bytes() for file in saved.rglob("*") if file.is_file()}
    for half in halves:
        plan, missing = half.store.plan, half.store.missing().tolist()
        shared = (files, mark, collection, "cuda:0" if is_cuda else "cpu", half.kind, plan)
        work = data.from_items(
            [{"block": block} for block in missing], override_num_blocks=len(missing) or None
        )
        made = work.map(
            _Actor,
            fn_constructor_args=shared,
            concurrency=actors,
            num_cpus=1,
            num_gpus=1 if is_cuda else None,
        )
        with half.bar(half.store.done()) as bar, half.store:
            for one in made.iter_rows() if missing else ():
                rows = np.frombuffer(one["rows"], dtype=plan.dtype).reshape(-1, *plan.shape)
                half.store.write(int(one["block"]), rows)
                bar.advance(len(rows))
                if stopping():
                    return
