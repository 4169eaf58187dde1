"""The texts that a classifier's classes stand for: names, or names with their definitions.

ImageNet's come with timm, in the order of the usual classifiers' outputs; those of another classifier are
a file with one text per line.
"""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import StorageError, UsageError

__all__ = ["DEFINITIONS", "class_texts"]

DEFINITIONS = "-definitions"
"""What is put behind the name of a set of classes to have WordNet's definition after each name."""

_PLACE = "{name}"


def class_texts(names: str, folder: Path, template: str = _PLACE) -> list[str]:
    """One text per class, in the order of the network's outputs.

    Args:
        names: ``imagenet-1k``, ``imagenet-21k`` or another set of timm's, whose names are those of WordNet
            ("tabby, tabby cat"); the same with :data:`DEFINITIONS`, for "tabby, tabby cat: a cat with a grey
            or tawny coat mottled with black"; or a file, one text per line.
        folder: where a file lies when it is not named by its whole path.
        template: what is made of a name, which stands for ``{name}`` in it.

    Raises:
        UsageError: neither a set of timm's nor a file, or a template without ``{name}``.
        StorageError: the file is empty or no text, or has an empty line.
    """
    if _PLACE not in template:
        raise UsageError(f"template {template!r} has no place for a name", f"e.g. 'a photo of a {_PLACE}'")
    file = folder / names
    found = _lines(file) if file.is_file() else _of_timm(names, file)
    return [template.replace(_PLACE, name).strip() for name in found]


def _of_timm(names: str, file: Path) -> list[str]:
    from timm.data import ImageNetInfo

    wanted = names.removesuffix(DEFINITIONS)
    try:
        classes = ImageNetInfo(wanted)
    except (AssertionError, KeyError):
        raise UsageError(
            f"names {names!r} are neither a set of classes that timm knows nor a file ({file})",
            f"imagenet-1k{DEFINITIONS}, imagenet-1k, imagenet-21k, or a file with one name per line",
        ) from None
    detailed = names != wanted
    return [classes.index_to_description(row, detailed=detailed) for row in range(classes.num_classes())]


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{file} cannot be read: {error}", "one name per line, in UTF-8") from None
    empty = next((number for number, line in enumerate(lines, 1) if not line.strip()), None)
    if not lines or empty is not None:
        where = "is empty" if not lines else f"has nothing in line {empty}"
        raise StorageError(f"{file} {where}", "one name per line, in the order of the network's outputs")
    return [line.strip() for line in lines]
