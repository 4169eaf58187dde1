"""Tables in text files, plain or gzipped, one row at a time; no line is without end."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines

# What may stand between fields, and how an option names it.
DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"}


def plain_column(name: str) -> str:
    """Return a column's name as it is compared: ``g:Image Link`` is ``image_link``."""
    return "_".join(name.strip().lower().removeprefix("g:").replace("_", " ").replace("-", " ").split())


class DelimitedTable:
    """Stream a table from a text file, plain or gzipped, UTF-8 with or without a byte order mark."""

    def __init__(
        self, file: Path, encoding: str = "utf-8", delimiter: str | None = None, quotes: bool = True
    ) -> None:
        self.file = file
        self._encoding, self._quotes = encoding, quotes
        header = next((line for _, line in read_lines(file, encoding, error=DataError) if line.strip()), None)
        if header is None:
            raise DataError(f"{file} is empty", "a header with the names of columns is expected")
        if delimiter is None:
            self._delimiter = max(DELIMITERS.values(), key=header.count)
        else:
            self._delimiter = DELIMITERS.get(delimiter, delimiter)
            if self._delimiter not in DELIMITERS.values():
                raise UsageError(f"delimiter is {delimiter!r}", f"one of {', '.join(DELIMITERS)}")
        named = next(self._records(), None)
        if named is None:
            raise DataError(f"{file} names no columns", "a header with the names of columns is expected")
        self.columns: tuple[str, ...] = tuple(name.strip() for name in named[1])

    def where(self, line: int) -> str:
        return f"{self.file.name}, line {line}"

    def places(self, known: Sequence[str]) -> list[int]:
        """The columns with one of these names, in the order of the names; a name may stand there several times."""
        plain = [plain_column(name) for name in self.columns]
        return [place for name in known for place, own in enumerate(plain) if own == plain_column(name)]

    def place(self, given: str | None, known: Sequence[str], what: str, option: str) -> int:
        """Return the column that was named, else the first of the known names that there is."""
        found = self.places([given] if given is not None else known)
        if found:
            return found[0]
        raise UsageError(
            f"{self.file} has no column of the {what}" + (f" {given!r}" if given is not None else ""),
            f"its columns: {', '.join(self.columns)}; name one with {option}",
        )

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line in which a row begins, and its fields, which may be more or fewer than there are columns."""
        records = self._records()
        next(records)
        yield from records

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        line = before = 0

        def lines() -> Iterator[str]:
            nonlocal line
            for number, text in read_lines(self.file, self._encoding, error=DataError):
                line = number
                yield f"{text}\n"

        reader = csv.reader(
            lines(),
            delimiter=self._delimiter,
            quoting=csv.QUOTE_MINIMAL if self._quotes else csv.QUOTE_NONE,
        )
        try:
            for fields in reader:
                begins, before = before + 1, line
                if any(field.strip() for field in fields):
                    yield begins, fields
        except csv.Error as error:
            raise DataError(
                f"{self.where(before + 1)}: the row is no table's: {error}",
                "a field that begins with a double quote goes on to the next one: correct it, or say that quotes are "
                "characters as any other with quotes=false",
            ) from None
