"""``diptych evaluate``: recall and its relatives, with chance, intervals and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import (
    OutOption,
    PartSpec,
    SamplesOption,
    Source,
    encode_part,
    encoded_of,
    encoder_of,
    is_own_data,
    parse_values,
    run_of,
)
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import EncodedCollection, Origin
    from diptych.evaluation import Result
    from diptych.evaluation.shortcuts import BothConditions
    from diptych.metrics import Relevance, Reranked


class EvaluateOptions(SamplesOption, OutOption):
    """What is measured, against which positives, and how."""

    measure: list[str] = Field(
        [],
        description="E.g. R@5, mAP@10, DCG_CM@10. Repeatable.",
        json_schema_extra={"names": "diptych.metrics:MEASURES"},
    )
    protocol: str = Field("full", description="full, coco-1k, coco-5k or folds(n).")
    positives: list[str] = Field(
        [],
        description="Extended positives, e.g. cxc:FOLDER, eccv:FOLDER, pairs:FILE. Repeatable.",
        json_schema_extra={"metavar": "FORMAT:PATH"},
    )
    positives_option: list[str] = Field(
        [], description="KEY=VALUE for the positives, e.g. threshold=4. Repeatable."
    )
    ties: Literal["expected", "pessimistic", "optimistic", "compat"] | None = Field(
        None,
        description="expected, pessimistic, optimistic, compat.",
        json_schema_extra={"metavar": "RULE", "default": "expected; compat with --unranked published"},
    )
    rerank: int | None = Field(
        None,
        ge=1,
        description="Score the best K of each query again by the matching head (ALBEF, X-VLM, BLIP).",
        json_schema_extra={"metavar": "K"},
    )
    unranked: Literal["miss", "contrastive", "published"] | None = Field(
        None,
        description="Positives not among the K: miss (no rank), contrastive (in the first stage's order), published "
        "(tie at -100).",
        json_schema_extra={"metavar": "RULE", "default": "miss"},
    )
    relevance: str | None = Field(
        None,
        description="A model, or its embeddings of the same data: relevance of items without a label to DCG_CM; the "
        "evaluated model's by default.",
    )
    judgements: str | None = Field(
        None,
        description="Human judgements, e.g. flickr8k-expert:ExpertAnnotations.txt: how measures agree with them.",
        json_schema_extra={"metavar": "FORMAT:PATH"},
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
    from diptych.data.judgements import read_judgements
    from diptych.evaluation.evaluate_encoder import evaluate_encoded, positives_of
    from diptych.evaluation.judgements import judge_encoded

    wanted, out, positives = options.checked(), options.out, options.positives
    judged = None if options.judgements is None else read_judgements(options.judgements)
    stage = None if options.rerank is None else SecondStage(options.rerank, options.unranked or "miss")
    with progress():
        embeddings = None if out is None else out / "embeddings"
        look = None if stage is None else stage.look
        encoded, origin, folder = encoded_of(source, data, data.split, embeddings, look, reuse=True)
        beside = embeddings or folder  # a run that cannot be written is evaluated with --out
        candidates = None if stage is None else stage.candidates(folder, encoded, origin, beside)
        judge = None if options.relevance is None else _relevance(options.relevance, encoded, origin, beside)
        if not options.measure and judged is not None and stage is None:
            wanted = (*wanted, *gains_beside(encoded, judge))
        chosen = parse_values(options.positives_option, "--positives-option")
        base = _base(source, encoded, origin) if out is None else out / "evaluation"
        how: dict[str, Any] = {"protocol": options.protocol, "samples": options.samples}
        first: dict[str, Any] = {**how, "ties": options.ties or "expected", "relevance": judge}
        found, agreements = [], {}
        for kind, target in _targets(base, positives):
            extended = None if kind is None else positives_of(encoded, kind, **chosen)
            of: dict[str, Any] = {"positives": extended, "about": origin.said()}
            result = evaluate_encoded(encoded, target, wanted, **first, **of)
            if judged is not None:
                agreements[target] = judge_encoded(
                    encoded,
                    result,
                    judged,
                    target,
                    positives=extended,
                    relevance=judge,
                    samples=options.samples,
                )
            found.append(("" if stage is None else "contrastive: the first stage alone", target, result))
            if stage is not None and candidates is not None:
                again = target.with_name(f"{target.name}-reranked-{stage.k}-{stage.unranked}")
                ranked: dict[str, Any] = {"reranked": candidates, "ties": options.ties}
                ranked |= {"k": stage.k, "unranked": stage.unranked}
                result = evaluate_encoded(encoded, again, wanted, **how, **of, **ranked)
                title = f"re-ranked: the best {stage.k:,} of each query, scored again by the matching head"
                found.append((title, again, result))
    for title, target, result in found:
        show(*(replace(table, caption=title) for table in result.tables()))
        say(result.protocol_line())
        say(f"with values per query and TREC files in {target}")
        if target in agreements:
            agreed = agreements[target]
            show(*agreed.tables())
            say(agreed.line)
            for direction, reasons in agreed.left_out.items():
                for reason, count in reasons.items():
                    if count:
                        say(f"{count:,} {direction} queries left out: {reason}")
    if not positives:
        with progress():
            name = base.name if out is None else None
            both = _both_conditions(source, origin, found[0][2], out or Path(source), name, wanted, first)
        if both is not None:
            show(*both.tables())
    if (Path(source) / "run.json").is_file():
        next_step(["diptych", "report", source])
    else:  # the penalty of order embeddings cannot be indexed
        next_step(["diptych", "index" if encoded.similarity == "cosine" else "info", folder])


def gains_beside(encoded: EncodedCollection, relevance: Relevance | None) -> tuple[str, ...]:
    """Return the gains that are measured beside the default measures where people's judgements are given."""
    if encoded.similarity != "cosine" and relevance is None:
        return ("nDCG@10",)  # penalties are no gains
    return ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def _relevance(name: str, encoded: EncodedCollection, origin: Origin, folder: Path) -> Relevance:
    """Return the relevance model called ``name``."""
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.evaluate_encoder import relevance_of

    if EncodedCollection.is_at(name):
        return relevance_of(encoded, EncodedCollection.open(name))
    encoder, _ = encoder_of(name)
    home = folder.with_name(f"{folder.name}-relevance-{encoder.fingerprint[:8]}")
    part = replace(origin, model=name)
    return relevance_of(encoded, encode_part(encoder, replace(part, split=None).collection(), part, home))


def _base(source: str, encoded: EncodedCollection, origin: Origin) -> Path:
    """Return the folder of an evaluation in a run: named by its data where that is not the run's own.

    What is there of other data of the same name is left alone.
    """
    name, data = safe_name(f"{encoded.about['dataset']}-{origin.part}"), str(encoded.about["data"])
    base, other = (Path(source) / "evaluation" / one for one in (name, safe_name(f"{name}-{data[:8]}")))
    run = run_of(source)
    if run is not None and not is_own_data(origin, run):
        return other
    from diptych.evaluation import Result

    try:
        there = Result.open(base).protocol.about.get("data", data)
    except StorageError:
        return base
    return base if there == data else other


def _targets(base: Path, positives: list[str] | None) -> list[tuple[str | None, Path]]:
    """Return what is evaluated, and the folder of each: one per format of positives."""
    if not positives:
        return [(None, base)]
    names = [kind.partition(":")[0] for kind in positives]
    if len(set(names)) < len(names):
        raise UsageError(
            f"--positives names one format twice: {', '.join(positives)}",
            "evaluate one after the other with --out",
        )
    return [
        (kind, base.with_name(f"{base.name}-{name}")) for kind, name in zip(positives, names, strict=True)
    ]


def _both_conditions(
    source: str,
    origin: Origin,
    without: Result,
    home: Path,
    name: str | None,
    measures: Sequence[str],
    options: dict[str, Any],
) -> BothConditions | None:
    """Evaluate the split without and with the shortcuts of training; None for what was not trained with any.

    Embeddings go to ``home/embeddings``, results to ``home/evaluation``.
    """
    from diptych.evaluation.shortcuts import evaluate_both
    from diptych.training.evaluations import shortcuts_to_evaluate

    if origin.split is None or not (Path(source) / "run.json").is_file():
        return None
    encoder, run = encoder_of(source)
    if run is None or run.recipe.shortcuts is None:
        return None
    collection = replace(origin, split=None).collection()
    both = evaluate_both(
        encoder,
        collection,
        origin.split,
        home / "embeddings",
        home / "evaluation",
        measures,
        shortcuts=shortcuts_to_evaluate(run.recipe, collection, run.begun_with.get("shortcuts")),
        name=name,
        without=without,
        **options,
    )
    return None if both.with_shortcuts is None else both


@dataclass
class SecondStage:
    """The matching head's ranking of the best ``k`` of each query."""

    k: int
    unranked: str
    encoder: DualEncoder | None = None

    def look(self, encoder: DualEncoder) -> None:
        """See before the work that ``encoder`` has a matching head, and keep it."""
        from diptych.encoders.rerank import require_matching

        require_matching(encoder)
        self.encoder = encoder

    def candidates(self, folder: Path, encoded: EncodedCollection, origin: Origin, beside: Path) -> Reranked:
        """Return candidates stored in ``folder`` or ``beside``; score them into ``beside`` unless there are enough."""
        from diptych.encoders.embeddings import check_still_there
        from diptych.encoders.rerank import rerank, stored_candidates

        for place in dict.fromkeys((folder, beside)):
            found = stored_candidates(place / "reranked", encoded, self.k)
            if found is not None:
                return found
        if self.encoder is None:
            check_still_there(origin.model, folder)
            self.look(encoder_of(origin.model)[0])
        assert self.encoder is not None
        return rerank(self.encoder, origin.collection(), encoded, self.k, folder=beside / "reranked")
