"""Frozen encoders of product pictures: a kind per file of :mod:`kinds`, and the rows that they make on disk."""

from diptych.commerce.category_to_image.features.pictures.contract import (
    PICTURES,
    PictureEncoder,
    PictureKind,
    PictureRows,
    make_picture_encoder,
    picture_rows,
)

__all__ = [
    "PICTURES",
    "PictureEncoder",
    "PictureKind",
    "PictureRows",
    "make_picture_encoder",
    "picture_rows",
]
