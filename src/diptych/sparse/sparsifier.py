"""Sparsifier: a trained head with its vocabulary, which makes bags of terms of dense rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from diptych.core.context import task
from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings, canonical_rows
from diptych.encoders.tensors import pick_device
from diptych.sparse.head import Kind, SparseHeads, head_of
from diptych.sparse.head_files import read_head_files, write_head_files
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.vocabulary import TermVocabulary

_NAMES = {"image": "pictures", "text": "captions"}


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
        self.device = pick_device(device)
        self.heads = heads.to(self.device).eval()
        self.vocabulary = vocabulary
        self.options = options
        self.encoder = encoder

    @property
    def width(self) -> int:
        """d, of the dense rows it takes."""
        return head_of(self.heads, "image").width

    @property
    def expands(self) -> bool:
        """Whether captions may have other terms than their own."""
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
        """Weights of terms, computed and kept a block of rows at a time.

        Args:
            rows: (n, d) dense rows, usually memory-mapped.
            caption_terms: (n, |V|) non-zero where a caption contains a term; where captions may only have
                their own terms.

        Returns:
            (n, |V|) canonical ``csr_array`` of float32; a row may be empty.
        """
        if kind not in _NAMES or batch_size < 1:
            raise UsageError(f"kind {kind!r}, batch_size {batch_size}", "image or text, and at least 1")
        rows = np.asarray(rows)
        if rows.dtype.kind not in "fiu":
            raise DataError(f"{kind} rows are {rows.dtype}, not numbers", "give dense rows of an encoder")
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise MismatchError(
                f"the head takes rows of width {self.width}, these have shape {rows.shape}",
                "give embeddings of the encoder that it was trained on, or train a head on these",
            )
        own = None
        if kind == "text" and not (expand and self.expands):
            own = self._checked_terms(caption_terms, len(rows))
        indices, weights, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [np.zeros(1, np.int64)]
        with task(f"terms of {_NAMES[kind]}", len(rows), _NAMES[kind]) as bar:
            for start in range(0, len(rows), batch_size):
                block = np.array(rows[start : start + batch_size], dtype=np.float32)
                if not np.isfinite(block).all():
                    row = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
                    raise NumericalError(
                        f"{kind} row {row} is not finite", "embed again with a sound encoder"
                    )
                some = None if own is None else own[start : start + batch_size]
                columns, values, count = self._block(block, kind, some)
                indices.append(columns)
                weights.append(values)
                counts.append(count)
                bar.advance(len(block))
        starts = np.cumsum(np.concatenate(counts))
        parts = (np.concatenate(weights), np.concatenate(indices), starts)
        return canonical_rows(csr_array(parts, shape=(len(rows), len(self.vocabulary.terms))), kind)

    @torch.inference_mode()
    def _block(
        self, rows: np.ndarray, kind: Kind, own: csr_array | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns, weights and the number of them per row."""
        head = head_of(self.heads, kind)
        outputs = head.vocab_projector(head.hidden(torch.from_numpy(rows).to(self.device)))
        if own is None:
            places, columns = (outputs > 0).nonzero(as_tuple=True)
        else:
            given = np.repeat(np.arange(len(rows)), np.diff(own.indptr))
            places = torch.from_numpy(given).to(self.device)
            columns = torch.from_numpy(own.indices.astype(np.int64)).to(self.device)
            positive = outputs[places, columns] > 0
            places, columns = places[positive], columns[positive]
        weights = torch.log1p(outputs[places, columns]).cpu().numpy()
        counts = torch.bincount(places, minlength=len(rows)).cpu().numpy()
        return columns.cpu().numpy().astype(np.int32), weights, counts

    def _checked_terms(self, terms: csr_array | None, rows: int) -> csr_array:
        """Captions' own terms, canonical; refused where there are none, or they are of another shape."""
        if terms is None:
            why = "expand=False" if self.expands else "this head was trained without expansion"
            raise UsageError(
                f"{why}: captions have their own terms only, which are not given",
                "give caption_terms = vocabulary.caption_terms(captions), or the captions to embed()",
            )
        if terms.shape != (rows, len(self.vocabulary.terms)):
            raise DataError(
                f"caption terms have shape {terms.shape}, wanted is {(rows, len(self.vocabulary.terms))}",
                "make them with this head's vocabulary.caption_terms of the same captions",
            )
        return canonical_rows(terms, "caption terms")

    def embed(
        self, embeddings: Embeddings, captions: Sequence[str] | None = None, *, expand: bool = True
    ) -> SparseEmbeddings:
        """Sparse embeddings of dense ones, with their ids."""
        if self.encoder and embeddings.encoder != self.encoder:
            raise MismatchError(
                f"the head was trained on rows of encoder {self.encoder}, these are of {embeddings.encoder}",
                "give embeddings of that encoder, or train a head on these: diptych sparsify",
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
        """What has to be printed beside every number that its rows gave, as JSON-able values."""
        return {
            "width": self.width,
            "hidden": head_of(self.heads, "image").hidden_width,
            "terms": len(self.vocabulary.terms),
            "heads": 1 if head_of(self.heads, "image") is head_of(self.heads, "text") else 2,
            "expansion": self.options.expansion.mode,
            "eta": self.options.loss.eta,
            "encoder": self.encoder,
            "fingerprint": self.fingerprint,
        }

    def save(self, folder: Path | str) -> Path:
        """Write a folder that :meth:`load` reads, in the layout of the published heads."""
        return write_head_files(
            Path(folder), self.heads, self.vocabulary, self.options, self.encoder, self.describe()
        )

    @classmethod
    def load(cls, name_or_folder: str | Path, *, device: str | None = None) -> Sparsifier:
        """Load a head from a folder, or by name from the Hugging Face hub."""
        found = read_head_files(name_or_folder)
        return cls(found.heads, found.vocabulary, found.options, found.encoder, device=device)
