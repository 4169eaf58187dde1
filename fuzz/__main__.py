"""``python -m fuzz``: 2,000 corrupt inputs; exit code 1 when one of them is neither read nor refused in one line."""

from __future__ import annotations

import argparse
import sys

from fuzz.campaign import check_system, report, run
from fuzz.targets import TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000, help="how many (2,000)")
    parser.add_argument("--seed", type=int, default=0, help="of all mutations (0)")
    parser.add_argument("--case", type=int, help="only this input, as a failure names it")
    parser.add_argument("--processes", type=int, default=2, help="inputs at once (2)")
    parser.add_argument("--target", choices=[one.name for one in TARGETS], help="only this kind of input")
    given = parser.parse_args()
    check_system()
    cases = range(given.inputs) if given.case is None else range(given.case, given.case + 1)
    sys.exit(report(run(cases, given.seed, given.processes, given.target), given.seed) > 0)


if __name__ == "__main__":
    main()
