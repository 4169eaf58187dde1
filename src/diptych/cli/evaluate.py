"""``diptych evaluate``: recall and its relatives, with chance, intervals and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, Self

from pydantic import model_validator

from diptych.cli.console import next_step, say, show
from diptych.cli.sources import OutOption, PartSpec, SamplesOption, Source, named, parse_values, run_of
from diptych.core.errors import UsageError
from diptych.core.options import parameter


class EvaluateOptions(SamplesOption, OutOption):
    """What is measured, against which positives, and how."""

    measure: list[str] = parameter(
        [], "E.g. R@5, mAP@10, DCG_CM@10. Repeatable.", names="diptych.metrics:MEASURES"
    )
    protocol: str = parameter("full", "full, coco-1k, coco-5k or folds(n).")
    positives: list[str] = parameter(
        [], "Extended positives, e.g. cxc:FOLDER, eccv:FOLDER, pairs:FILE. Repeatable.", metavar="FORMAT:PATH"
    )
    positives_option: list[str] = parameter([], "KEY=VALUE for the positives, e.g. threshold=4. Repeatable.")
    ties: Literal["expected", "pessimistic", "optimistic", "compat"] | None = parameter(
        None,
        "expected, pessimistic, optimistic, compat.",
        metavar="RULE",
        default="expected; compat with --unranked published",
    )
    rerank: int | None = parameter(
        None,
        "Score the best K of each query again by the matching head (ALBEF, X-VLM, BLIP).",
        ge=1,
        metavar="K",
    )
    unranked: Literal["miss", "contrastive", "published"] | None = parameter(
        None,
        "Positives not among the K: miss (no rank), contrastive (in the first stage's order), published "
        "(tie at -100).",
        metavar="RULE",
        default="miss",
    )
    relevance: str | None = parameter(
        None,
        "A model, or its embeddings of the same data: relevance of items without a label to DCG_CM; the "
        "evaluated model's by default.",
    )
    judgements: str | None = parameter(
        None,
        "Human judgements, e.g. flickr8k-expert:ExpertAnnotations.txt: how measures agree with them.",
        metavar="FORMAT:PATH",
    )

    @model_validator(mode="after")
    def _one_stage_or_two(self) -> Self:
        if self.rerank is None and self.unranked is not None:
            raise UsageError(
                f"--unranked {self.unranked} without --rerank: every candidate is ranked", "add --rerank K"
            )
        if self.rerank is not None:
            from diptych.evaluation.result import one_gallery

            one_gallery(self.protocol)
        return self

    def checked(self) -> Sequence[str]:
        """Return the measures; raise a UsageError before the work for what cannot be measured."""
        from diptych.evaluation.reranking import check_no_gains
        from diptych.metrics import DEFAULT_MEASURES
        from diptych.metrics.measuring import GainMeasure, resolve

        wanted = self.measure or DEFAULT_MEASURES
        plain, _ = resolve(wanted)
        if self.rerank is not None:
            check_no_gains(plain)
        uses = any(isinstance(one, GainMeasure) and one.gain.of == "similarity" for one in plain)
        if self.relevance is not None and self.judgements is None and not uses:
            raise UsageError(
                f"--relevance {self.relevance}: none of {', '.join(wanted)} asks how relevant an item is",
                "add --measure DCG_CM@10 or --measure nDCG_CM@10",
            )
        return wanted


def evaluate(source: Source, data: PartSpec, options: EvaluateOptions) -> None:
    """Measure retrieval in both directions on a split, beside chance.

    A run that was trained with shortcuts on both sides is measured without and with them.

    Examples:
        diptych evaluate runs/flickr8k
        diptych evaluate hf:NAME --data coco --protocol coco-1k --out clip
        diptych evaluate runs/coco --positives cxc:crisscrossed/data
        diptych evaluate runs/coco --measure DCG_CM@10 --relevance st:NAME
        diptych evaluate albef:flickr30k.pth --data flickr30k --rerank 128 -o albef
    """
    from diptych.evaluation.sources import evaluate_named
    from diptych.training.evaluations import shortcuts_to_evaluate

    measures, run, asked = options.checked(), run_of(source), named(source, data, data.split, sparse=True)
    found = evaluate_named(
        asked,
        measures,
        options.out,
        usual=not options.measure,
        positives_options=parse_values(options.positives_option, "--positives-option"),
        unranked=options.unranked or "miss",
        **options.model_dump(include=_GIVEN),
    )
    for one in found.each:
        show(*one.tables())
        for line in one.lines():
            say(line)
    if run is None:  # the penalty of order embeddings cannot be indexed
        next_step(["diptych", "info" if found.encoded.similarity == "order" else "index", found.folder])
        return
    if run.recipe.shortcuts is not None:
        trained = partial(shortcuts_to_evaluate, run.recipe, begun_with=run.begun_with.get("shortcuts"))
        both = found.with_shortcuts(asked, options.out, trained)
        show(*([] if both is None else both.tables()))
    next_step(["diptych", "report", source])


_GIVEN = {"positives", "rerank", "relevance", "judgements", "ties", "protocol", "samples"}
