"""Weights of other libraries: where the hub keeps them, how they are loaded, and errors of loading as ours."""

import json
import pickle
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import cache_root, safe_name
from diptych.encoders.dual_encoder import CONFIG_FILE, DualEncoder, EncoderHeader

_EXTRA = ("hub", "models of the hub")
_PATIENCE = 5.0  # seconds

_CARD = """---
library_name: diptych
tags:
- image-text-retrieval
- {tag}
---
# {title}

{text}

```python
{code}
```

What its numbers depend on:

```json
{description}
```
"""


def model_card(tag: str, title: str, text: str, code: str, description: dict[str, Any]) -> str:
    """Return the README.md of a saved model; ``code`` shows how it is loaded from ``"FOLDER"`` and used."""
    written = json.dumps(description, indent=1, ensure_ascii=False)
    return _CARD.format(tag=tag, title=title, text=text, code=code, description=written)


def encoder_card(encoder: DualEncoder) -> str:
    description = encoder.describe()
    return model_card(
        "dual-encoder",
        Path(str(description.get("name", encoder.family))).name,
        f"A dual encoder for image–text retrieval, {encoder.width} dimensions, family `{encoder.family}`.",
        "from diptych.encoders.dual_encoder import DualEncoder\n\n"
        'encoder = DualEncoder.load("FOLDER")  # the folder this file is in\n'
        'encoder.encode_texts(["two dogs on a beach"]) @ encoder.encode_images([image]).T',
        description,
    )


def push(encoder: DualEncoder, name: str, *, private: bool, message: str) -> str:
    hub = require("huggingface_hub", *_EXTRA)
    with tempfile.TemporaryDirectory() as temporary:
        folder = encoder.save(Path(temporary) / "encoder")
        for saved in (Path(encoder.loaded_from), Path(encoder.loaded_from) / "best"):
            if EncoderHeader.is_at(saved) and EncoderHeader.open(saved).fingerprint == encoder.fingerprint:
                with suppress(FileNotFoundError):  # the card with what was added to it
                    shutil.copyfile(saved / "README.md", folder / "README.md")
        try:
            whole = hub.create_repo(name, private=private, exist_ok=True).repo_id
            return str(hub.upload_folder(repo_id=whole, folder_path=str(folder), commit_message=message))
        except _client_errors() as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            fix = "sign in with `hf auth login`, and check the name and the network"
            raise UsageError(f"cannot upload to {name}: {reason}", fix) from error


class PushedEncoder:
    """An encoder of any family that lies on the hub as :func:`push` uploads it."""

    @staticmethod
    def open(source: str, *, device: str | None = None) -> DualEncoder:
        """Load the encoder from the hub or, where that is out of reach, from what was downloaded before."""
        # Files of the hub's own cache are links, which artifacts refuse.
        folder = cache_root() / "hub" / safe_name(source)
        with loading(source, None):
            require("huggingface_hub", *_EXTRA).snapshot_download(source, local_dir=folder)
        if not (folder / CONFIG_FILE).is_file():
            text = f"{source} holds no encoder that diptych saved (no {CONFIG_FILE})"
            raise UsageError(text, f"name its library: hf:{source}, open_clip:hf-hub:{source} or st:{source}")
        return DualEncoder.load(folder, device=device)


# What the libraries raise on missing, corrupt or unfitting files and on hubs out of reach.
_LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, TypeError, KeyError, ImportError),
    *(SafetensorError, pickle.UnpicklingError),
)


@contextmanager
def loading(source: str | Path, folder: Path | None, fix: str = "") -> Iterator[None]:
    """Raise our error for a library's while the block loads ``source``, from a folder or by name from a hub."""
    try:
        yield
    except (*_LOADING_ERRORS, *_client_errors()) as error:
        if isinstance(error, pickle.UnpicklingError):
            raise StorageError(
                f"the weights of {source} hold more than tensors (pickled code), or are corrupt, and are refused",
                "use a copy of the model in safetensors",
            ) from error
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
        if folder is not None:
            fix = fix or "download the model again, all files"
            raise StorageError(f"{source} cannot be read: {reason}", fix) from error
        raise UsageError(
            f"{source} could not be loaded, neither from its hub nor from the cache: {reason}",
            fix or f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER",
        ) from error


def given_folder(source: str | Path) -> Path | None:
    """Return the folder that a model is named by; None where it is a name."""
    folder = Path(source).expanduser()
    return folder if folder.is_dir() else None


def hub_folder(source: str, owner: str = "", **patterns: list[str]) -> Path:
    """Return the folder that ``source`` is, or the hub's cache of that model, filled when it can be.

    ``owner`` is that of a name without one.
    """
    if (given := given_folder(source)) is not None:
        return given
    source = source if "/" in source or not owner else f"{owner}/{source}"
    with loading(source, None):
        return Path(require("huggingface_hub", *_EXTRA).snapshot_download(source, **patterns))


def load_part(kind: Any, source: str | Path, fix: str = "", **options: Any) -> Any:
    """Load a tokenizer or an image processor of the library's class ``kind``, without running code of its files."""
    folder = given_folder(source)
    with loading(source, folder, fix), quiet(bars=folder is None):
        return kind.from_pretrained(
            folder or source, trust_remote_code=False, local_files_only=folder is not None, **options
        )


def load_transformers(
    source: str | Path, name: str, check: Callable[[Any], None], **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Load a model of the class ``name`` in float32 as :func:`load_part`, and a report; ``check`` its configuration."""
    import torch
    import transformers

    folder = given_folder(source)
    if folder:
        options["use_safetensors"] = weights_format(folder)
    config = load_part(transformers.AutoConfig, source)
    check(config)
    options |= {"config": config, "dtype": torch.float32, "weights_only": True, "output_loading_info": True}
    loaded: tuple[Any, dict[str, Any]] = load_part(getattr(transformers, name), source, **options)
    return loaded


def _client_errors() -> Any:
    """Return what the hub's client lets through of its HTTP library; its own error inherits from that one's root."""
    return (OSError, ValueError, *require("huggingface_hub.errors", *_EXTRA).HfHubHTTPError.__bases__)


@contextmanager
def hub_within_reach() -> Iterator[None]:
    """Let the block load from the hub; where that does not answer, at once from its cache (a file costs 30 s else)."""
    from huggingface_hub import constants, get_session

    offline = constants.HF_HUB_OFFLINE
    try:
        if not offline:
            get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except _client_errors():
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline


def check_complete(source: str, missing: Iterable[str], tokenizer: Any) -> None:
    """Raise StorageError for what a library would make up: weights, or a tokenizer of nothing but special tokens."""
    lost = sorted(missing)
    if lost:
        raise StorageError(
            f"{source} lacks {len(lost)} of the model's weights, which would be random: {', '.join(lost[:3])}",
            "download the model again, all files, or use the one that holds both towers",
        )
    if tokenizer is not None and tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise StorageError(
            f"{source} holds no tokenizer: a vocabulary of {tokenizer.vocab_size} special tokens",
            "add the model's tokenizer.json (or vocab.json and merges.txt)",
        )


def saved_settings(source: str | Path, folder: Path | None = None) -> dict[str, Any]:
    """Return the settings that ``DualEncoder.save`` wrote into ``source`` or its ``folder``, or only ``name``."""
    given = given_folder(source)
    folder = folder or given
    saved = EncoderHeader.open(folder).settings if folder and EncoderHeader.is_at(folder) else {}
    return {"name": given.resolve().name if given else source, **saved}


def without_keys(config: Any, keys: Collection[str]) -> Any:
    if isinstance(config, dict):
        return {key: without_keys(value, keys) for key, value in config.items() if key not in keys}
    return config


def tokenizer_content(tokenizer: Any) -> dict[str, Any]:
    """Return what a transformers tokenizer does, without where it came from or how it was last called."""
    content: dict[str, Any] = {
        "class": type(tokenizer).__name__,
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "padding_side": tokenizer.padding_side,
    }
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return content | {"vocabulary": tokenizer.get_vocab()}
    rules = json.loads(backend.to_str())
    # The two keys left out are settings of the last call.
    return content | {key: value for key, value in rules.items() if key not in ("truncation", "padding")}


# Configuration keys that do not change a row in evaluation mode.
NO_EFFECT = frozenset(
    (
        *("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "architectures"),
        *("auto_map", "image_processor_type", "dtype", "torch_dtype", "_attn_implementation_autoset"),
        *("initializer_range", "initializer_factor", "logit_scale_init_value", "temperature_init_value"),
        *("attention_dropout", "dropout", "dropout_rate", "drop_connect_rate"),
        *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        *("id2label", "label2id", "problem_type"),
        *("return_dict", "output_attentions", "output_hidden_states"),
    )
)


@contextmanager
def quiet(bars: bool) -> Iterator[None]:
    """Silence transformers' reports (ours are exceptions), and its progress bars unless ``bars``."""
    from transformers.utils import logging as reports

    verbosity, bars_before = reports.get_verbosity(), reports.is_progress_bar_enabled()
    reports.set_verbosity_error()
    if not bars:
        reports.disable_progress_bar()
    try:
        yield
    finally:
        reports.set_verbosity(verbosity)
        if bars_before:
            reports.enable_progress_bar()


def weights_format(folder: Path) -> bool:
    """Return True for safetensors, False for a pytorch_model.bin."""
    for name, safe in (("model.safetensors", True), ("pytorch_model.bin", False)):
        if (folder / name).is_file() or (folder / f"{name}.index.json").is_file():
            return safe
    raise StorageError(
        f"{folder} holds no weights: neither model.safetensors nor pytorch_model.bin",
        "download the model again, weights included",
    )
