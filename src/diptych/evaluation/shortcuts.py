"""An encoder without and with the shortcuts that it was trained with, on the same split: its retrieval, and an audit.

Only shortcuts on both sides have a second condition: what is on only one side links nothing, and is evaluated without,
as published. Without them an audit shows what is left when they are taken away; the probes of each condition are
trained on embeddings of that condition.

Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), section 4.3, evaluation method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.information.audit import Audit, Encoded, audit
from diptych.analysis.information.questions import MOST_ROWS, ProbeName, has_facts
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.draws import draw_uniform
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.table import Table, Tabular
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.result import BOTH, Result
from diptych.metrics import DEFAULT_MEASURES, Bootstrap, measure

WITH = "with-shortcuts"  # ends the name of what was embedded or evaluated with shortcuts


@dataclass(frozen=True, eq=False)
class BothConditions(Tabular):
    """Retrieval of one encoder on one split."""

    without: Result
    with_shortcuts: Result | None = None  # None where training had none on both sides
    shortcuts: str = ""  # what they are, in one line; empty without any

    def tables(self) -> list[Table]:
        """Return every measure and direction, both conditions and chance side by side."""
        rows = []
        for direction, given in self.without.scores.items():
            for name, score in given.items():
                show, other = measure(name).show, self.with_shortcuts
                second = "–" if other is None else show(other.value(name, direction))
                way = "" if direction == BOTH else direction
                rows.append((name, way, show(score.value), second, show(score.chance)))
        columns = ("measure", "direction", "without shortcuts", "with", "chance")
        return [Table.of(f"with the shortcuts of training: {self.shortcuts}", "", columns, rows)]

    def lines(self) -> list[str]:
        line = self.without.protocol_line()
        return [f"{line}; with shortcuts: {self.shortcuts}" if self.with_shortcuts is not None else line]


def evaluate_both(
    encoder: DualEncoder,
    collection: Collection,
    split: str,
    embeddings: Path,
    evaluations: Path,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    shortcuts: Shortcuts | None,
    name: str | None = None,
    without: Result | None = None,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> BothConditions:
    """Embed and measure a split without shortcuts, and with those given; None for none on both sides."""
    for option in ("positives", "ground_truth"):
        if options.get(option) is not None:
            text = f"{option} are of what was embedded without shortcuts"
            raise UsageError(text, "evaluate each condition separately with evaluate_encoded")
    part, name = collection.split(split), name or safe_name(f"{collection.name}-{split}")
    if without is None:
        encoded = encode_collection(encoder, part, embeddings / name, split)
        without = evaluate_encoded(encoded, evaluations / name, measures, about=about, **options)
    if shortcuts is None:
        return BothConditions(without)
    name = f"{name}-{WITH}"
    carrying = encode_collection(
        encoder, shortcuts.injected(part, encoder.with_endings), embeddings / name, split
    )
    line = shortcuts.line().removeprefix("shortcuts: ")
    result = evaluate_encoded(
        carrying, evaluations / name, measures, about={**(about or {}), "shortcuts": line}, **options
    )
    return BothConditions(without, result, line)


USUAL = ("train", "val", "test")
_IMAGES = int.from_bytes(b"images")


def audit_encoder(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,  # for embeddings, which are used again when nothing has changed
    *,
    splits: tuple[str, str, str] = USUAL,  # that probes are trained, chosen and tested on
    shortcuts: Shortcuts | None = None,  # what the encoder was trained with; both conditions are audited
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    seed: int = 0,  # of the training images that are drawn, of probes and of control tasks
    most: int = MOST_ROWS,  # training images, and training rows per question
    samples: int = 1000,  # bootstrap resamples of the intervals
    tested: Collection | None = None,  # other data to test the probes on, instead of the test split
    about: dict[str, Any] | None = None,  # what else the figures depend on
) -> Audit:
    """Audit any encoder on a collection that says facts, or on the words of any other."""
    folder, collection = Path(folder), collection.divided()
    collection.require_captions("an audit")
    needed = splits if tested is None else splits[:2]
    if missing := [name for name in needed if name not in collection.split_sizes]:
        text = f"{collection.name} has no split {missing[0]!r}; an audit trains, chooses and tests"
        raise UsageError(text, f"it has: {', '.join(collection.split_sizes)}")
    plain = [collection.split(name) for name in needed]
    names = [safe_name(f"{collection.name}-{name}") for name in needed]
    if tested is not None:
        plain.append(tested)
        names.append(safe_name(f"{tested.name}-{tested.text_fingerprint[:8]}"))
        if not has_facts(tested):  # its words are then probed, of the probes' data too
            plain = [replace(part, records=None, caption_records=None) for part in plain]
    if (n := plain[0].n_images) > most:
        names[0] += f"-{most}-of-{n}-seed-{seed}"
        order = np.argsort(draw_uniform(seed, _IMAGES, np.arange(n)), kind="stable")
        plain[0] = plain[0].subset(np.sort(order[:most]))

    def encoded(parts: list[Collection], ending: str = "") -> tuple[Encoded, ...]:
        rows = [
            encode_collection(encoder, part, folder / f"{name}{ending}", split)
            for part, name, split in zip(parts, names, splits, strict=True)
        ]
        return tuple(
            Encoded(part, one.images.rows, one.texts.rows) for part, one in zip(parts, rows, strict=True)
        )

    conditions = {"without": encoded(plain)}
    if shortcuts is not None:
        parts = [shortcuts.injected(part, encoder.with_endings) for part in plain]
        conditions["with"] = encoded(parts, f"-{WITH}")
    return audit(
        conditions,  # type: ignore[arg-type]
        probes,
        seed=seed,
        most=most,
        bootstrap=Bootstrap(samples),
        about={
            "dataset": collection.name if tested is None else f"{tested.name}, probes of {collection.name}",
            "splits": ", ".join(needed),
            "encoder": encoder.fingerprint,
            "shortcuts": None if shortcuts is None else shortcuts.line().removeprefix("shortcuts: "),
            **(about or {}),
        },
    )
