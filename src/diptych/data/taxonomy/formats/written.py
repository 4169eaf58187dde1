"""What ``diptych categories tree --out`` wrote, read back."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.json_files import load_json
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat
from diptych.data.taxonomy.listing import stem_of
from diptych.data.taxonomy.tree import CategoryTree

__all__: list[str] = []


def _recognises(beginning: Beginning) -> bool:
    lines = beginning.lines
    return (
        beginning.ending == ".json"
        and lines[:1] == ("{",)
        and any('"fingerprint": "' in line for line in lines)
    )


def _read(path: Path) -> Taxonomy:
    document = load_json(path)
    try:
        paths = [tuple(map(str, one["path"])) for one in document["categories"]]
        codes = {
            path: str(one["id"])
            for path, one in zip(paths, document["categories"], strict=True)
            if "id" in one
        }
        name, version = str(document.get("name") or stem_of(path)), str(document.get("version") or "")
        language, wanted = document.get("language"), document.get("fingerprint")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path} is no tree that diptych wrote ({type(error).__name__}: {error})", "write it again"
        ) from None
    tree = CategoryTree(paths, codes)
    if tree.fingerprint != wanted:
        raise DataError(
            f"{path} says its tree is {wanted}, and holds {tree.fingerprint}",
            "it was changed: write it again",
        )
    return Taxonomy(tree, name, version, language if isinstance(language, str) else None)


TAXONOMIES.add(
    TaxonomyFormat(
        "written",
        "the JSON file of diptych categories tree --out",
        _recognises,
        _read,
    )
)
