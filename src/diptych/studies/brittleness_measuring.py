"""Measuring chapter 5's tables: a clean evaluation with both ways of counting, and the suite of perturbations.

Embeddings are in the row's folder and shared by all three studies, the suite's run by tables 5.3 and 5.4::

    rows/ROW/seed-N/
      embeddings/NAME-SPLIT/     pictures and captions
      relevance/NAME-SPLIT/      the same by the relevance model
      stress/NAME-SPLIT/         a folder of diptych stress, and per_query.npz
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.studies.brittleness_chosen import Chosen, chosen_of
from diptych.studies.brittleness_rows import GROUPS, NONE, THIRTEEN
from diptych.studies.given import encoder_of
from diptych.studies.kept import keep
from diptych.studies.measurement import PUBLISHED, Measurement, Subject
from diptych.studies.results import file_name
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from pathlib import Path

    from diptych.evaluation.stress import StressResult
    from diptych.evaluation.stress.queries import Part

_RECALLS = ("R@1", "R@5", "R@10")
_GAIN = "DCG_CM@10"
_ROTATED = {"R@1": "R@5", "R@5": "R@10", "R@10": "R@1"}
"""Columns of Table 5.2 from pictures, and what stands in them."""


def _on(part: Part, chosen: Chosen, perturbed: bool) -> Measured:
    asking = part.asking
    return Measured(
        asking.name,
        chosen.split,
        asking.n_images,
        asking.n_captions,
        protocol=chosen.protocol(part, perturbed),
        centric=asking.centric or "",
    )


@dataclass(frozen=True)
class Clean:
    """Table 5.2: recalls, their sums and DCG_CM in both directions."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the encoder and the person's choices."""
        return {"kind": "brittleness, clean"}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; embeddings are kept in the row's folder."""
        from diptych.encoders.encode import encode_collection
        from diptych.evaluation.evaluate import measure_queries
        from diptych.evaluation.stress.queries import queries_of

        chosen, folder = chosen_of(subject.measuring), subject.run.folder
        part = chosen.part(subject.collection)
        name = f"{file_name(subject.collection.name)}-{chosen.place}"
        encoder, relevance = encoder_of(subject.run), chosen.relevance_model()
        how: dict[str, Any] = {"split": chosen.split, "should_stop": subject.should_stop}
        encoded = encode_collection(encoder, part.encoded, folder / "embeddings" / name, **how)
        relevant = None
        if relevance is not None:
            relevant = encode_collection(relevance, part.encoded, folder / "relevance" / name, **how)
        as_published = chosen.compat == "published"
        values: dict[str, float] = {}
        for way, side in queries_of(part, encoded, relevant).items():
            own = [*_RECALLS, *([_GAIN] if encoded.similarity == "cosine" else [])]
            wanted = own + [f"R-cap@{name.removeprefix('R@')}" for name in _RECALLS]
            scored: dict[str, Any] = {"similarity": side.similarity, "query_side": way}
            rows = (side.rows, side.gallery, side.positives)
            found = {
                key: float(np.mean(one)) for key, one in measure_queries(*rows, wanted, **scored).items()
            }
            values |= {f"{way} {key}": 100 * found[key] for key in _RECALLS}
            values[f"{way} rsum"] = sum(values[f"{way} {key}"] for key in _RECALLS)
            if _GAIN in found:
                values[f"{way} {_GAIN}"] = found[_GAIN]
            if side.relevance is not None:
                by_other = measure_queries(*rows, ["DCG_CM-published@10"], relevance=side.relevance, **scored)
                values[f"{way} {_GAIN}{PUBLISHED}"] = float(np.mean(by_other["DCG_CM-published@10"]))
            if way == "i2t" and as_published:
                capped = {key: 100 * found[f"R-cap@{key.removeprefix('R@')}"] for key in _RECALLS}
                values |= {f"{way} {key}{PUBLISHED}": capped[_ROTATED[key]] for key in _RECALLS}
                values[f"{way} rsum{PUBLISHED}"] = sum(capped.values())
        said = [
            part.asking.describe(),
            chosen.protocol(part, False),
            f"from text {len(encoded.images):,} pictures",
            "R@k any of the positives, DCG_CM by the evaluated model and clamped to [0, 1]",
        ]
        if as_published:
            said.append("as published: captions found among the first k over min(k, 5), columns rotated")
        if relevant is not None:
            said.append(f"DCG_CM as published, by {relevant.images.encoder}")
        return (Measurement(values, _on(part, chosen, False), "; ".join(said)),)


@dataclass(frozen=True)
class Suite:
    """Tables 5.3 and 5.4: the thirteen perturbations, run once for both.

    Attributes:
        table: ``rsum`` for sums of recalls, ``jaccard`` for the agreement of who is changed.
    """

    table: str

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the encoder and the person's choices."""
        from diptych.analysis.perturbations import PERTURBATIONS
        from diptych.evaluation.stress.result import FORMAT

        versions = {name: PERTURBATIONS.get(name).version for name in THIRTEEN}
        return {
            "kind": "brittleness, suite",
            "table": self.table,
            "format": FORMAT,
            "perturbations": versions,
        }

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Run the suite, or find it there; the values of every query are kept in its folder."""
        from diptych.analysis.perturbations import choose_perturbations
        from diptych.evaluation.stress import stress
        from diptych.evaluation.stress.queries import RSUM

        chosen, folder = chosen_of(subject.measuring), subject.run.folder
        name = f"{file_name(subject.collection.name)}-{chosen.place}"
        searched = chosen.searched(subject.collection)
        target = folder / "stress" / f"{name}{chosen.mark}"
        result = stress(
            encoder_of(subject.run),
            searched,
            target,
            perturbations=choose_perturbations(["thesis"]),
            seeds=chosen.drawn,
            split=chosen.split,
            language=chosen.opened_language(subject.collection),
            compat=chosen.compat,
            gallery="split" if chosen.gallery == "split" else "all",
            measures=(RSUM,),
            embeddings=folder / "embeddings" / name,
            should_stop=subject.should_stop,
        )
        part = chosen.part(subject.collection)
        _keep_queries(result, chosen.drawn, target, part, folder / "embeddings" / name)
        values = rsum_values(result) if self.table == "rsum" else jaccard_values(result)
        out = "; ".join(f"left out {one}: {why}" for one, why in result.left_out.items())
        protocol = "; ".join(text for text in (result.protocol_line(), result.method, out) if text)
        kept = str(target.relative_to(folder))
        return (Measurement(values, _on(part, chosen, True), protocol, kept=kept),)


def _keep_queries(
    result: StressResult, seeds: Sequence[int], target: Path, part: Part, embeddings: Path
) -> None:
    """Keep the sum of recalls of every query: clean, and with each perturbation, the mean over seeds."""
    from diptych.encoders.encoded import EncodedCollection
    from diptych.evaluation.stress import Condition
    from diptych.evaluation.stress.queries import RSUM, queries_of

    side = queries_of(part, EncodedCollection.open(embeddings))["t2i"]
    values = {NONE: side.measured([RSUM])[RSUM]}
    for row in result.rows:
        each = [Condition.open(target / "conditions", row.name, seed) for seed in seeds]
        values[row.name] = np.mean([one.values[RSUM] for one in each], axis=0)
    keep(target, values, side.cluster)


def rsum_values(result: StressResult) -> dict[str, float]:
    """Sums of recalls, the printed kinds' means among them; for each perturbation the shares of captions that
    are changed and of queries that move, in per cent."""
    from diptych.evaluation.stress.queries import RSUM

    values = {NONE: result.clean["t2i"][RSUM]}
    for row in result.rows:
        values[row.name] = row.drop(RSUM).perturbed
        values[f"{row.name} changed"] = 100 * row.changed_share
        values[f"{row.name} moved"] = 100 * (row.sizes["decreased"] + row.sizes["increased"])
    for kind, members in GROUPS.items():
        there = [values[name] for name in members if name in values]
        if len(there) == len(members):
            values[kind] = sum(there) / len(there)
    return values


def jaccard_values(result: StressResult) -> dict[str, float]:
    """Mean similarities of who is changed; none where no two perturbations were run."""
    agreement = result.agreement.get("t2i")
    if agreement is None:
        return {}
    found = {name: getattr(agreement, name) for name in ("decreased", "increased", "unchanged")}
    return {name: value for name, value in found.items() if value is not None}
