"""The exceptions a user can meet, each with its fix.

::

    DiptychError                 something went wrong; exit code 1
    ├── UsageError               the request is impossible; exit code 2
    │   ├── UnknownNameError     a name that no registry, split or key holds
    │   ├── RecipeError          a recipe with an unknown key or an impossible value
    │   └── MissingExtraError    an optional library that is not installed
    ├── DataError                a collection or one of its items is not as it should be
    │   ├── ImageError           one image cannot be read (names the image)
    │   └── CaptionError         one caption cannot be used (names the caption)
    ├── NumericalError           NaN or infinity where a number was needed
    ├── MismatchError            two things that do not belong together (fingerprints, widths)
    ├── StorageError             a file could not be written or read back
    └── Interrupted              stopped on request, everything reported is safe; exit code 130
"""

import difflib
import itertools
import shlex
from collections.abc import Iterable
from pathlib import Path

# Names that a hint lists; of more it lists the nearest.
MOST_NAMES = 24


class DiptychError(Exception):
    """Base of every error raised on purpose: one line of what, one of what to do.

    Args:
        message: what is wrong, with the values that disagree.
        fix: what the reader can do about it; printed as a hint.
    """

    exit_code = 1

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


class UsageError(DiptychError):
    """Raised where a request is impossible as it was made."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not among the known ones; the hint lists the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        listed = ", ".join(names) or "none"
        if len(names) > MOST_NAMES:
            near = difflib.get_close_matches(name, names, n=5, cutoff=0.3)
            listed = ", ".join([*near, f"… ({len(names)} in all)"])
        super().__init__(f"unknown {kind} {name!r}", f"{nearest(name, names)}known: {listed}")
        self.known = names


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the question for the name that was probably meant, empty where none is near."""
    names = list(names)
    same = [one for one in names if one.lower() == name.lower()]
    near = same or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}? " if near else ""


def nearest_path(path: Path | str) -> str:
    """Return the question for the file or folder that was probably meant by one that is not there."""
    path = Path(path)
    try:
        there = [one.name for one in itertools.islice(path.parent.iterdir(), 1000)]
    except OSError:
        return ""
    likely = [name for name in there if name[:1] == path.name[:1]]
    near = difflib.get_close_matches(path.name, likely, n=1, cutoff=0.6)
    return f"did you mean {shlex.quote(str(path.with_name(near[0])))}? " if near else ""


class RecipeError(UsageError):
    """A recipe that does not say what its keys allow."""


class MissingExtraError(UsageError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {library}, which is not installed",
            f"pip install 'diptych[{extra}]'",
        )


class DataError(DiptychError):
    """A collection that is not as its format says."""


class ImageError(DataError):
    """One image that cannot be read; the message names it."""


class CaptionError(DataError):
    """One caption that cannot be used; the message names it."""


class NumericalError(DiptychError):
    """NaN or infinity, with the row or step where it was found."""


class MismatchError(DiptychError):
    """Two artefacts that do not belong together."""


class StorageError(DiptychError):
    """A write failed or a file does not hold what it should; what was there before is whole."""


class Interrupted(DiptychError):
    """Stopped on request at a safe point."""

    exit_code = 130
