"""Fill a catalogue with a run: calibrate, measure what confidence is worth, suggest, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts
from diptych.commerce.catalogue.source import used_part, validation_split
from diptych.commerce.category_to_image.application import (
    OtherData,
    PartOptions,
    count_trained_on,
    known_products,
    own_products,
    rows_for,
)
from diptych.commerce.category_to_image.filling.calibration import (
    Calibration,
    Reliability,
    calibrate,
    reliability_of,
)
from diptych.commerce.category_to_image.filling.fill import (
    Candidates,
    Filler,
    candidate_nodes,
    check_ending,
    write_filled,
)
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.tables import fill_tables
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.core.table import Table


class FillOptions(PartOptions):
    """What is suggested, and how sure it has to be."""

    check: bool = parameter(False, "Also products whose own category is not the one suggested.")
    threshold: float = parameter(0.5, "Confidence below which a path is cut.", ge=0, le=1)
    alternatives: int = parameter(3, "Likeliest categories to name.", ge=0)
    candidates: Candidates = parameter("specific", "specific: leaves, and categories that hold products.")
    calibrate_on: str | None = parameter(
        None,
        "The split of the run's products that confidence is calibrated on.",
        default="its validation split",
    )


@dataclass(frozen=True)
class FilledCatalogue:
    """What was suggested, and what it is worth."""

    file: Path
    counts: Mapping[str, int]  # products per verdict
    products: int  # how many were looked at
    there: int  # how many there are
    written: int  # how many of them are in the file
    trained_on: int  # how many of them the run was trained on
    calibration: Calibration
    split: str  # what it was calibrated on
    reliability: Reliability | None  # None where there are no other products to measure it on

    def tables(self) -> list[Table]:
        """Return what confidence is worth, and the verdicts."""
        return fill_tables(self.counts, self.reliability)

    def lines(self) -> list[str]:
        """Return the calibration, what a reader of the suggestions should know, and where they are."""
        found = self.calibration
        notes = [
            f"temperature {found.temperature:.4g}, found on {found.products:,} products of split {self.split}: "
            f"loss {found.loss:.3f} nats, a uniform guess has {found.chance:.3f}"
        ]
        if self.reliability is None:
            notes.append(
                "what confidence is worth was not measured: there are no other products to test it on"
            )
        if self.trained_on:
            notes.append(
                f"the run was trained on {self.trained_on:,} of these products and agrees with them too readily; "
                "--split test has others"
            )
        if agreed := self.products - self.written:
            notes.append(f"{agreed:,} that agree with their own category left out")
        if self.products:
            return [*notes, f"{self.written:,} products in {self.file}"]
        return [*notes, f"all {self.there:,} products have a category: nothing to fill"]


def fill_catalogue(run: CategoryRun, data: OtherData, options: FillOptions) -> FilledCatalogue:
    """Suggest categories for the products without one, or with ``check`` for all, and write them to a file."""
    check, is_own = options.check, data.data is None
    file = options.out or run.folder / ("checked.jsonl" if check else "filled.jsonl")
    check_ending(file)
    whole, source = data.catalogue(run, own_tree=False)
    own, catalogue = whole if is_own else own_products(run), used_part(whole, options.split)
    split = _calibrating(own, options.calibrate_on)
    first = _filler(run, own, options)
    with rows_for(run, own.split(split), file) as rows:
        calibration = calibrate(rows, first.categories, first.candidates, own.split(split))
    filler = replace(first, temperature=calibration.temperature)
    reliability = None
    test = own.split("test") if split != "test" and "test" in own.split_sizes else None
    if test is not None and bool((test.place >= 0).any()):
        with rows_for(run, test, file) as rows:
            reliability = reliability_of(filler, rows, test)
    if catalogue.tree.fingerprint != own.tree.fingerprint:  # another tree, the same confidence in scores
        filler = _filler(run, catalogue, options, calibration.temperature)
    part = catalogue.subset(np.arange(len(catalogue)) if check else np.flatnonzero(catalogue.place < 0))
    trained_on = count_trained_on(run, part, own=is_own)
    metadata: dict[str, Any] = {
        "run": str(run.folder.resolve()),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        "data": source,
        "split": options.split,
        "trained_on": trained_on,
        "candidates": {"kind": options.candidates, "categories": len(filler.candidates)},
        "threshold": options.threshold,
        "calibration": {**asdict(calibration), "split": split},
        "reliability": None if reliability is None else asdict(reliability),
        "measured on": "the run's own tree" if filler.tree is not own.tree else "the same tree",
        "notes": list(catalogue.notes),
    }
    if not len(part):
        counts = write_filled([], file, metadata)
    else:
        with rows_for(run, part, file) as rows:
            filled = filler.fill(rows, part, np.arange(len(part)), known_products(run, part))
            counts = write_filled(filled, file, metadata, leave_out=("agrees",) if check else ())
    left = counts.get("agrees", 0) if check else 0
    sizes = len(part), len(catalogue), len(part) - left
    return FilledCatalogue(file, counts, *sizes, trained_on, calibration, split, reliability)


def _calibrating(own: Catalogue, named: str | None) -> str:
    """Return the split that confidence is calibrated on."""
    name = named or validation_split(own)
    if name is None or name not in own.split_sizes:
        raise UsageError(
            f"the run has no {named or 'validation'} products to calibrate on, only {', '.join(own.split_sizes)}",
            "name others that it was not trained on: --calibrate-on test",
        )
    if name == "train":
        raise UsageError(
            "calibrated on products that it was trained on, a model is overconfident",
            "calibrate on others: --calibrate-on test",
        )
    return name


def _filler(run: CategoryRun, catalogue: Catalogue, options: FillOptions, temperature: float = 1.0) -> Filler:
    """Return the filler for the catalogue's tree."""
    nodes = candidate_nodes(catalogue, options.candidates)
    texts = category_texts(catalogue.tree, nodes, run.options.query)
    categories = run.model.category_rows(run.category_features(texts))
    return Filler(catalogue.tree, nodes, categories, temperature, options.threshold, options.alternatives)
