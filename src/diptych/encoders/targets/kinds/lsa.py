"""Latent semantic analysis: targets learned only from the training captions.

Bags of words, weighted by inverse document frequency and divided by their length, are projected on the leading right
singular vectors of the training captions' matrix. A caption without a known word gets a row of zeros.

Sources: Deerwester et al., Indexing by Latent Semantic Analysis, 1990, with scikit-learn's smoothed TF-IDF.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import read_json
from diptych.data.title_words import folded_by
from diptych.data.vocabulary import words
from diptych.encoders.inputs import load_tensors, save_tensors
from diptych.encoders.targets.contract import TargetModel, TargetOptions

Tokens = Literal["captions", "titles"]  # names of categories are plural where titles are singular
_READERS = {"captions": words, "titles": folded_by("plural")}

_SEED = 0
_AGAIN = "start the training again"
_NOTHING = 1e-6  # a projection this short, of a caption of length 1, is rounding error


class LatentSemanticAnalysis(TargetModel):
    """TF-IDF, (words,) weights, and a projection, (words, width); make one with :meth:`learn`."""

    kind: ClassVar[str] = "lsa"

    def __init__(
        self,
        vocabulary: Sequence[str],
        inverse_frequencies: np.ndarray,
        components: np.ndarray,
        settings: dict[str, Any],
    ) -> None:
        self._vocabulary = list(vocabulary)
        self._ids = {word: number for number, word in enumerate(self._vocabulary)}
        self._weights = np.ascontiguousarray(inverse_frequencies, dtype=np.float32)
        self._components = np.ascontiguousarray(components, dtype=np.float32)
        self._settings = settings
        self._words = _READERS[settings.get("tokens", "captions")]
        what = "texts" if "tokens" in settings else "captions"
        self.source = f"LSA of {settings['captions']} {what}, {len(self._vocabulary)} words"

    @classmethod
    def learn(
        cls, captions: Sequence[str], width: int, *, or_less: bool = False, tokens: Tokens = "captions"
    ) -> Self:
        """Learn from captions; the same captions give the same bits on the same kind of machine."""
        libraries = ("sklearn.feature_extraction.text", "sklearn.decomposition", "threadpoolctl")
        text, decomposition, threads = (require(one, "targets", "learning LSA targets") for one in libraries)
        read = _READERS[tokens]
        if not any(read(caption) for caption in captions):
            raise DataError(f"no word in {len(captions)} captions", "check the training split")
        vectorizer = text.TfidfVectorizer(analyzer=read)
        matrix = vectorizer.fit_transform(captions)
        limit, requested = min(matrix.shape) - 1, width
        if or_less:
            width = max(1, min(width, limit))
        if width > limit:
            raise _too_wide(width, limit, matrix.shape)
        # The exact method: the randomised one gives later directions that depend on its seed.
        # On one thread, for the order of its sums is a matter of their number.
        with threads.threadpool_limits(1):
            svd = decomposition.TruncatedSVD(width, algorithm="arpack", random_state=_SEED).fit(matrix)
        rank = int((svd.singular_values_ > _NOTHING * svd.singular_values_.max()).sum())
        if rank < width and not or_less:
            raise _too_wide(width, rank, matrix.shape)
        components = svd.components_[:rank].T
        # A singular vector's sign is free: its largest entry is positive.
        largest = np.abs(components).argmax(axis=0)
        components = components * np.sign(components[largest, np.arange(rank)])
        explained = float(svd.explained_variance_ratio_[:rank].sum())
        settings: dict[str, Any] = {"captions": len(captions), "explained_variance": explained}
        if rank < requested:
            settings["asked_width"] = requested
        if tokens != "captions":
            settings["tokens"] = tokens
        return cls(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_, components, settings)

    @classmethod
    def make(cls, options: TargetOptions, captions: Sequence[str]) -> Self:
        return cls.learn(captions, options.width)

    @classmethod
    def reopen(cls, folder: Path, settings: dict[str, Any]) -> Self:
        vocabulary = read_json(folder / "words.json")
        tensors = load_tensors(folder / "lsa.safetensors", _AGAIN)
        if tensors.keys() != {"inverse_frequencies", "components"} or any(
            len(value) != len(vocabulary) for value in tensors.values()
        ):
            shapes = {name: tuple(value.shape) for name, value in tensors.items()}
            raise StorageError(f"{folder} has {len(vocabulary)} words and arrays of shapes {shapes}", _AGAIN)
        weights, components = tensors["inverse_frequencies"].numpy(), tensors["components"].numpy()
        return cls(vocabulary, weights, components, settings)

    @property
    def width(self) -> int:
        return int(self._components.shape[1])

    @cached_property
    def fingerprint(self) -> str:
        arrays = {"inverse_frequencies": self._weights, "components": self._components}
        tokens = [self._settings["tokens"]] if "tokens" in self._settings else []
        return fingerprint(self.kind, self._vocabulary, fingerprint_arrays(arrays), *tokens)

    def _about(self) -> dict[str, Any]:
        return self._settings

    def _rows(self, texts: list[str]) -> np.ndarray:
        # Caption by caption, so that a row does not depend on what else is in the batch.
        return np.stack([self._row(text) for text in texts])

    def _row(self, text: str) -> np.ndarray:
        counts = Counter(self._ids[word] for word in self._words(text) if word in self._ids)
        if not counts:
            return np.zeros(self.width, dtype=np.float32)
        # In the order of ids, so that the sum does not depend on the order of words.
        ids = np.array(sorted(counts))
        weights = self._weights[ids] * np.array([counts[number] for number in ids], dtype=np.float32)
        weights /= np.linalg.norm(weights)
        row: np.ndarray = (weights[:, None] * self._components[ids]).sum(axis=0)
        return row if np.linalg.norm(row) > _NOTHING else np.zeros_like(row)

    def _write(self, folder: Path) -> dict[str, Any]:
        write_json(folder / "words.json", self._vocabulary)
        arrays = {"inverse_frequencies": self._weights, "components": self._components}
        save_tensors(
            {name: torch.from_numpy(array) for name, array in arrays.items()}, folder / "lsa.safetensors"
        )
        return self._settings


def _too_wide(width: int, limit: int, shape: tuple[int, int]) -> UsageError:
    return UsageError(
        f"LSA targets of width {width} from {shape[0]} captions of {shape[1]} words, which give at most {limit}",
        "set the width of reconstruction.targets or model.text.targets lower, or give more captions",
    )
