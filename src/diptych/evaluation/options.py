"""Options of evaluations, stress, audits, comparisons and explored protocols; light to import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.language.open import LanguageSpec
from diptych.data.source import DataSpec, OutOption, PartSpec, SamplesOption, SeedOption, SplitOption
from diptych.evaluation.reranking import check_no_gains
from diptych.evaluation.result import one_gallery
from diptych.metrics import DEFAULT_MEASURES
from diptych.metrics.measuring import GainMeasure, resolve

Compat = Literal["none", "published"]
_MEASURES = "diptych.metrics:MEASURES"


class EvaluateOptions(SamplesOption, OutOption):
    """Options of an evaluation: measures, positives, ranking."""

    measure: list[str] = parameter([], "E.g. R@5, mAP@10, DCG_CM@10. Repeatable.", names=_MEASURES)
    protocol: str = parameter("full", "full, coco-1k, coco-5k or folds(n).")
    positives: list[str] = parameter(
        [], "Extended positives, e.g. cxc:FOLDER, eccv:FOLDER, pairs:FILE. Repeatable.", metavar="FORMAT:PATH"
    )
    positives_option: list[str] = parameter([], "KEY=VALUE, e.g. threshold=4. Repeatable.")
    ties: Literal["expected", "pessimistic", "optimistic", "compat"] | None = parameter(
        None, "How equal scores are ranked.", default="expected; compat with --unranked published"
    )
    rerank: int | None = parameter(
        None, "Score the best K of each query again by the matching head (ALBEF, X-VLM, BLIP).", ge=1
    )
    unranked: Literal["miss", "contrastive", "published"] | None = parameter(
        None, "Positives not among the K: no rank, the first stage's order, or tied at -100.", default="miss"
    )
    relevance: str | None = parameter(
        None, "What gives DCG_CM its gains: a model, or its embeddings; the evaluated one by default."
    )
    judgements: str | None = parameter(
        None, "Human judgements, e.g. flickr8k-expert:ExpertAnnotations.txt.", metavar="FORMAT:PATH"
    )

    @model_validator(mode="after")
    def _one_stage_or_two(self) -> Self:
        if self.rerank is None and self.unranked is not None:
            text = f"--unranked {self.unranked} without --rerank: every candidate is ranked"
            raise UsageError(text, "add --rerank K")
        if self.rerank is not None:
            one_gallery(self.protocol)
        return self

    def measures(self) -> Sequence[str]:
        """Return what is measured; refuse before the work what cannot be."""
        names = self.measure or DEFAULT_MEASURES
        plain, _ = resolve(names)
        if self.rerank is not None:
            check_no_gains(plain)
        uses = any(isinstance(one, GainMeasure) and one.gain.of == "similarity" for one in plain)
        if self.relevance is not None and self.judgements is None and not uses:
            text = f"--relevance {self.relevance}: none of {', '.join(names)} asks how relevant an item is"
            raise UsageError(text, "add --measure DCG_CM@10 or --measure nDCG_CM@10")
        return names


class StressOptions(PartSpec, LanguageSpec, SamplesOption, OutOption):
    """Options of a stress run: perturbations and measures."""

    collection: Path | None = parameter(None, "The same as --data; a run's own by default.", argument=True)
    perturb: list[str] = parameter(
        [],
        "Perturbations or groups, or text, pictures, thesis, all. Repeatable, or with commas.",
        default="all",
        names="diptych.analysis.perturbations:PERTURBATIONS",
    )
    seeds: int | None = parameter(None, "How many, from 0.", ge=1, default="3; 1 with --compat published")
    set_: list[str] = parameter([], "NAME.KEY=VALUE, e.g. blur.severity=5. Repeatable.", "--set")
    measure: list[str] = parameter(
        [],
        "Shares, gains, or rsum of one direction. Repeatable.",
        default="R@1, R@5, R@10, rsum, DCG_CM@10, nDCG_CM@10",
        names=_MEASURES,
    )
    gallery: Literal["split", "all"] = parameter("split", "What captions search: images of it.")
    relevance: str | None = parameter(
        None, "A model whose similarity is the gain of DCG_CM; the stressed one's by default."
    )
    compat: Compat = parameter("none", "published: perturbations as the thesis's published code made them.")
    flips: int = parameter(100_000, "Random swaps for p-values.", ge=1)

    @model_validator(mode="after")
    def _one_dataset(self) -> Self:
        if self.collection is None:
            return self
        if self.data is not None:
            raise UsageError(f"both {self.collection} and --data {self.data} are given", "give one of them")
        return self.model_copy(update={"data": self.collection})


class AuditOptions(DataSpec, SamplesOption, SeedOption, OutOption):
    """Options of an audit: data and probes."""

    scenes: bool = parameter(False, "Generated scenes, whose facts are known, as the data.")
    probe: Literal["linear", "mlp", "both"] = parameter("both", "What predicts facts.")
    own_probes: bool = parameter(False, "Probes of a run's own data; --data is only tested.")
    most: int = parameter(4000, "Training images that probes are trained on, at most.", ge=10)

    @model_validator(mode="after")
    def _one_dataset(self) -> Self:
        if self.scenes and self.data is not None:
            raise UsageError("both --data and --scenes are given", "give one of them")
        if self.own_probes and not self.scenes and self.data is None:
            raise UsageError("--own-probes without --data", "name the data that they are tested on")
        self.check_used()
        return self


class CompareOptions(SamplesOption, SeedOption):
    """Options of a comparison: measures and test."""

    measures: list[str] = parameter(
        [], "E.g. R@1,rsum.", "--measures", "--measure", default="all, of stress rsum and nDCG_CM@10"
    )
    baseline: int = parameter(0, "Which run the others are compared with, from 0.")
    test: Literal["randomisation", "t"] = parameter("randomisation", "The test; its p-value is corrected.")
    correction: Literal["bonferroni", "holm", "none"] | None = parameter(
        None, "Of p, for the number of comparisons.", default="bonferroni, of stress holm"
    )
    flips: int = parameter(10_000, "Random swaps of the randomisation test.", ge=1)
    evaluation: str | None = parameter(None, "Which evaluation of each run, e.g. coco-test-cxc.")

    def values(self, stressed: bool) -> dict[str, Any]:
        """Return what a comparison of results, or of stress, takes."""
        how = self.model_dump(include={"baseline", "samples", "flips", "seed", "test"})
        if stressed:
            for flag, usual in (("test", "randomisation"), ("evaluation", None)):
                if (given := getattr(self, flag)) != usual:
                    raise UsageError(f"--{flag} {given} is given for stress runs", f"leave --{flag} out")
            del how["test"]
        how["measures"] = [name for text in self.measures for name in text.split(",")] or None
        return {**how, "correction": self.correction or ("holm" if stressed else "bonferroni")}


class ProtocolOptions(DataSpec, SplitOption, OutOption):
    """Options of exploring protocols: printed numbers, and the scores to recompute them from."""

    source: str | None = parameter(
        None,
        "What diptych evaluate takes, or (images, captions) SCORES.npy; without, only the digits are read.",
        argument=True,
        metavar="RUN",
    )
    published: str | None = parameter(None, "PAPER:TABLE:ROW; a part of it lists what could follow.")
    target: list[str] = parameter([], "A printed cell instead: 'i2t R@1=64.6', 'rsum=411.62'. Repeatable.")
    decimals: int | None = parameter(None, "Digits of targets; as of the recall with the most.", ge=0, le=4)
    also: list[str] = parameter(
        [], "Other embeddings of the same model: another split or prompt. Repeatable.", metavar="LABEL=FOLDER"
    )
    reranked: Path | None = parameter(None, "Re-ranked candidates; those stored with RUN's by default.")
    matching: list[str] = parameter(
        [],
        "Matching scores for SCORES.npy, or i2t=FILE and t2i=FILE; -100 where there is none.",
        metavar="FILE",
    )
    caption_image: Path | None = parameter(None, "Image row of each caption of SCORES.npy; else in order.")
    tolerance: float = parameter(0.05, "Relative distance that counts as explained.", gt=0, lt=1)
    changes: int = parameter(4, "Up to how many changes of protocol are combined.", ge=1)

    @property
    def is_matrix(self) -> bool:
        """Return whether a file of scores is named instead of a run."""
        return self.source is not None and self.source.endswith(".npy")

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if bool(self.published) == bool(self.target):
            raise UsageError(
                "both --published and --target are given" if self.published else "no printed number is given",
                "give one: --published PAPER:TABLE:ROW, or --target 'i2t R@1=64.6' for each cell",
            )
        if self.source is None or self.is_matrix:
            self._leave_out("also", "reranked", "data", "split", needs="a RUN", kind="the run or embeddings")
        if not self.is_matrix:
            self._leave_out(
                "matching", "caption_image", needs="a score matrix", kind="a file of scores (.npy)"
            )
        self.check_used()
        return self

    def _leave_out(self, *names: str, needs: str, kind: str) -> None:
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]
        if given:
            raise UsageError(f"{' and '.join(given)} without {needs}", f"name {kind} first")
