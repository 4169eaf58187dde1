"""Hugging Face ``datasets``: saved on disk, or by hub name.

Rows are images with one caption, a list of captions, or a list of ``{"raw"}`` objects; the images
stay in the Arrow files and are decoded by our own decoder when they are read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.data.collection import WHOLE, Centric, Collection
from diptych.data.readers.contract import Gathering, named_columns, reader
from diptych.data.readers.pairs import COLUMNS, CellSource, texts_of


def _tables(path: Path, name: str | None) -> Mapping[str, Any]:
    datasets = require("datasets", purpose="reading Hugging Face datasets")
    if path.exists():
        try:
            loaded = datasets.load_from_disk(str(path))
        except FileNotFoundError:
            raise DataError(
                f"{path} was not written by save_to_disk",
                "save the dataset with dataset.save_to_disk(folder)",
            ) from None
    else:
        # The hub's own errors (no network, no such dataset) say what they need to.
        loaded = datasets.load_dataset(str(path), name)
    if isinstance(loaded, datasets.DatasetDict):
        return dict(loaded)
    return {WHOLE if loaded.split is None else str(loaded.split): loaded}


@reader(
    "huggingface",
    "a Hugging Face dataset: a save_to_disk folder, or a hub name with --reader huggingface",
    *("dataset_dict.json", "dataset_info.json"),
)
def read_huggingface(
    path: Path | str,
    image_column: str | None = None,
    caption_column: str | None = None,
    split_column: str | None = None,
    config: str | None = None,
    validation: float = 0.1,
    test: float = 0.1,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    datasets = require("datasets", purpose="reading Hugging Face datasets")
    gathered = Gathering(skip_bad_captions, validation, test)
    parts = []
    image = ""
    for split, table in _tables(Path(path), config).items():
        columns = table.column_names
        found = [name for name, feature in table.features.items() if isinstance(feature, datasets.Image)]
        given = {"image": image_column, "caption": caption_column}
        known = {"image": found, "caption": (*COLUMNS["caption"], "answer")}
        image, caption = named_columns(columns, given, known, path)
        if split_column is not None and split_column not in columns:
            raise UsageError(f"{path} has no column {split_column!r}", f"its columns: {', '.join(columns)}")
        texts = table.select_columns([caption] + ([split_column] if split_column else []))
        for row, cell in enumerate(texts):
            part = str(cell[split_column]) if split_column else str(split)
            where = f"{path}, split {split}, row {row}"
            gathered.add(f"{split}-{row:07d}", texts_of(cell[caption]), part, where=where)
        parts.append(table.select_columns([image]).cast_column(image, datasets.Image(decode=False)))
    joined = datasets.concatenate_datasets(parts) if len(parts) > 1 else parts[0]
    source = CellSource(lambda row: joined[row][image], list(gathered.items))
    return gathered.collection(Path(path).name, source, centric)
