"""Checks of claims about shortcuts: collapse, recovery, and which of several candidates is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.files import safe_name
from diptych.studies.claims import RECALLS, Check, Finding, missing
from diptych.studies.given import encoded_split
from diptych.studies.making import Start, start_of
from diptych.studies.retrieval import columns_of
from diptych.studies.study import Measurement, Subject
from diptych.studies.verdict import Evidence, Figure, Measured, difference

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation import Result
    from diptych.evaluation.shortcuts import BothConditions


WITH_RSUM, VALIDATION = "with rsum", "validation rsum"
CHANCE, ZERO_SHOT = "chance rsum", "zero-shot rsum"
_MEASURES = (*RECALLS, "rsum")


@dataclass(frozen=True)
class ShortcutRetrieval:
    """Recalls and rsum of a run's encoder, on the test and the validation split.

    ``rsum`` and the recalls are without shortcuts; ``with rsum`` and so on with those of training, where
    both sides had them; ``validation rsum`` and ``validation with rsum`` are of the validation split;
    ``chance rsum`` is what knowing nothing gives; ``zero-shot rsum`` is of the encoder that training
    began with, where there was one, without shortcuts.
    """

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {"kind": "shortcut retrieval", "version": 2}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; results are kept in the run's ``evaluation`` folder, a folder per split and condition."""
        from diptych.encoders.dual_encoder import DualEncoder

        run, data = subject.run, subject.run.recipe.data
        encoder = DualEncoder.load(run.best)
        test = self._both(subject, encoder, data.test)
        validation = self._both(subject, encoder, data.validation)
        values = columns_of(test.without)
        values[CHANCE] = test.without.score("rsum").chance
        values[VALIDATION] = validation.without.value("rsum")
        if test.with_shortcuts is not None and validation.with_shortcuts is not None:
            given = columns_of(test.with_shortcuts)
            values |= {f"with {name}": value for name, value in given.items()}
            values["validation with rsum"] = validation.with_shortcuts.value("rsum")
        protocol = test.protocol_line()
        start = start_of(run, subject.begun_with)
        if start is not None:
            zero_shot = _zero_shot(subject, start)
            values[ZERO_SHOT] = zero_shot.value("rsum")
            protocol += f"; {start.line()}, zero-shot: {zero_shot.protocol_line()}"
        told = test.without.protocol
        return (
            Measurement(
                values=values,
                on=Measured(subject.collection.name, data.test, told.n_images, told.n_texts),
                protocol=protocol,
                commands=("diptych evaluate {run}",),
            ),
        )

    def _both(self, subject: Subject, encoder: DualEncoder, split: str) -> BothConditions:
        from diptych.evaluation.shortcuts import evaluate_both
        from diptych.training.evaluations import shortcuts_to_evaluate

        run = subject.run
        return evaluate_both(
            encoder,
            subject.collection,
            split,
            run.folder / "embeddings",
            run.folder / "evaluation",
            _MEASURES,
            encoded=encoded_split(subject, split),
            shortcuts=shortcuts_to_evaluate(run.recipe, subject.collection, run.begun_with.get("shortcuts")),
            samples=0,
            trec=False,
            about={"seed": run.recipe.seed},
        )


def _zero_shot(subject: Subject, start: Start) -> Result:
    """The test split, without shortcuts, by the encoder that training began with."""
    from diptych.core.fingerprint import fingerprint
    from diptych.encoders.encode import encode_collection
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    split = subject.run.recipe.data.test
    encoder = start.open()
    part = subject.collection.split(split)
    # Rows that begin with the same encoder share its rows, wherever their runs are.
    name = fingerprint(encoder.fingerprint, part.text_fingerprint)
    encoded = encode_collection(encoder, part, Path(subject.features) / "zero-shot" / name, split)
    folder = subject.run.folder / "evaluation" / safe_name(f"{part.name}-{split}-zero-shot")
    return evaluate_encoded(encoded, folder, _MEASURES, samples=0, trec=False)


COLLAPSED = 0.05
"""Share of the rsum without shortcuts that still counts as a collapse."""

TIMES_CHANCE = 3.0
"""So many times chance counts as a collapse too: on small test sets chance itself is not near 0."""

SLACK = 12.0
"""Points of rsum (2 % of 600) that a single run may be off an order."""


def _near_chance(evidence: Evidence, column: str, *rows: str) -> float:
    """Up to where ``column``, an rsum, is near chance, known of any of ``rows``; 0 where it is not known.

    Shares of information have no chance here, and printed tables none at all.
    """
    known = [evidence.figure(row, CHANCE) for row in rows] if column.endswith("rsum") else []
    return max((TIMES_CHANCE * chance.mean for chance in known if chance is not None), default=0.0)


def _nothing_to_lose(what: str, column: str, row: str, figure: Figure) -> Finding:
    """Beside what is near chance itself nothing is judged."""
    return missing(what, f"{column} of {row} to be above chance: {figure.mean:.1f} is not")


def at_least(row: str, reference: str, factor: float, *columns: str) -> Check:
    """``row`` is at least ``factor`` times ``reference`` in every column.

    Beside a reference that is near chance itself there is nothing to keep, and nothing to judge.
    """

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{row} is at least {factor:g} × {reference} in {column}"
            one, other = evidence.figure(row, column), evidence.figure(reference, column)
            if one is None or other is None:
                findings.append(missing(what, f"{column} of {row} and {reference}"))
                continue
            if other.mean <= _near_chance(evidence, column, reference, row):
                findings.append(_nothing_to_lose(what, column, reference, other))
                continue
            limit = factor * other.mean
            detail = f"{one.mean:.1f} against {other.mean:.1f}"
            margin = (one.mean - limit) / max(abs(one.mean), abs(limit), 1e-12)
            findings.append(Finding(what, one.mean >= limit, detail, margin))
        return findings

    return check


def reaches(row: str, column: str, level: float) -> Check:
    """``row`` has at least ``level`` in ``column``."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} has at least {level:g} in {column}"
        figure = evidence.figure(row, column)
        if figure is None:
            return [missing(what, f"{column} of {row}")]
        return [Finding(what, figure.mean >= level, f"{figure.mean:.1f}", (figure.mean - level) / level)]

    return check


def less(row: str, column: str, other: str) -> Check:
    """Of one row, ``column`` is below ``other``, which has to be above chance."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row}: {column} is below {other}"
        first, second = evidence.figure(row, column), evidence.figure(row, other)
        if first is None or second is None:
            return [missing(what, f"{column} and {other} of {row}")]
        if second.mean <= _near_chance(evidence, other, row):
            return [_nothing_to_lose(what, other, row, second)]
        apart = difference(second, first).mean
        scale = max(abs(first.mean), abs(second.mean), 1e-12)
        return [Finding(what, apart > 0, f"{first.mean:.1f} against {second.mean:.1f}", apart / scale)]

    return check


def collapsed(row: str, reference: str) -> Check:
    """The rsum of ``row`` is near chance, or next to nothing beside that of ``reference``.

    Beside a reference that is near chance itself there is nothing to fall from, and nothing to judge.
    """

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} is at most {100 * COLLAPSED:g} % of {reference} or {TIMES_CHANCE:g} × chance in rsum"
        figure, whole = evidence.figure(row, "rsum"), evidence.figure(reference, "rsum")
        chance = evidence.figure(row, CHANCE)
        if figure is None or (whole is None and chance is None):
            return [missing(what, f"rsum of {row} and {reference}")]
        near_chance = _near_chance(evidence, "rsum", row)
        if whole is not None and whole.mean <= near_chance:
            return [_nothing_to_lose(what, "rsum", reference, whole)]
        limit = max(near_chance, 0.0 if whole is None else COLLAPSED * whole.mean)
        detail = f"{figure.mean:.1f}, {limit:.1f} allowed"
        margin = (limit - figure.mean) / max(limit, figure.mean, 1e-12)
        return [Finding(what, figure.mean <= limit, detail, margin)]

    return check


def recovers(row: str, fallen: str, whole: str, factor: float) -> Check:
    """The rsum of ``row`` is at least ``factor`` times that of ``fallen``, and is no collapse beside ``whole``.

    ``fallen`` may be at chance, for that is what is recovered from; ``whole`` may not.
    """

    def check(evidence: Evidence) -> list[Finding]:
        fall = collapsed(row, whole)(evidence)[0]
        what = f"{row} is at least {factor:g} × {fallen} in rsum"
        one, other = evidence.figure(row, "rsum"), evidence.figure(fallen, "rsum")
        if one is None or other is None:
            return [missing(what, f"rsum of {row} and {fallen}")]
        if fall.holds is None or evidence.figure(whole, "rsum") is None:
            return [missing(what, f"rsum of {whole}, above chance")]
        limit = factor * other.mean
        margin = (one.mean - limit) / max(abs(one.mean), abs(limit), 1e-12)
        return [
            Finding(what, one.mean >= limit, f"{one.mean:.1f} against {other.mean:.1f}", margin),
            Finding(f"not: {fall.what}", not fall.holds, fall.detail, -fall.margin),
        ]

    return check


def in_order(rows: Sequence[str], column: str, *, rising: bool) -> Check:
    """From each of ``rows`` that was run to the next, ``column`` rises (or falls), and so from first to last.

    A step the wrong way is allowed up to :data:`SLACK` or twice the spread over seeds; the way from the
    first to the last must be longer than that.
    """
    word = "rises" if rising else "falls"

    def check(evidence: Evidence) -> list[Finding]:
        found = evidence.only(rows, column)
        there = list(found)
        if len(there) < 2:
            return [
                missing(f"{column} {word} from row to row", f"{column} of two from {rows[0]} to {rows[-1]}")
            ]
        findings: list[Finding] = []
        for first, second in [*pairwise(there), (there[0], there[-1])]:
            apart = difference(found[second], found[first])
            allowed = max(SLACK, 0.0 if apart.spread is None else 2 * apart.spread)
            step = apart.mean if rising else -apart.mean
            # The last pair is the whole way.
            whole = len(findings) == len(there) - 1
            margin = step - allowed if whole else step + allowed
            what = f"{column} {word} from {first} to {second}"
            what += f" by more than {allowed:.0f}" if whole else f", {allowed:.0f} points allowed"
            findings.append(Finding(what, margin > 0 if whole else margin >= 0, str(apart), margin))
        return findings

    return check


def chosen_of(evidence: Evidence, candidates: Sequence[str]) -> str | None:
    """The candidate with the best validation rsum; of printed numbers, which have none, the only one.

    None where none was run, or where the validation of several is not known.
    """
    judged = evidence.only(candidates, VALIDATION)
    if judged:
        return max(judged, key=lambda row: judged[row].mean)
    printed = [row for row in candidates if evidence.figures.get(row)]
    return printed[0] if len(printed) == 1 else None


def with_chosen(candidates: Sequence[str], make: Callable[[str], Check]) -> Check:
    """The check of the candidate with the best validation rsum."""

    def check(evidence: Evidence) -> list[Finding]:
        chosen = chosen_of(evidence, candidates)
        if chosen is None:
            needed = f"one of {candidates[0]} … {candidates[-1]}"
            return [missing("the candidate with the best validation rsum", needed)]
        return make(chosen)(evidence)

    return check
