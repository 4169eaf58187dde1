"""``diptych evaluate``: recall and its relatives, with chance, intervals and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from diptych.cli.console import next_step, print_table, progress, say, show
from diptych.cli.sources import (
    OutOption,
    PartSpec,
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
    from diptych.evaluation.judgements import Agreement, HumanAgreement
    from diptych.evaluation.shortcuts import BothConditions
    from diptych.metrics import Relevance, Reranked
    from diptych.metrics.correlation import Coefficient


def check_uses_relevance(name: str, measures: Sequence[str]) -> None:
    """See before the work that a relevance model changes a number."""
    from diptych.metrics.measuring import GainMeasure, resolve

    plain, _ = resolve(measures)
    if not any(isinstance(one, GainMeasure) and one.gain.of == "similarity" for one in plain):
        raise UsageError(
            f"--relevance {name}: none of {', '.join(measures)} asks how relevant an item is",
            "add --measure DCG_CM@10 or --measure nDCG_CM@10",
        )


def gains_beside(encoded: EncodedCollection, relevance: Relevance | None) -> tuple[str, ...]:
    """The measures of gains that are computed beside the default ones where people's judgements are given."""
    if encoded.similarity != "cosine" and relevance is None:
        return ("nDCG@10",)  # penalties are no gains
    return ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def relevance_named(name: str, encoded: EncodedCollection, origin: Origin, folder: Path) -> Relevance:
    """The relevance model called ``name``."""
    from diptych.encoders.embeddings import EncodedCollection, Origin
    from diptych.evaluation.evaluate_encoder import relevance_of

    if EncodedCollection.is_at(name):
        return relevance_of(encoded, EncodedCollection.open(name))
    encoder, _ = encoder_of(name)
    home = folder.with_name(f"{folder.name}-relevance-{encoder.fingerprint[:8]}")
    whole = Origin(name, origin.data, None, origin.captions, origin.centric)
    part = Origin(name, origin.data, origin.split, origin.captions, origin.centric)
    return relevance_of(encoded, encode_part(encoder, whole.collection(), part, home))


def show_agreement(found: HumanAgreement) -> None:
    """Print how relevance and measures correlate with what people said."""
    _correlations("agreement with people: gains of pairs", "gain", found.pairs)
    _correlations("agreement with people: measures of queries", "measure", found.queries)
    say(found.line)
    for direction, reasons in found.left_out.items():
        for reason, count in reasons.items():
            if count:
                say(f"{count:,} {direction} queries left out: {reason}")


def _correlations(title: str, what: str, rows: Sequence[Agreement]) -> None:
    from diptych.metrics.correlation import LEAST_HITS

    columns = (what, "over", "n", "τ_b", "τ_c", "Spearman", "Pearson")
    table = [
        (one.what, one.over, f"{one.n:,}", *(coefficient(value) for value in one.coefficients.values()))
        for one in rows
    ]
    caption = "–: one of the two is constant"
    if any(value.few for one in rows for value in one.coefficients.values()):
        caption += f"; (–): no interval, of fewer than {LEAST_HITS} images with a hit"
    print_table(title, columns, table, numbers=columns[2:], caption=caption)


def coefficient(one: Coefficient) -> str:
    """As a cell of a table: with its interval, where there is one; a dash for what is not defined."""
    if one.value is None:
        return "–"
    ends = " (–)" if one.few else ""
    if one.low is not None and one.high is not None:
        ends = f" ({one.low:.3f}–{one.high:.3f})"
    return f"{one.value:.3f}{ends}".replace("-", "−")


def show_conditions(both: BothConditions) -> None:
    """Print a split without and with the shortcuts of training."""
    columns = ("measure", "direction", "without shortcuts", "with", "chance")
    print_table(
        f"with the shortcuts of training: {both.shortcuts}", columns, both.table(), numbers=columns[2:]
    )


class EvaluateOptions(OutOption):
    """What is measured, against which positives, and how."""

    measure: list[str] = Field(
        [],
        description="E.g. R@5, mAP@10, DCG_CM@10. Repeatable.",
        json_schema_extra={"names": "diptych.metrics:MEASURES"},
    )
    protocol: str = Field("full", description="full, coco-1k, coco-5k or folds(n).")
    positives: list[str] = Field(
        [],
        description="Extended positives, FORMAT:PATH, e.g. cxc:FOLDER, eccv:FOLDER, pairs:FILE. Repeatable: one table "
        "each.",
    )
    positives_option: list[str] = Field(
        [], description="KEY=VALUE for the positives, e.g. threshold=4 or originals=true. Repeatable."
    )
    ties: str | None = Field(
        None,
        description="expected, pessimistic, optimistic or compat.",
        json_schema_extra={"default": "expected; compat with --unranked published"},
    )
    rerank: int | None = Field(
        None,
        ge=1,
        description="Score the best K of each query again by the model's matching head, and measure both stages. "
        "For ALBEF, X-VLM and BLIP. Scores are stored: a smaller K needs no model.",
        json_schema_extra={"metavar": "K"},
    )
    unranked: str | None = Field(
        None,
        description="Positives that are not among the K: miss (they have no rank), contrastive (they follow in the "
        "first stage's order), published (they tie at -100).",
        json_schema_extra={"default": "miss"},
    )
    relevance: str | None = Field(
        None,
        description="A model, or embeddings of the same data: its cosine is the relevance of an item without a label "
        "to DCG_CM and nDCG_CM. The evaluated model's own by default.",
    )
    judgements: str | None = Field(
        None,
        description="Human judgements of pairs, FORMAT:PATH, e.g. flickr8k-expert:ExpertAnnotations.txt: how "
        "relevance and every measure agree with them.",
    )
    samples: int = Field(1000, ge=0, description="Bootstrap resamples for 95 % intervals; 0 for none.")


def evaluate(source: Source, data: PartSpec, options: EvaluateOptions) -> None:
    """Measure retrieval in both directions on a split, beside chance.

    A run that was trained with shortcuts on both sides is measured without and with them.

    Examples:
        diptych evaluate runs/flickr8k
        diptych evaluate hf:openai/clip-vit-base-patch32 --data coco --protocol coco-1k --out clip
        diptych evaluate hf:openai/clip-vit-base-patch32 --data coco --captions random:0 --out clip-one
        diptych evaluate embedded --measure R@1 --measure mAP@5
        diptych evaluate runs/coco --positives cxc:crisscrossed/data --measure rsum --measure R-precision
        diptych evaluate runs/coco --measure DCG_CM@10 --measure nDCG_CM@10 --relevance st:clip-ViT-B-32
        diptych evaluate runs/flickr8k --measure DCG_CM@10 --judgements flickr8k-expert:ExpertAnnotations.txt
        diptych evaluate blip:Salesforce/blip-itm-base-coco --data coco --rerank 256 --out blip
        diptych evaluate albef:flickr30k.pth --data flickr30k --rerank 128 --out albef
        diptych evaluate blip/embeddings --rerank 2 --unranked published
    """
    from diptych.data.judgements import read_judgements
    from diptych.evaluation.evaluate_encoder import evaluate_encoded, positives_of
    from diptych.evaluation.judgements import judge_encoded
    from diptych.evaluation.reranking import check_no_gains
    from diptych.metrics import DEFAULT_MEASURES
    from diptych.metrics.measuring import resolve

    protocol, ties, samples, positives = options.protocol, options.ties, options.samples, options.positives
    stage = SecondStage.asked(options.rerank, options.unranked, protocol)
    relevance, judgements, out = options.relevance, options.judgements, options.out
    wanted = options.measure or DEFAULT_MEASURES
    plain, _ = resolve(wanted)  # before the work, not after it
    if stage is not None:
        check_no_gains(plain)
    if relevance is not None and judgements is None:
        check_uses_relevance(relevance, wanted)
    judged = None if judgements is None else read_judgements(judgements)
    with progress():
        embeddings = None if out is None else out / "embeddings"
        look = None if stage is None else stage.look
        encoded, origin, folder = encoded_of(source, data, data.split, embeddings, look, reuse=True)
        beside = embeddings or folder  # a run that cannot be written is evaluated with --out
        candidates = None if stage is None else stage.candidates(folder, encoded, origin, beside)
        judge = None if relevance is None else relevance_named(relevance, encoded, origin, beside)
        if not options.measure and judgements is not None and stage is None:
            wanted = (*wanted, *gains_beside(encoded, judge))
        chosen = parse_values(options.positives_option, "--positives-option")
        base = _base(source, encoded, origin) if out is None else out / "evaluation"
        found, agreements = [], {}
        for kind, target in _targets(base, positives):
            extended = None if kind is None else positives_of(encoded, kind, **chosen)
            same: dict[str, Any] = {"positives": extended, "protocol": protocol, "samples": samples}
            same["about"] = origin.said()
            first = {**same, "ties": ties or "expected", "relevance": judge}
            result = evaluate_encoded(encoded, target, wanted, **first)
            if judged is not None:
                told: dict[str, Any] = {"positives": extended, "relevance": judge, "samples": samples}
                agreements[target] = judge_encoded(encoded, result, judged, target, **told)
            found.append(("" if stage is None else "contrastive: the first stage alone", target, result))
            if stage is not None and candidates is not None:
                same |= {"k": stage.k, "unranked": stage.unranked, "ties": ties}
                again = stage.target(target)
                result = evaluate_encoded(encoded, again, wanted, reranked=candidates, **same)
                found.append((stage.title, again, result))
    for title, target, result in found:
        show(*(replace(table, caption=title) for table in result.tables()))
        say(result.protocol_line())
        say(f"with values per query and TREC files in {target}")
        if target in agreements:
            show_agreement(agreements[target])
    if not positives:
        measured = {"protocol": protocol, "ties": ties or "expected", "samples": samples, "relevance": judge}
        with progress():
            name = base.name if out is None else None
            both = _both_conditions(source, origin, found[0][2], out or Path(source), name, wanted, measured)
        if both is not None:
            show_conditions(both)
    is_run = (Path(source) / "run.json").is_file()
    is_order = encoded.similarity != "cosine"
    next_step(["diptych", *(["report", source] if is_run else ["info" if is_order else "index", folder])])


def _base(source: str, encoded: EncodedCollection, origin: Origin) -> Path:
    """The folder of an evaluation in a run: named by its data where that is not the run's own.

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
    """What is evaluated, and the folder of each: one per format of positives."""
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
    """The split without and with the shortcuts of training; None for what was not trained with any.

    Embeddings go to ``home/embeddings``, results to ``home/evaluation``.
    """
    from dataclasses import replace

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


class SecondStage:
    """What ``--rerank`` and ``--unranked`` ask for."""

    def __init__(self, k: int, unranked: str, protocol: str) -> None:
        from diptych.evaluation.reranking import check_unranked
        from diptych.evaluation.result import one_gallery

        check_unranked(unranked)
        one_gallery(protocol)
        self.k, self.unranked = k, unranked
        self._encoder: DualEncoder | None = None

    @classmethod
    def asked(cls, k: int | None, unranked: str | None, protocol: str) -> SecondStage | None:
        """The second stage, or None where none is asked for."""
        if k is None:
            if unranked is not None:
                raise UsageError(
                    f"--unranked {unranked} without --rerank: every candidate is ranked", "add --rerank K"
                )
            return None
        return cls(k, unranked or "miss", protocol)

    def look(self, encoder: DualEncoder) -> None:
        """See before the work that ``encoder`` has a matching head, and keep it."""
        from diptych.encoders.rerank import require_matching

        require_matching(encoder)
        self._encoder = encoder

    def candidates(self, folder: Path, encoded: EncodedCollection, origin: Origin, beside: Path) -> Reranked:
        """The candidates stored in ``folder`` or ``beside``, scored now into ``beside`` unless there are enough."""
        from diptych.encoders.embeddings import check_still_there
        from diptych.encoders.rerank import rerank, stored_candidates

        for place in dict.fromkeys((folder, beside)):
            found = stored_candidates(place / "reranked", encoded, self.k)
            if found is not None:
                return found
        if self._encoder is None:
            check_still_there(origin.model, folder)
            self.look(encoder_of(origin.model)[0])
        assert self._encoder is not None
        return rerank(self._encoder, origin.collection(), encoded, self.k, folder=beside / "reranked")

    def target(self, base: Path) -> Path:
        """Where the evaluation of this stage goes, beside that of the first."""
        return base.with_name(f"{base.name}-reranked-{self.k}-{self.unranked}")

    @property
    def title(self) -> str:
        """What stands above its table."""
        return f"re-ranked: the best {self.k:,} of each query, scored again by the matching head"
