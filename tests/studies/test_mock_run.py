"""A run that measures what is printed is a reproduction in every table; one that is too far off is in none."""

from __future__ import annotations

from dataclasses import fields, replace

from diptych.studies import STUDIES, Entry, Measurement, Results, compare
from diptych.studies.published import Measured

NAMES = [study.name for study in STUDIES if not study.ours]


def _measured(on):
    return Measured(**{one.name: getattr(on, one.name) for one in fields(Measured)})


def _off(cell, by):
    """Return a value that is off by so many times what is allowed; of a bound, on the other side."""
    allowed = max(cell.tolerance * abs(cell.value), 2 * (cell.seed_sd or 0.0), cell.rounding)
    if cell.bound:
        return cell.value + (1 if cell.bound == "<" else -1) * (by * allowed or -1e-3)
    return cell.value + by * (allowed or 1e-3)


def _mock(study, on, by):
    """Return results of one seed of all rows that are printed of ``on``: the printed cells, or off."""
    entries = []
    for row in study.rows:
        printed = study.printed(row.name, on.key)
        if printed is None or not printed.cells:
            continue
        own = _measured(replace(on, positives="own"))
        values = {name: _off(cell, by) for name, cell in printed.cells.items()}
        measurements = [Measurement(values, own, "mock")]
        if on.positives != "own":
            measurements = [Measurement({}, own, "mock"), Measurement(values, _measured(printed.on), "mock")]
        else:
            measurements = [Measurement(values, _measured(printed.on), "mock")]
        entries.append(
            Entry(study.name, row.name, 0, "published", tuple(measurements), "", "", on.dataset, (0, 0), 0.0)
        )
    return Results(study.name, tuple(entries), several=study.several)


def test_printed_cells_are_reproduced_and_others_are_not():
    for name in NAMES:
        study = replace(STUDIES.get(name), claims=())  # they are judged elsewhere
        assert "published" in study.settings
        for on in [one for table in study.published for one in table.evaluated_on]:
            for by, right in ((0.0, True), (2.0, False)):
                results = _mock(study, on, by)
                if not results.entries:
                    continue
                verdicts = [
                    (row.row.name, cell.column, cell.verdict)
                    for block in compare(study, results).blocks
                    for row in block.rows
                    if row.printed is not None and row.printed.on.key == on.key and row.seeds
                    for cell in row.cells
                    if cell.published is not None and cell.measured is not None
                ]
                assert all((verdict == "reproduced") is right for *_, verdict in verdicts), verdicts
                assert verdicts or on.positives != "own" or on not in study.printed_on(), on.key
