"""Sparsifier: a trained head with its vocabulary, which makes bags of terms of dense rows; its folder:

::

    FOLDER/
      config.json         model_type "d2s", mlm_head, dense_size; ours under "diptych"
      model.safetensors   proj.*, vocab_layer_norm.*, vocab_projector.*; of two heads image.* and text.*
      tokenizer.json      the vocabulary's tokenizer
      terms.json          the terms, one per column
      README.md           a model card

A published head is config.json with the first three and weights, here or in ``pytorch_model.bin``; its terms are those
of the model that ``mlm_head`` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from diptych.core.context import task
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UsageError
from diptych.core.files import atomic_folder, write_json, write_text
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import read_json
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows
from diptych.encoders.hub import hub_folder, model_card, weights_format
from diptych.encoders.inputs import pick_device, save_tensors
from diptych.encoders.official.checkpoint import read_checkpoint
from diptych.sparse.head import HeadPair, Kind, SparseHead, SparseHeads, each_head, head_of, term_mask
from diptych.sparse.options import HeadOptions, SparsifyOptions, sparsify_options
from diptych.sparse.vocabulary import TermVocabulary

CONFIG_FILE = "config.json"
_AGAIN = "train or download the head again"
_FILES = ("config.json", "model.safetensors", "pytorch_model.bin", "tokenizer.json", "terms.json")


class Sparsifier:
    """From dense rows to weights of terms."""

    def __init__(
        self,
        heads: SparseHeads,
        vocabulary: TermVocabulary,
        options: SparsifyOptions,
        encoder: str,
        *,
        device: str | None = None,
    ) -> None:
        terms = head_of(heads, "image").terms
        if terms != len(vocabulary.terms):
            raise MismatchError(
                f"the head has {terms:,} terms, its vocabulary {len(vocabulary.terms):,}",
                "use the vocabulary that the head was trained with",
            )
        self.device: torch.device = pick_device(device)
        self.heads: SparseHeads = heads.to(self.device).eval()
        self.vocabulary: TermVocabulary = vocabulary
        self.options: SparsifyOptions = options
        self.encoder: str = encoder

    @property
    def width(self) -> int:
        """d, of the dense rows it takes."""
        return head_of(self.heads, "image").width

    @property
    def expands(self) -> bool:
        """Return whether captions may have other terms than their own."""
        return self.options.expansion.mode != "0"

    @cached_property
    def fingerprint(self) -> str:
        """Name by content: weights, terms, and whether captions are expanded."""
        weights = {name: value.float().cpu().numpy() for name, value in self.heads.state_dict().items()}
        eps = head_of(self.heads, "image").vocab_layer_norm.eps
        return fingerprint(fingerprint_arrays(weights), self.vocabulary.fingerprint, self.expands, eps)

    def sparsify(
        self,
        rows: np.ndarray,
        kind: Kind,
        caption_terms: csr_array | None = None,
        *,
        expand: bool = True,
        batch_size: int = 1024,
    ) -> csr_array:
        """Return (n, |V|) weights of terms of (n, d) dense rows, computed and kept a block of rows at a time.

        Args:
            caption_terms: (n, |V|) non-zero where a caption contains a term; where they may only have their own terms.

        Returns:
            A canonical ``csr_array`` of float32; a row may be empty.
        """
        rows, own = np.asarray(rows), None
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise MismatchError(
                f"the head takes rows of width {self.width}, these have shape {rows.shape}",
                "give embeddings of the encoder that it was trained on, or train a head on these",
            )
        shape = len(rows), len(self.vocabulary.terms)
        if kind == "text" and not (expand and self.expands):
            if caption_terms is None or caption_terms.shape != shape:
                given = "none" if caption_terms is None else f"shape {caption_terms.shape}"
                raise UsageError(
                    f"captions have their own terms only, of shape {shape}; given are {given}",
                    "give caption_terms = vocabulary.caption_terms(captions), or the captions to embed()",
                )
            own = canonical_rows(caption_terms, "caption terms")
        blocks = [csr_array((0, shape[1]), dtype=np.float32)]
        noun = "images" if kind == "image" else "captions"
        with task(f"terms of {noun}", len(rows), noun) as bar:
            for start in range(0, len(rows), batch_size):
                block = np.array(rows[start : start + batch_size], dtype=np.float32)
                bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
                if len(bad):
                    raise NumericalError(
                        f"{kind} row {start + int(bad[0])} is not finite", "embed again with a sound encoder"
                    )
                some = None if own is None else own[start : start + batch_size]
                blocks.append(self._block(block, kind, some))
                bar.advance(len(block))
        return canonical_rows(vstack(blocks, format="csr"), kind)

    @torch.inference_mode()
    def _block(self, rows: np.ndarray, kind: Kind, own: csr_array | None) -> csr_array:
        head = head_of(self.heads, kind)
        outputs = head.vocab_projector(head.hidden(torch.from_numpy(rows).to(self.device)))
        positive = outputs > 0
        if own is not None:
            positive &= term_mask(own, self.device)
        places, columns = positive.nonzero(as_tuple=True)
        weights = torch.log1p(outputs[places, columns]).cpu().numpy()
        starts = np.concatenate([[0], positive.sum(dim=1).cumsum(dim=0).cpu().numpy()])
        return csr_array((weights, columns.cpu().numpy(), starts), shape=tuple(outputs.shape))

    def embed(
        self, embeddings: Embeddings, captions: Sequence[str] | None = None, *, expand: bool = True
    ) -> SparseEmbeddings:
        """Return sparse embeddings of dense ones, with their ids."""
        if self.encoder and embeddings.encoder != self.encoder:
            raise MismatchError(
                f"the head was trained on rows of encoder {self.encoder}, these are of {embeddings.encoder}",
                "give embeddings of that encoder, or train a head on these: diptych sparse train",
            )
        kind: Kind = "image" if embeddings.kind == "image" else "text"
        if captions is not None and len(captions) != len(embeddings):
            raise DataError(f"{len(captions):,} captions for {len(embeddings):,} rows of captions")
        expanded = kind == "text" and expand and self.expands
        own = None
        if kind == "text" and not expanded and captions is not None:
            own = self.vocabulary.caption_terms(captions)
        return SparseEmbeddings(
            ids=embeddings.ids,
            rows=self.sparsify(embeddings.rows, kind, own, expand=expand),
            terms=self.vocabulary.terms,
            encoder=fingerprint(embeddings.encoder, self.fingerprint),
            data=embeddings.data,
            kind=kind,
            about={**embeddings.about, "head": self.fingerprint, "expansion": expanded},
        )

    def describe(self) -> dict[str, Any]:
        """Return what has to be printed with every number that its rows gave, as JSON-able values."""
        return {
            "width": self.width,
            "hidden": head_of(self.heads, "image").hidden_width,
            "terms": len(self.vocabulary.terms),
            "heads": len(each_head(self.heads)),
            "expansion": self.options.expansion.mode,
            "eta": self.options.loss.eta,
            "encoder": self.encoder,
            "fingerprint": self.fingerprint,
        }

    def save(self, folder: Path | str) -> Path:
        """Write a folder that :meth:`load` reads, all or nothing, in the layout of the published heads."""
        folder, about = Path(folder), self.describe()
        config = {
            "model_type": "d2s",
            "mlm_head": self.options.vocabulary.source,
            "dense_size": self.width,
            "diptych": {
                "encoder": self.encoder,
                "vocabulary": self.vocabulary.fingerprint,
                "options": self.options.model_dump(mode="json"),
            },
        }
        card = model_card(
            "d2s",
            "A sparse head",
            f"Turns dense rows of {self.width} numbers into weights of {about['terms']} terms (Dense2Sparse, Nguyen et "
            "al. 2024).",
            "from diptych.sparse.sparsifier import Sparsifier\n\n"
            'sparsifier = Sparsifier.load("FOLDER")  # the folder this file is in\n'
            'sparsifier.sparsify(dense_rows, "image")  # a scipy.sparse.csr_array',
            about,
        )
        with atomic_folder(folder, CONFIG_FILE) as temporary:
            save_tensors(self.heads.state_dict(), temporary / "model.safetensors")
            self.vocabulary.save(temporary)
            write_json(temporary / CONFIG_FILE, config)
            write_text(temporary / "README.md", card)
        return folder

    @classmethod
    def load(cls, name_or_folder: str | Path, *, device: str | None = None) -> Sparsifier:
        """Load a head, ours or a published one, from a folder or by name from the Hugging Face hub."""
        folder = hub_folder(str(name_or_folder), allow_patterns=list(_FILES))
        file = folder / CONFIG_FILE
        config = read_json(file)
        if not isinstance(config, dict) or "dense_size" not in config:
            raise UsageError(
                f"{name_or_folder} is not a sparse head: its config.json has no dense_size",
                "give a folder that diptych sparse train wrote, or a published head (lsr42/d2s_…)",
            )
        weights, ours = _weights(folder), config.get("diptych")
        if ours is None:
            source = str(config.get("mlm_head") or "")
            if not source:
                raise StorageError(f"{file} names no mlm_head", "download the head again")
            heads = _heads(folder, weights, HeadOptions().eps)
            one = head_of(heads, "image")
            shape = {"width": one.hidden_width, "bias": one.proj.bias is not None}
            options = sparsify_options({"vocabulary.source": source, "head": shape})
            return cls(heads, TermVocabulary.pretrained(source), options, "", device=device)
        ours = ours if isinstance(ours, dict) else {}
        options = SparsifyOptions.read(ours.get("options"), f"{file}: options", StorageError, _AGAIN)
        heads, vocabulary = _heads(folder, weights, options.head.eps), TermVocabulary.load(folder)
        # Heads of before it was written down do not say which terms they have.
        if ours.get("vocabulary", vocabulary.fingerprint) != vocabulary.fingerprint:
            raise StorageError(
                f"{folder}: the head has the vocabulary {ours['vocabulary']}, terms.json is "
                f"{vocabulary.fingerprint}",
                "put back the tokenizer.json and terms.json that the head was saved with",
            )
        return cls(heads, vocabulary, options, str(ours.get("encoder") or ""), device=device)


def _weights(folder: Path) -> Mapping[str, Tensor]:
    name = "model.safetensors" if weights_format(folder) else "pytorch_model.bin"
    return read_checkpoint(folder / name).state


def _heads(folder: Path, weights: Mapping[str, Tensor], eps: float) -> SparseHeads:
    """Make heads of the shapes that the weights have."""

    def one(prefix: str) -> SparseHead:
        first, second = weights[f"{prefix}proj.weight"], weights[f"{prefix}vocab_projector.weight"]
        bias = f"{prefix}proj.bias" in weights
        return SparseHead(first.shape[1], first.shape[0], second.shape[0], bias=bias, eps=eps)

    try:
        heads = one("") if "proj.weight" in weights else HeadPair(one("image."), one("text."))
        heads.load_state_dict(weights)
    except (KeyError, IndexError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise StorageError(
            f"the weights in {folder} are not those of a sparse head: {reason}", _AGAIN
        ) from None
    shapes = {(head.width, head.terms) for head in each_head(heads)}
    if len(shapes) > 1:
        raise StorageError(f"the heads in {folder} are of different shapes, {sorted(shapes)}", _AGAIN)
    broken = [name for name, value in heads.state_dict().items() if not value.isfinite().all()]
    if broken:
        raise StorageError(f"{broken[0]} in {folder} is not finite", _AGAIN)
    return heads
