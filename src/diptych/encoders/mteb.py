"""Models exchanged with mteb 2, both ways: dual encoders in its evaluations, its models as dual encoders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch.utils.data import DataLoader

from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.hub import loading
from diptych.encoders.inputs import pick_device
from diptych.encoders.wrapped import WrappedEncoder

_EXTRA = ("mteb", "exchanging models with mteb")
_PROMPTS = "Flickr30kT2IRetrieval"  # the task whose prompts are given to models that take some


class MtebEncoder:
    """A dual encoder behind mteb's ``EncoderProtocol``; a document of image and text gets the sum of both rows."""

    def __init__(self, encoder: DualEncoder) -> None:
        if encoder.similarity != "cosine" or encoder.takes != "pictures":
            raise UsageError(
                f"{encoder.name} compares {encoder.takes} by {encoder.similarity}, mteb pictures by cosine",
                "evaluate it with diptych evaluate, and export that with diptych export --to mteb",
            )
        self.encoder = encoder
        name = encoder.name.rstrip("/").rpartition("/")[2] or "encoder"
        values: dict[str, Any] = {"embed_dim": encoder.width, "modalities": ["image", "text"]}
        values |= {"name": f"diptych/{name}", "revision": encoder.fingerprint}
        self.mteb_model_meta = require("mteb.models", *_EXTRA).ModelMeta.create_empty(values)

    def encode(self, inputs: Iterable[Mapping[str, Any]], **task: Any) -> torch.Tensor:
        """Encode batches with lists of ``image``, ``text`` or both to (n, d) rows; no prompts are added."""
        rows = []
        for batch in inputs:
            images = self.encoder.encode_images(batch["image"]) if "image" in batch else 0
            texts = self.encoder.encode_texts(list(batch["text"])) if "text" in batch else 0
            rows.append(images + texts)
        return torch.from_numpy(np.concatenate(rows))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        return _normalised(embeddings1) @ _normalised(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> torch.Tensor:
        return (_normalised(embeddings1) * _normalised(embeddings2)).sum(-1)


def _normalised(rows: Any) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.as_tensor(rows), dim=-1)


class _Items(list[dict[str, Any]]):
    """Items of one kind, which models see by ``features``, as in the library's own datasets."""

    def __init__(self, kind: str, items: Sequence[Any]) -> None:
        super().__init__({kind: item} for item in items)
        self.features = {kind: None}


class MtebModel(WrappedEncoder):
    """A model of mteb's registry that takes images and texts; texts are its queries, images its documents."""

    family: ClassVar[str] = "mteb"
    revision = ""

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        mteb = require("mteb", *_EXTRA)
        fix = "mteb.get_model_metas(modalities=['image', 'text']) lists those that fit"
        with loading(f"mteb:{source}", None, fix):
            model = mteb.get_model(source, device=str(pick_device(device)))
        known = model.mteb_model_meta.modalities
        if not {"image", "text"} <= set(known) or not hasattr(model, "encode"):
            raise UsageError(f"mteb:{source} takes {', '.join(known)}, not images and texts each", fix)
        task = {"task_metadata": mteb.get_task(_PROMPTS).metadata, "hf_split": "test", "hf_subset": "default"}

        def side(kind: str, prompt: str) -> Callable[[Sequence[Any]], Any]:
            how = {**task, "prompt_type": mteb.types.PromptType(prompt), "show_progress_bar": False}

            def encode(items: Sequence[Any]) -> Any:
                data: Any = _Items(kind, items)
                listed = DataLoader(
                    data, len(items), collate_fn=lambda rows: {kind: [row[kind] for row in rows]}
                )
                return model.encode(listed, batch_size=len(items), **how)

            return encode

        found = cls(side("image", "document"), side("text", "query"), name=source, device=device)
        found.revision = str(model.mteb_model_meta.revision)
        return found

    @property
    def fingerprint(self) -> str:
        return fingerprint("mteb", self.name, self.revision, require("mteb", *_EXTRA).__version__)

    def _about(self) -> dict[str, Any]:
        version = require("mteb", *_EXTRA).__version__
        made = {"functions": f"of mteb {version}", "revision": self.revision, "prompts": f"of {_PROMPTS}"}
        return {**super()._about(), **made}
