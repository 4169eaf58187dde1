"""Family ``rows``: rows that were made elsewhere, matched by id."""

from __future__ import annotations

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family
from diptych.encoders.given_rows import GivenRows, is_folder_of_rows


def _load(source: str, device: str | None) -> DualEncoder:
    return GivenRows.open(source)


FAMILIES.add(
    Family(
        name="rows",
        description="rows made elsewhere, as .npy or Parquet, matched with the data by id; encodes nothing new",
        forms=("rows:FOLDER",),
        prefix="rows",
        recognises=is_folder_of_rows,
        load=_load,
    )
)
