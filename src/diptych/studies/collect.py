"""A study's folder: whose it is, and what was measured in it; the same of single runs that studies trained."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from diptych.core.errors import UsageError
from diptych.core.files import read_json, write_json
from diptych.studies.results import Entry, Results, entry_file
from diptych.studies.rows import run_folder
from diptych.studies.study import STUDIES, SettingName, Study

STUDY = "study.json"
"""Marks a study's folder: which study and setting it is of, and the command that began it."""


def claim_folder(folder: Path, study: Study, setting: SettingName, command: str) -> None:
    """Write study.json, or see that the one there is of the same study and setting."""
    about = {"study": study.name, "setting": setting}
    file = folder / STUDY
    if file.is_file():
        there = read_json(file)
        for key, value in about.items():
            if there.get(key) != value:
                stay = f", or stay with --setting {there.get(key)}" if key == "setting" else ""
                raise UsageError(
                    f"{folder} holds {key} {there.get(key)!r}, not {value!r}",
                    f"choose another folder with --out{stay}",
                )
    write_json(file, {**about, "command": command})


def entries_of(study: Study, folder: Path) -> Iterator[Entry]:
    """All that a study has measured of the runs of its folder, whichever call trained them."""
    for row in study.rows:
        for run in sorted(run_folder(study, row, 0, folder).parent.glob("seed-*")):
            if study.several:
                for file in sorted((run / "studies").glob(f"{glob.escape(study.name)}@*.json")):
                    yield _entry(file, run)
                continue
            file = entry_file(run, study.name)
            if file.is_file():
                yield _entry(file, run)


def _entry(file: Path, run: Path) -> Entry:
    """An entry, which says where its run is today."""
    return replace(Entry.open(file), run=str(run))


def collect(folders: Sequence[Path]) -> list[Results]:
    """The results of study folders, and of single runs, one per study."""
    found: dict[str, dict[tuple[str, int, str], Entry]] = {}
    left_out: dict[str, dict[str, str]] = {}
    for folder in folders:
        if (folder / STUDY).is_file():
            study = STUDIES.get(read_json(folder / STUDY)["study"])
            entries = list(entries_of(study, folder))
            if (folder / "results.json").is_file():
                given = read_json(folder / "results.json")["left_out"]
                left_out.setdefault(study.name, {}).update(given)
        else:
            entries = [_entry(file, folder) for file in sorted((folder / "studies").glob("*.json"))]
        if not entries:
            raise UsageError(
                f"{folder} holds nothing that a study has measured",
                "give folders that diptych study run has written, or runs inside them",
            )
        for entry in entries:
            found.setdefault(entry.study, {})[entry.row, entry.seed, entry.dataset] = entry
    return [
        Results(name, tuple(entries.values()), left_out.get(name, {}), _is_several(name))
        for name, entries in found.items()
    ]


def _is_several(study: str) -> bool:
    """Whether a study is of several collections; a run may be of one that this version does not have."""
    return study in STUDIES.names() and STUDIES.get(study).several
