"""Sharing an encoder: its model card, and its upload to the Hugging Face hub."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.extras import require

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
