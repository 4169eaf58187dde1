"""Weights of other libraries: where the hub keeps them, and their errors as this package says them."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from diptych.core.errors import DiptychError, StorageError, UsageError
from diptych.core.extras import require
from diptych.encoders.dual_encoder import EncoderHeader

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder


_EXTRA = ("hub", "uploading an encoder")

_CARD = """---
library_name: diptych
tags:
- image-text-retrieval
- dual-encoder
---
# {name}

A dual encoder for image–text retrieval, {width} dimensions, family `{family}`.

```python
from diptych.encoders.dual_encoder import DualEncoder

encoder = DualEncoder.load("FOLDER")  # the folder this file is in
encoder.encode_texts(["two dogs on a beach"]) @ encoder.encode_images([picture]).T
```

What its numbers depend on:

```json
{description}
```
"""


def model_card(encoder: DualEncoder) -> str:
    """The README of a saved encoder, in the hub's format."""
    description = encoder.describe()
    return _CARD.format(
        name=Path(str(description.get("name", encoder.family))).name,
        width=encoder.width,
        family=encoder.family,
        description=json.dumps(description, indent=1, ensure_ascii=False),
    )


def push(encoder: DualEncoder, repo_id: str, *, private: bool, message: str) -> str:
    """Save ``encoder`` to a temporary folder, upload it, and return the address of the upload."""
    library = require("huggingface_hub", *_EXTRA)
    with tempfile.TemporaryDirectory() as temporary:
        folder = encoder.save(Path(temporary) / "encoder")
        # Beside OSError and ValueError the client lets errors of its HTTP library through, which is
        # a matter of its version; its own error class inherits from their root.
        unreachable = (
            OSError,
            ValueError,
            *require("huggingface_hub.errors", *_EXTRA).HfHubHTTPError.__bases__,
        )
        try:
            repository = library.create_repo(repo_id, private=private, exist_ok=True)
            commit = library.upload_folder(
                repo_id=repository.repo_id, folder_path=str(folder), commit_message=message
            )
        except unreachable as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UsageError(
                f"cannot upload to {repo_id}: {reason}",
                "sign in with `hf auth login`, and check the name and the network",
            ) from error
    return str(commit)


LOADING_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,
    TypeError,
    KeyError,
    ImportError,
    SafetensorError,
    pickle.UnpicklingError,
)
"""What the libraries raise on missing, damaged or unfitting files and on hubs out of reach."""


def loading_failure(source: str, folder: Path | None, error: BaseException, fix: str) -> DiptychError:
    """Our error for a library's, raised while it loaded ``source``."""
    if isinstance(error, pickle.UnpicklingError):
        return StorageError(
            f"the weights of {source} hold more than tensors (pickled code), or are damaged, and are refused",
            "use a copy of the model in safetensors",
        )
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
    if folder is not None:
        return StorageError(f"{source} cannot be read: {reason}", fix)
    return UsageError(f"{source} could not be loaded, neither from its hub nor from the cache: {reason}", fix)


@contextmanager
def hub_within_reach() -> Iterator[None]:
    """Let the block load from the hub; from its cache alone, at once, where the hub does not answer.

    Asked by its clients, a hub out of reach costs half a minute of retries per file.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.errors import HfHubHTTPError

    offline = constants.HF_HUB_OFFLINE
    errors: Any = (OSError, *HfHubHTTPError.__bases__)  # those of its HTTP library
    try:
        if not offline:
            get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except errors:
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline


_PATIENCE = 5.0
"""Seconds."""


def saved_settings(folder: Path) -> dict[str, Any]:
    """The settings that ``DualEncoder.save`` kept in ``folder``; empty where it did not write it."""
    return EncoderHeader.open(folder).settings if EncoderHeader.is_at(folder) else {}


def without_keys(config: Any, keys: Collection[str]) -> Any:
    """A nested configuration without ``keys``, at every depth."""
    if isinstance(config, dict):
        return {key: without_keys(value, keys) for key, value in config.items() if key not in keys}
    return config


def tokenizer_content(tokenizer: Any) -> dict[str, Any]:
    """What a transformers tokenizer does, without where it came from or how it was last called."""
    content: dict[str, Any] = {
        "class": type(tokenizer).__name__,
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "padding_side": tokenizer.padding_side,
    }
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return content | {"vocabulary": tokenizer.get_vocab()}
    rules = json.loads(backend.to_str())
    # The two keys left out are what the last call asked for.
    return content | {key: value for key, value in rules.items() if key not in ("truncation", "padding")}
