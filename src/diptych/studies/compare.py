"""Published and measured side by side: what a verdict prints and a report draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diptych.core.table import Table
from diptych.studies.claims import Claim, Judgement, judge, missing
from diptych.studies.published import Cell, EvaluatedOn, PublishedRow
from diptych.studies.results import Entry, Results
from diptych.studies.rows import FINE_TUNE
from diptych.studies.study import PUBLISHED, Row, Study
from diptych.studies.verdict import (
    Evidence,
    Figure,
    Measured,
    Verdict,
    cell_verdict,
    printed_by,
    printed_evidence,
    same_evaluation,
)

OWN = "own"
"""The key of what ours were measured on, where nothing is printed of it."""


@dataclass(frozen=True)
class ComparedCell:
    """One column of one row."""

    column: str
    published: Cell | None
    measured: Figure | None
    right: Figure | None
    verdict: Verdict


@dataclass(frozen=True)
class ComparedRow:
    """One row."""

    row: Row
    printed: PublishedRow | None
    cells: tuple[ComparedCell, ...]
    seeds: tuple[int, ...]
    why: str = ""
    protocol: str = ""
    commands: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    epochs: tuple[int, int] = (0, 0)
    differences: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The paper's number and the label, once where they are the same."""
        return f"{self.number}  {self.row.label}" if self.number else self.row.label

    @property
    def number(self) -> str:
        """The paper's number or words; empty where it prints no number, or where the label says the same."""
        printed = "" if self.printed is None or not self.printed.cells else self.printed.row
        return "" if printed.lower() == self.row.label.lower() else printed


@dataclass(frozen=True)
class Block:
    """The rows on one ground truth."""

    on: EvaluatedOn
    differences: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def is_printed(self) -> bool:
        """Whether anything is printed of it; else ours stand alone."""
        return self.on.key != OWN

    def describe(self) -> str:
        """What the printed numbers were measured on, and by whom: in one line, with rows that differ by name."""
        each: dict[str, list[str]] = {}
        for row in self.rows:
            if row.printed is not None:
                each.setdefault(row.printed.on.describe(), []).append(row.row.label)
        by = f"by {self.on.by}: " if self.on.by else ""
        if len(each) < 2:
            return by + self.on.describe()
        return by + "; ".join(f"{', '.join(rows)}: {on}" for on, rows in each.items())


@dataclass(frozen=True)
class Comparison:
    """A study's verdict.

    Attributes:
        study: which.
        results: what was measured.
        label: in one sentence, what these numbers are and are not.
        reproduces: whether cells get verdicts.
        blocks: tables; the first is on the collection's own pairs.
        claims: each with what our numbers say and, by dataset, what the paper's own do.
        remarks: what the table does not say of the numbers.
        tables: what the study makes of the numbers besides.
    """

    study: Study
    results: Results
    label: str
    reproduces: bool
    blocks: tuple[Block, ...]
    claims: tuple[tuple[Claim, Judgement, Mapping[str, Judgement]], ...]
    remarks: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many cells have each verdict, of those that were measured, are printed and could be checked."""
        found: dict[str, int] = {}
        for block in self.blocks:
            for row in block.rows:
                for cell in row.cells:
                    if cell.verdict not in ("not run", "not printed", "unchecked start"):
                        found[cell.verdict] = found.get(cell.verdict, 0) + 1
        return found


_OF_THE_MACHINE = (
    "model.image.weights",
    "model.text.word_vectors",
    "checkpoints.every_steps",
    FINE_TUNE,
    "reconstruction.targets.model",
    "model.text.targets.model",
    "dense",
    "sparsify.vocabulary.source",
    "sparsify.training.checkpoint_minutes",
    "measure.",
)
"""Keys that say where things are or how often a run is saved: setting them makes no other training.

What is fine-tuned from an encoder that was given, or made of its rows, is the paper's training, but no
reproduction: whether it is the paper's encoder cannot be checked.
"""


def changed_training(results: Results) -> list[str]:
    """What was set that makes it another training than the setting's, as dotted keys."""
    keys = {key for entry in results.entries for key in entry.changed}
    return sorted(key for key in keys if not key.startswith(_OF_THE_MACHINE))


def given_start(entry: Entry) -> str:
    """The encoder that a person gave a training to go on from; empty for none."""
    return entry.fine_tuned_from or ("an encoder without a name" if FINE_TUNE in entry.changed else "")


def label_of(study: Study, results: Results, block: Block, changed: list[str], is_the_papers: bool) -> str:
    """The sentence."""
    if not results.entries:
        return "Nothing has been run."
    data = results.entries[0].data
    setting = study.settings[results.entries[0].setting].description
    how = f"trained as the setting {results.setting!r} says ({setting})"
    if changed:
        how += f", with changes of {', '.join(changed)}"
    given = ", ".join(dict.fromkeys(start for entry in results.entries if (start := given_start(entry))))
    begun = "on rows of" if any(row.given for row in (*study.rows, *study.bases)) else "fine-tuned from"
    if given and is_the_papers:
        whole = all(given_start(entry) for entry in results.entries)
        first = "The" if whole else "A reproduction where trained from scratch, else the"
        return (
            f"{first} paper's training, {begun} {given}: on {data}; {how}. Whether that is the paper's "
            "encoder cannot be checked: its cells have no verdict."
        )
    if is_the_papers:
        return f"A reproduction: on {data}; {how}."
    if given:
        how += f", {begun} {given}"
    if not study.printed_keys():
        return f"Not in the paper: on {data}, {how}."
    if block.differences:
        return (
            f"Not a reproduction: on {data}, {how}. The paper's numbers are of {block.on.describe()}; "
            "they stand beside ours for orientation, and only the claims are judged."
        )
    return (
        f"Not a reproduction: on the paper's data, but {how}. The paper's numbers stand beside ours for "
        "orientation, and only the claims are judged."
    )


def label_of_log(study: Study, results: Results, block: Block, is_the_papers: bool) -> str:
    """The sentence for a study of a log, for which nothing is trained but what predicts."""
    if not results.entries:
        return "Nothing has been run."
    entry = results.entries[0]
    how = f"on {entry.data}; as the setting {entry.setting!r} says ({study.settings[entry.setting].description})"
    changed = sorted({key for one in results.entries for key in one.changed})
    if changed:
        how += f", with changes of {', '.join(changed)}"
    if study.without_data:
        return f"Held against the paper: {study.settings[entry.setting].description}."
    if is_the_papers:
        return f"A reproduction: {how}."
    return (
        f"Not a reproduction: {how}. The paper's numbers are of {block.on.describe()}; they stand beside ours for "
        "orientation, and only the claims are judged."
    )


def label_of_several(study: Study, results: Results, changed: list[str], reproduces: bool) -> str:
    """The sentence for a study of several collections: what stands for its rows, on what it was measured."""
    if not results.entries:
        return "Nothing has been run."
    stands = {}
    for entry in results.entries:
        if study.row(entry.row).adapt is not None:
            continue  # it is its base's
        row = study.row(entry.row)
        made = (
            "nothing is trained" if row.captions_alone else f"trained as the setting {results.setting!r} says"
        )
        stands[row.label] = entry.fine_tuned_from or made
    who = "; ".join(f"{label}: {what}" for label, what in stands.items())
    data = "; ".join(dict.fromkeys(entry.data for entry in results.entries))
    how = f" With changes of {', '.join(changed)}." if changed else ""
    alone = all(row.captions_alone for row in study.rows)
    if alone and reproduces:
        verdicts = "Cells have a verdict where collection and captions are those of the printed number."
    elif alone:
        verdicts = (
            "Not a reproduction: the paper's numbers are of other captions. They stand beside ours for "
            "orientation, and only claims are judged."
        )
    elif reproduces:
        verdicts = (
            "Cells have a verdict where collection, captions and candidates are those of the printed number; "
            "whether these are the paper's weights cannot be checked."
        )
    else:
        verdicts = (
            "Not a reproduction: the paper's numbers are of other data, or of other models. They stand beside "
            "ours for orientation, and only orders and claims are judged."
        )
    return f"{who}. On {data}.{how} {verdicts}"


def judged_in_the_paper(study: Study) -> list[tuple[Claim, dict[str, Judgement]]]:
    """Do the paper's own numbers support its text? Per claim and dataset; of a study of several, per claim and
    who measured."""
    evidence = printed_sources(study)
    return [
        (claim, {key: _judged(claim, [key], given) for key, given in evidence.items()})
        for claim in study.claims
    ]


def printed_sources(study: Study) -> dict[str, Evidence]:
    """What the paper prints: per dataset, or of a study of several collections per who measured."""
    on = [one for table in study.published for one in table.evaluated_on]
    if study.several:
        return {by: printed_by(study.published, by) for by in dict.fromkeys(one.by for one in on)}
    own = [one.key for one in study.published[0].evaluated_on if one.positives == "own"]
    return {key: printed_evidence(study.published, key) for key in own}


def _judged(claim: Claim, keys: list[str], evidence: Evidence) -> Judgement:
    """Judge a claim on what the paper calls ``keys``; one that is about none of them is not run."""
    if claim.on and not set(keys) & set(claim.on):
        return Judgement("not run", (missing(claim.text, ", ".join(claim.on)),))
    return judge(claim, evidence)


def compare(study: Study, results: Results) -> Comparison:
    """Hold results against what is printed, and claims against both."""
    withhold = getattr(study.measure, "withhold", None)  # of people's counts not all may be printed
    results = results if withhold is None else withhold(results)
    return _compare_several(study, results) if study.several else _compare_one(study, results)


def _compare_one(study: Study, results: Results) -> Comparison:
    first = next((entry for entry in results.entries), None)
    own = first.measurements[0].on if first is not None else None
    keys = study.printed_keys(own.dataset) if own is not None else []
    is_the_papers = bool(keys)
    if not keys:
        keys = study.printed_keys()[:1]
    changed = changed_training(results)
    on = {one.key: one for one in study.published[0].evaluated_on}
    # Where nothing is printed, ours stand alone.
    held_on = [on[key] for key in keys] or [_as_printed(own)]
    blocks = tuple(_block(study, results, [one], changed) for one in held_on)
    as_published = is_the_papers and not blocks[0].differences and not changed and results.setting == "paper"
    reproduces = as_published and not all(given_start(entry) for entry in results.entries)
    printed = judged_in_the_paper(study)
    evidence = results.evidence()
    if is_the_papers and not blocks[0].differences:
        evidence = _with_quoted(evidence, study, keys[0])
    # On other data than the paper's a claim is judged whatever it is about.
    claims = tuple(
        (claim, _judged(claim, keys, evidence) if is_the_papers else judge(claim, evidence), in_paper)
        for claim, in_paper in printed
    )
    if study.of_logs:
        label = label_of_log(study, results, blocks[0], as_published)
    else:
        label = label_of(study, results, blocks[0], changed, as_published)
    remarks = () if study.remarks is None else tuple(study.remarks(evidence))
    tables = () if study.tables is None else tuple(study.tables(evidence))
    return Comparison(study, results, label, reproduces, blocks, claims, remarks, tables)


def _compare_several(study: Study, results: Results) -> Comparison:
    """A block per collection and who measured it: what was measured here first, then the rest of the table."""
    changed = changed_training(results)
    printed: dict[tuple[str, str], list[EvaluatedOn]] = {}
    for table in study.published:
        for on in table.evaluated_on:
            printed.setdefault((on.dataset, on.by), []).append(on)
    blocks = []
    for name in results.datasets:
        ours = results.on(name)
        held_on = [on for (of, _), on in printed.items() if of == name.lower()]
        alone = [[_as_printed(ours.entries[0].measurements[0].on)]]
        blocks += [_block(study, ours, on, changed) for on in held_on or alone]
    nothing = Results(study.name, (), results.left_out)
    rest = {on.dataset for on in study.published[0].evaluated_on} - {
        name.lower() for name in results.datasets
    }
    blocks += [_block(study, nothing, on, changed) for (of, _), on in printed.items() if of in rest]
    reproduces = any(
        cell.verdict in ("reproduced", "close", "not reproduced")
        for block in blocks
        for row in block.rows
        for cell in row.cells
    )
    evidence = results.evidence()
    claims = tuple((claim, judge(claim, evidence), said) for claim, said in judged_in_the_paper(study))
    remarks = () if study.remarks is None else tuple(study.remarks(evidence))
    label = label_of_several(study, results, changed, reproduces)
    tables = () if study.tables is None else tuple(study.tables(evidence))
    return Comparison(study, results, label, reproduces, tuple(blocks), claims, remarks, tables)


def _as_printed(own: Measured | None) -> EvaluatedOn:
    """What ours were measured on, in the words of printed numbers."""
    if own is None:
        return EvaluatedOn(OWN, "nothing", "none", 0, (0,))
    sessions = (own.sessions,) if own.sessions else ()
    return EvaluatedOn(
        OWN,
        own.dataset,
        own.split,
        own.images,
        (own.captions,),
        own.protocol,
        chosen=own.chosen,
        sessions=sessions,
        products=own.products,
        categories=(own.categories,) if own.categories else (),
    )


def _with_quoted(evidence: Evidence, study: Study, key: str) -> Evidence:
    """Ours beside the rows that the paper itself quotes from elsewhere, measured on the same thing."""
    quoted = {row.row for table in study.published for row in table.rows if row.config is None}
    printed = printed_evidence(study.published, key).figures
    beside = {name: printed[name] for name in printed if name in quoted}
    return Evidence({**beside, **evidence.figures}, evidence.trajectories, evidence.kept)


def _block(study: Study, results: Results, on: Sequence[EvaluatedOn], changed: list[str]) -> Block:
    """Rows beside what is printed of them on one of ``on``, which differ where a paper gives rows other tasks."""
    rows = []
    for row in study.rows:
        own = next((one for one in on if study.printed(row.name, one.key) is not None), None)
        if own is not None or (on[0].positives == "own" and results.of(row.name)):
            touched = {key for entry in results.of(row.name) for key in entry.changed}
            # Rows of several collections are models of their own: what changed one leaves the others alone.
            another = bool(touched & set(changed) if study.several else changed)
            rows.append(_row(study, results, row, own or on[0], another))
    found = [row for row in rows if row.seeds]
    if len(on) == 1:
        differences = found[0].differences if found else ()
    else:
        of_rows = ((row.row.label, row.differences) for row in found if row.printed is not None)
        differences = tuple(f"{label}: {', '.join(own)}" for label, own in of_rows if own)
    return Block(on[0], differences, tuple(rows))


def _row(study: Study, results: Results, row: Row, on: EvaluatedOn, changed: bool) -> ComparedRow:
    entries = results.of(row.name)
    measured = [one for entry in entries if (one := entry.measured(on.positives)) is not None]
    printed = study.printed(row.name, on.key)
    differences = same_evaluation(measured[0].on, on) if measured and on.key != OWN else []
    cells = []
    for column in study.columns:
        plain = results.values(row.name, column.name, on.positives)
        as_published = results.values(row.name, column.name + PUBLISHED, on.positives)
        held = as_published or plain
        cell = None if printed is None else printed.cells.get(column.name)
        verdict: Verdict
        if not held:
            verdict = "not run"
        elif cell is None:
            verdict = "not printed"
        elif differences:
            verdict = "other data"
        elif changed or results.setting != "paper":
            verdict = "other training"
        elif not row.pretrained and any(given_start(entry) for entry in entries):
            verdict = "unchecked start"
        else:
            verdict = cell_verdict(held, cell)
        cells.append(
            ComparedCell(
                column.name,
                cell,
                Figure.of(held) if held else None,
                Figure.of(plain) if as_published and plain else None,
                verdict,
            )
        )
    why = ""
    if not measured:
        why = results.left_out.get(
            row.name, "" if on.positives == "own" else f"needs --positives {on.positives}:PATH"
        )
        why = why or "not run"
    return ComparedRow(
        row=row,
        printed=printed,
        cells=tuple(cells),
        seeds=tuple(entry.seed for entry in entries) if measured else (),
        why=why,
        protocol=measured[0].protocol if measured else "",
        commands=tuple(text.format(run=entries[0].run) for text in measured[0].commands) if measured else (),
        cpu_seconds=sum(entry.cpu_seconds for entry in entries),
        epochs=entries[0].epochs if entries else (0, 0),
        differences=tuple(differences),
    )
