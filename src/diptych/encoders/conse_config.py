"""``conse.json``: what a training-free encoder is made of."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from diptych.core.errors import StorageError
from diptych.core.files import read_json
from diptych.encoders.class_names import DEFINITIONS
from diptych.encoders.classifier import ClassifierConfig
from diptych.encoders.targets import TargetOptions

__all__ = ["CONSE_FILE", "ConseConfig"]

CONSE_FILE = "conse.json"
"""The file that makes a folder such an encoder."""


class ConseConfig(ClassifierConfig):
    """What ``conse.json`` says; paths are from its folder.

    Attributes:
        names: see :func:`~diptych.encoders.class_names.class_texts`.
        template: what is made of a name before the sentence encoder reads it.
        sentences: a sentence-transformers folder or name.
        top: T, classes per picture.
        temperature: τ of the soft-max; above 1 the less probable classes count for more.
    """

    names: str = f"imagenet-1k{DEFINITIONS}"
    template: str = "{name}"
    sentences: str = TargetOptions().model
    top: int = Field(10, ge=1)
    temperature: float = Field(1.5, gt=0, allow_inf_nan=False)

    @classmethod
    def read(cls, folder: Path) -> ConseConfig:
        """That of a folder.

        Raises:
            StorageError: the file is missing, is no JSON, or has keys or values that it cannot have.
        """
        file = folder / CONSE_FILE
        try:
            return cls.model_validate(read_json(file))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"])) or "the file"
            known = ", ".join(cls.model_fields)
            raise StorageError(f"{file}: {key}: {first['msg']}", f"its keys: {known}") from None
