"""Evaluations, comparisons, stress, audits, gradient counts and studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.api.opening import (
    AnyData,
    AnyEncoder,
    Rows,
    encode,
    kept_in,
    load,
    part_of,
    read,
    section_of,
    shown,
)
from diptych.core.errors import UsageError
from diptych.core.files import safe_name, short_names
from diptych.data.collection import Collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation.comparison import Comparison
from diptych.evaluation.evaluate import array_of, as_float32
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import DEFAULT_MEASURES, Names
from diptych.metrics.sources import GivenScores
from diptych.metrics.topk import best_of

if TYPE_CHECKING:
    from diptych.analysis.cocos_report import CocosReport
    from diptych.analysis.information.audit import Audit
    from diptych.evaluation.stress.result import StressResult
    from diptych.studies.compare import Comparison as StudyComparison


@shown
def evaluate(
    encoder: AnyEncoder | EncodedCollection | Rows,
    data: AnyData | Rows = None,
    measures: Names = DEFAULT_MEASURES,
    *,
    split: str | None = None,
    ground_truth: GroundTruth | None = None,
    text_image: Sequence[int] | np.ndarray | None = None,
    samples: int = 1000,
    out: Path | str | None = None,
    **options: Any,
) -> Result:
    """Measure retrieval in both directions, with chance levels, intervals and protocol.

    Args:
        encoder: an encoder; or (n, d) embeddings of images, dense or sparse; or, with ``data=None``, an (n, m)
            matrix of scores, or a folder of embeddings.
        data: a collection or dataset; or (m, d) embeddings of texts.
        measures: names such as ``"R@5"``, or measures of :mod:`diptych.measures`; one alone need not be in a list.
        split: the part of the data; without it ``test`` where there are several, and ``all`` for everything.
        ground_truth: which texts are relevant to which images, instead of the collection's pairs.
        text_image: the image row of each text, for embeddings that are given; image i and text i when neither is.
        samples: bootstrap resamples for 95 % intervals; 0 for none.
        out: a folder for the result and its TREC files.
        options: as of :func:`diptych.evaluation.evaluate`, e.g. ``protocol="coco-1k"``, ``ties="pessimistic"``.

    >>> dp.evaluate("runs/x", data, "R@1").protocol.n_images
    16
    >>> dp.evaluate(np.eye(4), np.eye(4)).rsum
    600.0
    """
    from diptych.evaluation.evaluate import evaluate as evaluate_rows
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    if isinstance(measures, GroundTruth):
        raise UsageError("the third argument is measures, got a ground truth", "ground_truth=…")
    encoded: EncodedCollection | None = encoder if isinstance(encoder, EncodedCollection) else None
    if isinstance(encoder, str | Path) and EncodedCollection.is_at(encoder):
        encoded = EncodedCollection.open(encoder)
    are_rows = encoded is None and _are_rows(encoder)
    if (split is not None and (encoded is not None or are_rows)) or (
        encoded is not None and data is not None
    ):
        raise UsageError("data and split are of an encoder, and embeddings are given", "leave them out")
    if encoded is None and not are_rows:
        source: Any = encoder
        encoded = encode(source, data, split)
    if encoded is not None:
        if text_image is not None:
            raise UsageError(
                "text_image is of embeddings that are given", "leave it out, or give ground_truth"
            )
        how = {"ground_truth": ground_truth, "samples": samples, **options}
        return evaluate_encoded(encoded, out, measures, **how)
    how = {"text_image": text_image, "bootstrap": Bootstrap(samples), **options}
    result = evaluate_rows(encoder, data, ground_truth, measures, **how)
    if out is not None:
        result.save(out)
    return result


def _are_rows(given: Any) -> bool:
    """Return whether these are embeddings or scores, and no encoder or its name."""
    if isinstance(given, str | Path):
        return Path(given).suffix == ".npy"
    return hasattr(given, "shape") or isinstance(given, Sequence)


def top_k(queries: Rows, gallery: Rows | None = None, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``k`` best items of every query, best first; of equal scores the lower row first.

    Args:
        queries: (n, d) rows; or, without a gallery, an (n, m) matrix of scores.
        gallery: (m, d) rows, compared by inner product.

    Returns:
        (n, min(k, m)) int64 gallery rows, and their scores, float64.

    >>> dp.top_k(np.array([[0.1, 0.9, 0.5]]), k=2)[0].tolist()
    [[1, 2]]
    """
    from diptych.metrics.topk import top_k as top_rows

    if gallery is None:
        return best_of(GivenScores(array_of(queries)), "i2t", k)
    return top_rows(as_float32(array_of(queries)), as_float32(array_of(gallery)), k)


def compare(*results: Result | Path | str | Mapping[str, Any], **options: Any) -> Comparison:
    """Compare evaluations of one test set with the first: differences, intervals, corrected p-values.

    Args:
        results: results, folders of evaluated runs or of several seeds; or one mapping of names to them.
        options: as of :func:`diptych.evaluation.compare`, e.g. ``measures=["R@1", "rsum"]``.

    >>> found = dp.evaluate("runs/x", data)
    >>> dp.compare({"one": found, "other": found}, measures=["rsum"]).difference("other", "rsum").p
    1.0
    """
    from diptych.evaluation.significance import compare as compare_results
    from diptych.training.folders import evaluations_of

    named: dict[str, Any] = {}
    for one in results:
        if not isinstance(one, Result | str | Path | Mapping):
            text = f"a {type(one).__name__!r} object cannot be compared"
            raise UsageError(text, "give results, folders of evaluated runs, or a mapping of names to them")
    paths = [Path(one) for one in results if isinstance(one, str | Path)]
    short = iter(short_names(paths) if paths else ())
    for number, one in enumerate(results, 1):
        if isinstance(one, Mapping):
            named |= one
        else:
            named[next(short) if isinstance(one, str | Path) else f"run {number}"] = one
    opened = {key: evaluations_of(one) if isinstance(one, str | Path) else one for key, one in named.items()}
    return compare_results(opened, **options)


@shown
def stress(
    encoder: AnyEncoder,
    data: AnyData,
    perturbations: Sequence[Any] | str = "all",
    *,
    split: str | None = None,
    out: Path | str | None = None,
    seeds: int | None = None,
    **options: Any,
) -> StressResult:
    """Change captions and images as people do, and measure what each change costs.

    Args:
        perturbations: names or groups (``"typos"``, ``"thesis"``), or objects of :mod:`diptych.perturbations`.
        seeds: how many draws of each; 3 when not given.
        options: as of :func:`diptych.evaluation.stress.stress`.

    >>> found = dp.stress("runs/x", data, ["character-swap"], seeds=1, samples=0, flips=10)
    >>> found.table(1).caption
    'Relative change in % of the clean value'
    """
    from diptych.analysis.perturbations import Perturbation, choose_perturbations
    from diptych.data.language.open import open_language
    from diptych.evaluation.stress.stress import stress as stress_encoder

    opened, part = load(encoder), part_of(data, split)
    given = [perturbations] if isinstance(perturbations, str | Perturbation) else list(perturbations)
    objects = [one for one in given if isinstance(one, Perturbation)]
    names = [one for one in given if isinstance(one, str)]
    chosen = objects + (choose_perturbations(names) if names else [])
    folder = kept_in(
        out, "stress", opened.fingerprint, part.text_fingerprint, *sorted(one.name for one in chosen)
    )
    options.setdefault("language", open_language(collection=part))
    draws = None if seeds is None else range(seeds)
    return stress_encoder(opened, part, folder, perturbations=chosen, seeds=draws, **options)


@shown
def audit(
    encoder: AnyEncoder, data: AnyData = None, *, out: Path | str | None = None, **options: Any
) -> Audit:
    """Measure how much of what images and captions say an encoder's embeddings hold, and of shortcuts.

    Args:
        encoder: a run, whose own data and shortcuts are audited, or an encoder.
        data: with the splits ``train``, ``val`` and ``test``; a run's own when not given.
        options: as of :func:`diptych.evaluation.shortcuts.audit_encoder`, e.g. ``probes=("linear",)``.

    >>> found = dp.audit("runs/x", probes=("linear",), samples=0)
    >>> 0 <= found.held("without", "image", "shared", "linear").percent <= 100
    True
    """
    from diptych.evaluation.shortcuts import audit_encoder
    from diptych.training.evaluations import audit_run
    from diptych.training.run import Run

    whole = None if data is None else data if isinstance(data, Collection) else read(data)
    if isinstance(encoder, Run) or (isinstance(encoder, str | Path) and is_run(encoder)):
        return audit_run(encoder, whole, None if out is None else Path(out), **options)
    if whole is None:
        raise UsageError("no data to audit the encoder on", "give a collection with train, val and test")
    opened = load(encoder)
    folder = kept_in(out, "audits", opened.fingerprint, whole.text_fingerprint)
    return audit_encoder(opened, whole.divided(), folder, **options)


def is_run(source: Path | str) -> bool:
    return (Path(source) / "run.json").is_file()


@shown
def gradient_counts(
    encoder: AnyEncoder, data: AnyData = None, loss: Any = None, **options: Any
) -> CocosReport:
    """Count contributing samples (COCOS): which candidates of a batch move a query's gradient.

    Args:
        encoder: a run, whose own data and loss are counted when they are not given, or an encoder.
        data: of whose ``train`` split, or of all where there is none, batches are drawn.
        loss: the name of a loss, or a loss.
        options: ``epsilon``, ``unit``, ``compat``, ``batch_size``, ``plan``, ``seed``.

    Source: Bleeker and de Rijke, ECIR 2022, section 5.

    >>> dp.gradient_counts("runs/x", batch_size=16).table().texts[0][0]
    'C^q'
    """
    from diptych.analysis.cocos_report import CocosOptions
    from diptych.training.evaluations import count_contributing
    from diptych.training.recipe import collection_of
    from diptych.training.run import Run

    run = encoder if isinstance(encoder, Run) else None
    if isinstance(encoder, str | Path) and is_run(encoder):
        run = Run.open(encoder)
    if data is None and run is None:
        raise UsageError("no data to draw batches of", "give a collection")
    if data is None:
        assert run is not None
        part = collection_of(run.recipe.data).split(run.recipe.data.train)
    else:
        whole = data if isinstance(data, Collection) else read(data)
        part = read(whole, "train" if "train" in whole.split_sizes else None)
    given = None if loss is None or isinstance(loss, str) else loss
    if isinstance(loss, str):
        options["objective"] = loss
    counting = CocosOptions.read(options, "gradient_counts")
    return count_contributing(run, counting, lambda: encode(encoder, part, "all"), given)


@shown
def run_study(
    name: str,
    data: Path | str | None = None,
    *,
    quick: bool = False,
    out: Path | str | None = None,
    rows: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> StudyComparison:
    """Run a table of a paper, and hold what is measured against what is printed.

    Args:
        name: a study of ``diptych study list``, e.g. ``"ltd.table-1"``.
        data: the path of the dataset, which the study splits as the paper did; with ``quick`` generated data.
        rows: names or the paper's numbers of some rows.
        settings: dotted keys for the recipes of all rows.

    Returns:
        Printed and measured cells with their verdicts, and the paper's claims with theirs.

    >>> dp.run_study("intent.table-6.7").study.name
    'intent.table-6.7'
    """
    from diptych.studies import STUDIES, Choices
    from diptych.studies import compare as compare_study
    from diptych.studies.runner import run_study as run

    study = STUDIES.get(name)
    given: dict[str, Any] = {"setting": "quick"} if quick else {}
    if data is not None:
        if not isinstance(data, str | Path):
            raise UsageError(
                f"a study reads its data itself, got a {type(data).__name__!r} object", "give a path"
            )
        section = section_of(data)
        given |= {"collections": (("", section),)} if study.several else {"data": section}
    elif not quick and study.of != "nothing":
        raise UsageError(
            f"no data given for {name}", "give a dataset's path, or quick=True for generated data"
        )
    folder = Path(out) if out is not None else Path("studies") / safe_name(name)
    return compare_study(
        study, run(study, folder, Choices(values=settings or {}, **given), rows=rows, seeds=seeds)
    )
