"""Files of transformers models: what is in a folder, what is missing, what says nothing about a row."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.core.errors import StorageError

logger = logging.getLogger(__name__)

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
"""Configuration keys that do not change a row in evaluation mode."""


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
    """True for safetensors, False for a pytorch_model.bin."""
    for name, safe in (("model.safetensors", True), ("pytorch_model.bin", False)):
        if (folder / name).is_file() or (folder / f"{name}.index.json").is_file():
            return safe
    raise StorageError(
        f"{folder} holds no weights: neither model.safetensors nor pytorch_model.bin",
        "download the model again, weights included",
    )


def check_loaded(source: str, loading: dict[str, Any], tokenizer: Any) -> None:
    """See that transformers made nothing up."""
    missing = sorted(loading["missing_keys"])
    if missing:
        raise StorageError(
            f"{source} lacks {len(missing)} of the model's weights, which would be random: "
            + ", ".join(missing[:3]),
            "download the model again, or use the one that holds both towers",
        )
    if loading["mismatched_keys"]:
        name, found, wanted = sorted(loading["mismatched_keys"])[0]
        raise StorageError(
            f"{source}: {name} has the shape {tuple(found)}, its config.json asks for {tuple(wanted)}",
            "use the config.json and the weights of the same model",
        )
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise StorageError(
            f"{source} holds no tokenizer: a vocabulary of {tokenizer.vocab_size} special tokens",
            "add the model's tokenizer.json (or vocab.json and merges.txt)",
        )
    if loading["unexpected_keys"]:
        logger.info("%s: %d weights are not used", source, len(loading["unexpected_keys"]))
