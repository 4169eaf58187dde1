"""Targets of a sentence encoder: any model of the sentence-transformers library, of which nothing is made up.

Sources: Reimers and Gurevych, Sentence-BERT, EMNLP 2019; Bleeker, Yates, de Rijke, 2022.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from diptych.core.errors import StorageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import file_errors, read_json
from diptych.encoders import hub
from diptych.encoders.targets.contract import TargetModel, TargetOptions

_EXTRA = ("targets", "making targets with a sentence encoder")
_OTHER_FORMATS = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.mlmodel", "*.gguf"]


class SentenceEncoder(TargetModel):
    """A sentence-transformers model; open one with :meth:`load`."""

    kind: ClassVar[str] = "sentence"

    def __init__(self, model: Any, source: str, unused: frozenset[str], precision: str) -> None:
        self.model = model.eval()
        self.source = source
        self.precision = precision
        self._unused = unused

    @classmethod
    def load(cls, source: str, precision: str = "float32", device: str | None = None) -> Self:
        library = require("sentence_transformers", *_EXTRA)
        folder = hub.hub_folder(source, "sentence-transformers", ignore_patterns=_OTHER_FORMATS)
        if not (folder / "modules.json").is_file():
            raise StorageError(
                f"{source} is no sentence-transformers model: it has no modules.json",
                "give the folder that its README loads with SentenceTransformer(...)",
            )
        options = {
            "device": device or ("cuda" if torch.cuda.is_available() else "cpu"),
            "local_files_only": True,
            "trust_remote_code": False,
            "model_kwargs": {"dtype": torch.float32},
        }
        with hub.loading(source, folder), hub.quiet(bars=False):
            model = library.SentenceTransformer(str(folder), **options)
            unused = _random_weights(model, folder, source)
        return cls(model, str(folder.resolve()) if hub.given_folder(source) else source, unused, precision)

    @classmethod
    def make(cls, options: TargetOptions, captions: Sequence[str]) -> Self:
        return cls.load(options.model, options.precision)

    @classmethod
    def reopen(cls, folder: Path, settings: dict[str, Any]) -> Self:
        return cls.load(settings["model"], settings["precision"])

    @property
    def width(self) -> int:
        return int(self.model.get_embedding_dimension())

    @cached_property
    def fingerprint(self) -> str:
        weights: dict[str, np.ndarray] = {}
        modules: list[Any] = []
        for number, module in enumerate(self.model):
            inner = getattr(module, "auto_model", module)
            modules.append([type(module).__name__, type(inner).__name__, module.get_config_dict()])
            if inner is not module:
                modules.append(hub.without_keys(inner.config.to_dict(), hub.NO_EFFECT))
            for name, value in inner.state_dict().items():
                if name not in self._unused:
                    weights[f"{number}.{name}"] = value.cpu().numpy()
        return fingerprint(
            self.kind,
            modules,
            _tokenizer_content(self.model.tokenizer),
            [self.model.max_seq_length, self.model.prompts, self.model.default_prompt_name, self.precision],
            fingerprint_arrays(weights),
        )

    def _about(self) -> dict[str, Any]:
        library = f"sentence-transformers {require('sentence_transformers', *_EXTRA).__version__}"
        return {"longest": self.model.max_seq_length, "precision": self.precision, "library": library}

    def _rows(self, texts: list[str]) -> np.ndarray:
        device = self.model.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.precision == "bfloat16"):
            rows: np.ndarray = self.model.encode(texts, batch_size=len(texts), show_progress_bar=False)
        return rows

    def _write(self, folder: Path) -> dict[str, Any]:
        return {"model": self.source, "precision": self.precision}


def _random_weights(model: Any, folder: Path, source: str) -> frozenset[str]:
    """Return names of weights that the files lack, when no row depends on them."""
    inner = getattr(model[0], "auto_model", None)
    if inner is None:
        return frozenset()
    with file_errors(folder / "modules.json", fix="download the model again"):
        where = read_json(folder / "modules.json")[0]["path"]
    _, report = type(inner).from_pretrained(
        folder / where, local_files_only=True, weights_only=True, output_loading_info=True
    )
    missing = set(report["missing_keys"])
    # Targets are pooled from token states: the pooler of BERT-like models is not used.
    unused = {name for name in missing if name.startswith("pooler.")}
    hub.check_complete(source, missing - unused, None)
    return frozenset(unused)


def _tokenizer_content(tokenizer: Any) -> Any:
    if hasattr(tokenizer, "special_tokens_map"):
        return hub.tokenizer_content(tokenizer)
    if hasattr(tokenizer, "to_str"):
        return json.loads(tokenizer.to_str())
    return [type(tokenizer).__name__, list(tokenizer.get_vocab())]
