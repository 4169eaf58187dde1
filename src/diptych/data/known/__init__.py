"""Published datasets: where they are, under which licence, how they are laid out, how large they are."""

from diptych.data.known.declaration import KNOWN, Form, KnownDataset, Reading, Size, centric_of, known_by_name

__all__ = ["KNOWN", "Form", "KnownDataset", "Reading", "Size", "centric_of", "known_by_name"]
