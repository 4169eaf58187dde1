"""``python -m pins [NAME …] [--fast] [--update] [--list] [--update-from FOLDER]``."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from pins.environment import run_pins
from pins.registry import Pin, pins
from pins.stored import compare, path_of, store

_SHOWN = 12  # differences of a pin


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pins", description="Hold the numbers against those stored."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="pins, or patterns such as 'training.*'; all of them by default",
    )
    parser.add_argument("--fast", action="store_true", help="only those that the tests run too")
    parser.add_argument("--update", action="store_true", help="store the numbers instead of comparing them")
    parser.add_argument("--list", action="store_true", help="list the pins")
    parser.add_argument(
        "--update-from",
        "--compare-from",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="studies only: read finished studies in FOLDER instead of running them",
    )
    given = parser.parse_args()
    chosen = _chosen(given.names, given.fast)
    if given.list:
        for one in chosen:
            marks = [
                mark
                for mark, there in (("fast", one.fast), ("not stored", not path_of(one.name).is_file()))
                if there
            ]
            print(one.name, f"({', '.join(marks)})" if marks else "")
        return 0
    return _report(chosen, run_pins([one.name for one in chosen]), given.update)


def _chosen(names: list[str], fast: bool) -> list[Pin]:
    known = pins()
    unknown = [name for name in names if not fnmatch.filter(known, name)]
    if unknown:
        sys.exit(f"no pin is called {', '.join(unknown)}; python -m pins --list names them")
    wanted = {found for name in names for found in fnmatch.filter(known, name)} if names else set(known)
    return [one for name, one in known.items() if name in wanted and (one.fast or not fast)]


def _report(chosen: list[Pin], measured: dict, update: bool) -> int:
    failed = 0
    for one in chosen:
        found = measured[one.name]
        seconds = f"{found.get('cpu_seconds', 0):.1f} s"
        if "error" in found:
            failed += 1
            print(f"{one.name}: could not be measured\n{found['error']}")
        elif update:
            store(one.name, found["values"])
            print(f"{one.name}: stored ({seconds})")
        else:
            differences, note = compare(one.name, found["values"])
            failed += bool(differences)
            print(
                f"{one.name}: {'differs' if differences else 'same'} ({seconds}){'; ' + note if note else ''}"
            )
            for line in differences[:_SHOWN]:
                print(f"    {line}")
            if len(differences) > _SHOWN:
                print(f"    … and {len(differences) - _SHOWN} more")
    print(f"{len(chosen) - failed} of {len(chosen)} pins {'stored' if update else 'are the same'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
