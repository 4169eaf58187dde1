"""Fill a catalogue with a run, and write what is suggested: JSON lines or CSV, a review list, a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from pydantic import field_validator

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.source import validation_split
from diptych.commerce.category_to_image.application import (
    OtherData,
    PartOptions,
    category_rows,
    own_products,
    rows_for,
    use_of,
)
from diptych.commerce.category_to_image.filling import (
    COLUMNS,
    REVIEWED,
    VERDICTS,
    Candidates,
    Filled,
    Filler,
    Overlap,
    calibrate,
    candidate_nodes,
    cells_of,
    hierarchical_f1,
    reliability_of,
)
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.tables import fill_tables
from diptych.core.errors import UsageError
from diptych.core.files import atomic_path, write_json, write_rows
from diptych.core.options import parameter
from diptych.core.table import Table


class FillOptions(PartOptions):
    """Options of the suggestions."""

    out: Path | None = parameter(None, "Where to write: a .jsonl or .csv file.", "--out", "-o")
    check: bool = parameter(False, "Also products whose own category is not the one suggested.")
    threshold: float = parameter(0.5, "Confidence below which a path is cut.", ge=0, le=1)
    alternatives: int = parameter(3, "Likeliest categories to name.", ge=0)
    candidates: Candidates = parameter("specific", "specific: leaves, and categories that hold products.")
    calibrate_on: str | None = parameter(
        None,
        "The split of the run's products that confidence is calibrated on.",
        default="its validation split",
    )

    @field_validator("out")
    @classmethod
    def _known_ending(cls, file: Path | None) -> Path | None:
        if file is not None and file.suffix not in (".jsonl", ".csv"):
            raise UsageError(f"{file} ends in {file.suffix or 'nothing'!r}", "use .jsonl or .csv")
        return file


@dataclass(frozen=True)
class FilledCatalogue:
    """Suggestions for a catalogue, and their worth."""

    file: Path
    there: int  # how many products there are
    summary: Mapping[str, Any]  # as it is written

    def tables(self) -> list[Table]:
        return fill_tables(self.summary["counts"], VERDICTS, self.summary["reliability"])

    def lines(self) -> list[str]:
        summary, found = self.summary, self.summary["calibration"]
        lines = [
            f"temperature {found['temperature']:.4g}, levels of a path (against {found['against']}) with weight "
            f"{found['weight']:g}, found on {found['products']:,} products of split {found['split']}: "
            f"loss {found['loss']:.3f} nats, a uniform guess has {found['chance']:.3f}"
        ]
        if (reliability := summary["reliability"]) is None:
            lines.append("what confidence is worth was not measured: no other products have a category")
        else:
            f1 = reliability["hierarchical"]["f1"]
            lines.append(f"hierarchical F1 of whole paths of test products: {100 * f1:.1f} %")
        if own := summary.get("hierarchical"):
            precision, recall, f1 = (100 * own[name] for name in ("precision", "recall", "f1"))
            line = f"hierarchical F1 of what is suggested for {own['products']:,} products with categories of their own"
            lines.append(f"{line}: {f1:.1f} % (precision {precision:.1f}, recall {recall:.1f})")
        if known := summary["trained_on"]:
            line = f"the run was trained on {known:,} of these products and agrees with them too readily"
            lines.append(f"{line}; --split test has others")
        if not summary["products"]:
            return [*lines, f"all {self.there:,} products have a category: nothing to fill"]
        if agreed := sum(summary["counts"].get(one, 0) for one in summary["left_out"]):
            lines.append(f"{agreed:,} that agree with their own category left out")
        lines.append(f"{summary['products'] - agreed:,} products in {self.file}")
        review = self.file.with_suffix(".review.csv")
        return [*lines, f"{summary['review']:,} of them need a person, as in {review}"]


def fill_catalogue(run: CategoryRun, data: OtherData, options: FillOptions) -> FilledCatalogue:
    """Suggest categories for the products without one, or with ``check`` for all, and write them to a file."""
    file = options.out or run.folder / ("checked.jsonl" if options.check else "filled.jsonl")
    whole = data.of(run, own_tree=False)
    own = whole if data.data is None else own_products(run)
    catalogue = whole if options.split in (None, "all") else whole.split(options.split)
    known = options.calibrate_on or validation_split(own) or "val"
    if known == "train" or known not in own.split_sizes:
        sizes = f"of the run, which has {own.split_sizes}"
        problem = f"confidence cannot be calibrated on {known!r} products {sizes}"
        raise UsageError(problem, "name a split that it was not trained on: --calibrate-on test")

    def filler_of(shop: Catalogue) -> Filler:
        nodes, rows = candidate_nodes(shop, options.candidates), category_rows(run, shop.tree)
        return Filler(shop.tree, nodes, rows, threshold=options.threshold, alternatives=options.alternatives)

    filler, reliability = filler_of(own), None
    with rows_for(run, own.split(known)) as embedded:
        calibration = calibrate(filler, embedded.rows, own.split(known))
    found = {name: getattr(calibration, name) for name in ("temperature", "weight", "against")}
    if known != "test" and "test" in own.split_sizes and ((test := own.split("test")).place >= 0).any():
        with rows_for(run, test) as embedded:
            reliability = reliability_of(replace(filler, **found), embedded.rows, test)
    if is_other := catalogue.tree.fingerprint != own.tree.fingerprint:  # the same confidence in scores
        filler = filler_of(catalogue)
    part = catalogue.subset(np.flatnonzero((catalogue.place < 0) | options.check))
    metadata: dict[str, Any] = {
        **use_of(run, data, options.split, part),
        "candidates": {"kind": options.candidates, "categories": len(filler.candidates)},
        "threshold": options.threshold,
        "calibration": {**asdict(calibration), "split": known},
        "reliability": reliability,
        "measured on": "the run's own tree" if is_other else "the same tree",
        "notes": list(catalogue.notes),
    }

    def suggested() -> Iterator[tuple[Filled, Overlap | None]]:
        features = run.features(part)
        is_known = np.logical_or.reduce([features.present(one) for one in run.options.modalities])
        with rows_for(run, part) as embedded:
            yield from replace(filler, **found).fill(embedded.rows, part, is_known)

    leave_out = ("agrees",) if options.check else ()
    summary = write_filled(suggested() if len(part) else (), file, metadata, leave_out)
    return FilledCatalogue(file, len(catalogue), summary)


@contextmanager
def _written(file: Path) -> Iterator[TextIO]:
    how: dict[str, Any] = {"encoding": "utf-8", "errors": "replace", "newline": ""}
    with atomic_path(file) as temporary, open(temporary, "w", **how) as handle:
        yield handle


def write_filled(
    filled: Iterable[tuple[Filled, Overlap | None]],
    file: Path | str,
    metadata: dict[str, Any],
    leave_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Write suggestions as they come, those that need a person as CSV, and a summary; each whole or not at all.

    Returns:
        The summary, ``NAME.summary.json``.
    """
    file = Path(file)
    summary_file, is_table = file.with_suffix(".summary.json"), file.suffix == ".csv"
    counts, overlaps = dict.fromkeys(VERDICTS, 0), []
    with _written(file) as lines, _written(file.with_suffix(".review.csv")) as review:
        for table in (review, lines) if is_table else (review,):
            write_rows(table, COLUMNS, ())
        for one, overlap in filled:
            counts[one["verdict"]] += 1
            overlaps += [overlap] if overlap else []
            row, is_kept = list(cells_of(one).values()), one["verdict"] not in leave_out
            if one["verdict"] in REVIEWED:
                write_rows(review, row, ())
            if is_kept and is_table:
                write_rows(lines, row, ())
            elif is_kept:
                lines.write(json.dumps(one, ensure_ascii=False) + "\n")
        summary_file.unlink(missing_ok=True)  # killed from here on, no summary is of another file
    summary: dict[str, Any] = {
        "format": 1,
        **metadata,
        "products": sum(counts.values()),
        "counts": {name: count for name, count in counts.items() if count},
        "left_out": list(leave_out),
        "review": sum(counts[verdict] for verdict in REVIEWED),
    }
    if overlaps:
        summary["hierarchical"] = {"products": len(overlaps), **hierarchical_f1(overlaps)}
    write_json(summary_file, summary)
    return summary
