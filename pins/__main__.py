"""``python -m pins [NAME …] [--fast] [--update] [--list] [--studies FOLDER] [--jobs N]``."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from pins.environment import Measured, run_pins
from pins.registry import Pin, pins
from pins.stored import compare, path_of, store

_SHOWN = 12  # differences of a pin


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pins", description="Hold what a user runs against the stored numbers."
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="pins, or patterns such as 'training.*'; all by default")
    add("--fast", action="store_true", help="only those that the tests run too")
    add("--update", action="store_true", help="store the numbers instead of comparing them")
    add("--list", action="store_true", help="list the pins and stop")
    add("--jobs", "-j", type=int, default=1, help="processes at once; the numbers do not depend on it")
    add(
        "--studies",
        type=Path,
        metavar="FOLDER",
        help="read finished studies (FOLDER/NAME of diptych study run NAME --quick) instead of running them; "
        "those that FOLDER does not have are left out",
    )
    given = parser.parse_args()
    chosen = _chosen(given.names, given.fast, given.studies)
    if given.list:
        for one in chosen:
            marks = ["fast"] if one.fast else []
            marks += [] if path_of(one.name).is_file() else ["not stored"]
            print(one.name, f"({', '.join(marks)})" if marks else "")
        return 0
    failed = 0
    for name, measured in run_pins([one.name for one in chosen], given.jobs, given.studies):
        failed += not _report(name, measured, given.update)
    print(f"{len(chosen) - failed} of {len(chosen)} pins {'stored' if given.update else 'are the same'}")
    return int(bool(failed))


def _chosen(names: list[str], fast: bool, studies: Path | None) -> list[Pin]:
    known = pins()
    unknown = [name for name in names if not fnmatch.filter(known, name)]
    if unknown:
        sys.exit(f"no pin is called {', '.join(unknown)}; python -m pins --list names them")
    wanted = {found for name in names for found in fnmatch.filter(known, name)} if names else set(known)
    chosen = [one for name, one in known.items() if name in wanted and (one.fast or not fast)]
    if studies is None:
        return chosen
    return [one for one in chosen if one.study and (studies / one.study / "results.json").is_file()]


def _report(name: str, measured: Measured, update: bool) -> bool:
    """Store or compare one pin, and return whether it is as it should be."""
    if "error" in measured:
        print(f"{name}: could not be measured\n{measured['error']}", flush=True)
        return False
    seconds = f"{measured['cpu_seconds']:.1f} s"
    if update:
        store(name, measured["values"])
        print(f"{name}: stored ({seconds})", flush=True)
        return True
    found, note = compare(name, measured["values"])
    print(f"{name}: {'differs' if found else 'same'} ({seconds}){'; ' + note if note else ''}", flush=True)
    for line in found[:_SHOWN]:
        print(f"    {line}")
    if len(found) > _SHOWN:
        print(f"    … and {len(found) - _SHOWN} more", flush=True)
    return not found


if __name__ == "__main__":
    sys.exit(main())
