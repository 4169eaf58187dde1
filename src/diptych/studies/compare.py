"""Published and measured side by side: what a verdict prints and a report draws."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.claims import Claim, Judgement, judge, missing
from diptych.studies.comparison import OWN, Block, ComparedCell, ComparedRow, Comparison
from diptych.studies.evidence import Evidence, Figure, printed_by, printed_evidence
from diptych.studies.label import changed_training, given_start, label_of, label_of_log, label_of_several
from diptych.studies.measurement import PUBLISHED
from diptych.studies.published import EvaluatedOn
from diptych.studies.results import Results
from diptych.studies.study import Row, Study
from diptych.studies.verdict import Measured, Verdict, cell_verdict, same_evaluation


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
