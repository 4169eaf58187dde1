"""The tokenizer of a published checkpoint: BERT's, which the checkpoint does not bring along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.core.errors import DiptychError, StorageError, UsageError
from diptych.encoders.foreign import LOADING_ERRORS
from diptych.encoders.huggingface_files import quiet

__all__ = ["TOKENIZER", "find_tokenizer"]

TOKENIZER = "bert-base-uncased"
"""The tokenizer of all published ALBEF and X-VLM checkpoints."""

_FILES = ("tokenizer.json", "vocab.txt")


def find_tokenizer(given: str | Path | None, beside: Path | None) -> Any:
    """A tokenizer of transformers.

    Args:
        given: a folder, or a name on the hub; None for the files beside the checkpoint, else BERT's own
            from the hub or its cache.
        beside: the checkpoint's folder.

    Raises:
        UsageError: the hub cannot be reached, or does not know the name.
        StorageError: the files are damaged, or hold no vocabulary.
    """
    import transformers

    folder: Path | None = None
    if given is not None and Path(given).expanduser().is_dir():
        folder = Path(given).expanduser()
    elif given is None and beside is not None and any((beside / name).is_file() for name in _FILES):
        folder = beside
    where = str(folder or given or TOKENIZER)
    try:
        with quiet(bars=False):
            tokenizer = transformers.BertTokenizer.from_pretrained(
                where, local_files_only=folder is not None, trust_remote_code=False
            )
    except LOADING_ERRORS as error:
        lines = str(error).strip().splitlines()
        raise _failure(
            where, folder, f"{type(error).__name__}: {lines[0] if lines else 'no reason'}"
        ) from error
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        # What transformers makes of files that it does not find, without a word.
        raise _failure(where, folder, f"a vocabulary of {tokenizer.vocab_size} special tokens")
    return tokenizer


def _failure(where: str, folder: Path | None, reason: str) -> DiptychError:
    if folder is not None:
        return StorageError(
            f"the tokenizer in {folder} cannot be read: {reason}", f"give a folder with {' or '.join(_FILES)}"
        )
    return UsageError(
        f"the tokenizer {where} could not be loaded, neither from its hub nor from the cache: {reason}",
        f"run `hf download {TOKENIZER} vocab.txt tokenizer_config.json --local-dir FOLDER` where there is "
        "network, and put the files beside the checkpoint, or give tokenizer=FOLDER",
    )
