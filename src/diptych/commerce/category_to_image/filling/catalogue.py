"""Fill a catalogue with a run: calibrate, measure what confidence is worth, suggest, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts
from diptych.commerce.catalogue.source import validation_split
from diptych.commerce.category_to_image.application import count_trained_on, known_products, rows_for
from diptych.commerce.category_to_image.filling.calibration import (
    Calibration,
    Reliability,
    calibrate,
    reliability_of,
)
from diptych.commerce.category_to_image.filling.fill import Candidates, Filler, candidate_nodes, write_filled
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.tables import fill_tables
from diptych.core.errors import UsageError
from diptych.core.table import Table


@dataclass(frozen=True)
class FilledCatalogue:
    """What was suggested, and what it is worth."""

    counts: Mapping[str, int]  # products per verdict
    products: int  # how many were looked at
    written: int  # how many of them are in the file
    trained_on: int  # how many of them the run was trained on
    calibration: Calibration
    split: str  # what it was calibrated on
    reliability: Reliability | None  # None where there are no other products to measure it on

    def tables(self) -> list[Table]:
        """Return what confidence is worth, and the verdicts."""
        return fill_tables(self.counts, self.reliability)

    def notes(self) -> list[str]:
        """Return what a reader of the suggestions should know."""
        notes = []
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
        return notes

    def line(self) -> str:
        """One line about the calibration."""
        found = self.calibration
        return (
            f"temperature {found.temperature:.4g}, found on {found.products:,} products of split {self.split}: "
            f"loss {found.loss:.3f} nats, a uniform guess has {found.chance:.3f}"
        )


def fill_catalogue(
    run: CategoryRun,
    own: Catalogue,
    catalogue: Catalogue,
    file: Path,
    *,
    check: bool,
    threshold: float,
    alternatives: int,
    candidates: Candidates,
    calibrate_on: str | None,
    is_own: bool,
    about: Mapping[str, Any],
) -> FilledCatalogue:
    """Suggest categories for the products without one, or with ``check`` for all, and write them to ``file``.

    Args:
        own: the run's products, with the splits that they had.
        calibrate_on: their split for the temperature; None: the one for validation.
        is_own: whether ``catalogue`` is of the run's products.
    """
    split = _calibrating(own, calibrate_on)
    first = _filler(run, own, candidates, threshold, alternatives)
    with rows_for(run, own.split(split), file) as rows:
        calibration = calibrate(rows, first.categories, first.candidates, own.split(split))
    filler = replace(first, temperature=calibration.temperature)
    reliability = None
    test = own.split("test") if split != "test" and "test" in own.split_sizes else None
    if test is not None and bool((test.place >= 0).any()):
        with rows_for(run, test, file) as rows:
            reliability = reliability_of(filler, rows, test)
    if catalogue.tree.fingerprint != own.tree.fingerprint:  # another tree, the same confidence in scores
        filler = _filler(run, catalogue, candidates, threshold, alternatives, calibration.temperature)
    part = catalogue.subset(np.arange(len(catalogue)) if check else np.flatnonzero(catalogue.place < 0))
    trained_on = count_trained_on(run, part, own=is_own)
    metadata: dict[str, Any] = {
        "run": str(run.folder.resolve()),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        **about,
        "trained_on": trained_on,
        "candidates": {"kind": candidates, "categories": len(filler.candidates)},
        "threshold": threshold,
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
    return FilledCatalogue(counts, len(part), len(part) - left, trained_on, calibration, split, reliability)


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


def _filler(
    run: CategoryRun,
    catalogue: Catalogue,
    kind: Candidates,
    threshold: float,
    alternatives: int,
    temperature: float = 1.0,
) -> Filler:
    """Return the filler for the catalogue's tree."""
    nodes = candidate_nodes(catalogue, kind)
    texts = category_texts(catalogue.tree, nodes, run.options.query)
    categories = run.model.category_rows(run.category_features(texts))
    return Filler(catalogue.tree, nodes, categories, temperature, threshold, alternatives)
