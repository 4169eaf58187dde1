"""History of every visitor of a log, kept beside a scorer for those who ask without giving one.

It holds visitors' identifiers and what they bought when: personal data. So it is made only when it is asked for.
It stands still at the end of the log; a shop with a history of its own should give that with every request.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.features.view import EARLIER_DEVICES, NOTHING
from diptych.commerce.purchase_intent.scoring.events import DAY_US
from diptych.core.errors import StorageError
from diptych.core.files import atomic_path

if TYPE_CHECKING:
    import pyarrow as pa

    from diptych.commerce.purchase_intent.sessions import SessionTables

FILE = "history.parquet"
_BLOCK = 1 << 16
_READ = (
    "visitor_id",
    "session_id",
    "start_us",
    "end_us",
    "device",
    "first_purchase_us",
    "pages_before_identified",
)


class HistoryTable:
    """What is known of each visitor at the end of the log."""

    def __init__(self, file: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._rows: pa.Table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{file} cannot be read: {error}", "train again with --keep-history") from None
        self._visitors = self._rows.column("visitor_id").combine_chunks()

    def __len__(self) -> int:
        return len(self._visitors)

    def columns(
        self, visitor: str, start_us: int, device: str, since_us: int | None
    ) -> tuple[dict[str, float | str], int] | None:
        """The history columns of a session of ``visitor``, and when the visitor's last session ended.

        None of a visitor who is not in the table: never seen before.
        """
        place = bisect_left(self._visitors, visitor, key=lambda scalar: scalar.as_py())
        if place == len(self) or self._visitors[place].as_py() != visitor:
            return None
        row: dict[str, Any] = self._rows.slice(place, 1).to_pylist()[0]
        bought = row["last_purchase_us"]
        last = dict(zip(EARLIER_DEVICES, row["last_devices"], strict=False))
        columns: dict[str, float | str] = {
            "orders": float(row["orders"]),
            "days_since_purchase": np.nan if bought is None else (start_us - bought) / DAY_US,
            "sessions": float(row["sessions"]),
            "devices": float(len({*row["devices"], device})),
            "switches": float(row["switches"]),
            "pairs": float(row["sessions"] - 1),
            "history_days": np.nan if since_us is None else (start_us - since_us) / DAY_US,
            **{name: last.get(name, NOTHING) for name in EARLIER_DEVICES},
        }
        return columns, int(row["last_end_us"])


def keep_history(tables: SessionTables, file: Path) -> int:
    """Write the history of every visitor; gives how many there are.

    Sessions count in the order in which they became known as the visitor's, see
    :mod:`diptych.commerce.purchase_intent.features.make`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    known = ds.dataset(tables.files("sessions")).to_table(
        columns=list(_READ), filter=pc.field("visitor_id").is_valid()
    )
    visitors, codes = _encoded(known.column("visitor_id"))
    names, devices = _encoded(known.column("device"))
    ends = known.column("end_us").to_numpy()
    on_arrival = known.column("pages_before_identified").to_numpy() == 0
    known_us = np.where(on_arrival, known.column("start_us").to_numpy(), ends)
    order = np.lexsort((known.column("session_id").to_numpy(), known_us, codes))
    bought = known.column("first_purchase_us").to_numpy().astype(np.float64)  # NaN where nothing was
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sessions_of = np.append(begins, len(order))
    with (
        atomic_path(file) as temporary,
        pq.ParquetWriter(temporary, _schema(pa), compression="zstd") as writer,
    ):
        for start in range(0, len(visitors), _BLOCK):
            rows = []
            for number in range(start, min(start + _BLOCK, len(visitors))):
                mine = order[sessions_of[number] : sessions_of[number + 1]]
                history = _history(names, devices[mine], bought[mine], ends[mine])
                rows.append({"visitor_id": visitors[number], **history})
            writer.write_table(pa.Table.from_pylist(rows, _schema(pa)))
    return len(visitors)


def _encoded(column: Any) -> tuple[list[str], np.ndarray]:
    """The texts of a column, sorted, and (n,) the place of each in them."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), dtype=np.int64)
    place[order] = np.arange(len(texts))
    return [texts[number] for number in order], place[encoded.indices.to_numpy()]


def _history(names: list[str], devices: np.ndarray, bought: np.ndarray, ends: np.ndarray) -> dict[str, Any]:
    """One visitor's, of sessions in their order."""
    there = bought[~np.isnan(bought)]
    return {
        "orders": len(there),
        "last_purchase_us": int(there.max()) if len(there) else None,
        "sessions": len(devices),
        "switches": int((devices[1:] != devices[:-1]).sum()),
        "devices": [names[code] for code in np.unique(devices)],
        "last_devices": [names[code] for code in devices[::-1][: len(EARLIER_DEVICES)]],
        "last_end_us": int(ends.max()),
    }


def _schema(pa: Any) -> Any:
    numbers = ("orders", "last_purchase_us", "sessions", "switches", "last_end_us")
    return pa.schema(
        [
            ("visitor_id", pa.string()),
            *((name, pa.int64()) for name in numbers),
            *((name, pa.list_(pa.string())) for name in ("devices", "last_devices")),
        ]
    )
