"""From a recipe's data section to the collection it means."""

from __future__ import annotations

from dataclasses import replace

from diptych.core.errors import UsageError
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.encoders.encode import without_bad_images
from diptych.training.sections import Data


def collection_of(data: Data) -> Collection:
    """Read or generate the data of a recipe."""
    if data.scenes is not None:
        from diptych.data.scenes import scenes

        return scenes(**data.scenes)
    if data.path is None:
        raise UsageError("the recipe names no data", "give a dataset with --data")
    collection = read_collection(data.path, data.reader, **data.options)
    if data.skip_bad_images:
        collection, problems = without_bad_images(collection)
        if problems:
            note = f"{len(problems)} pictures that cannot be read are left out, the first: {problems[0]}"
            collection = replace(collection, notes=(*collection.notes, note))
    return collection
