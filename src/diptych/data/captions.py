"""What a caption must be before anything is done with it."""

from __future__ import annotations

from diptych.core.errors import CaptionError

MAX_CHARACTERS = 20_000
"""Longer texts are documents, not captions, and are refused."""


def checked_caption(text: str, name: str) -> str:
    """The caption without surrounding white space."""
    stripped = text.strip()
    if not any(character.isalnum() for character in stripped):
        raise CaptionError(
            f"{name} is empty: {text[:40]!r}",
            "correct it, or leave it out with --reader-option skip_bad_captions=true",
        )
    if len(stripped) > MAX_CHARACTERS:
        raise CaptionError(
            f"{name} has {len(stripped):,} characters, more than the {MAX_CHARACTERS:,} allowed",
            "shorten it, or leave it out with --reader-option skip_bad_captions=true",
        )
    try:
        stripped.encode()
    except UnicodeEncodeError:  # JSON can say half a character (a lone surrogate), no file can hold it
        raise CaptionError(
            f"{name} holds half a character: {stripped[:40]!r}",
            "correct it, or leave it out with --reader-option skip_bad_captions=true",
        ) from None
    return stripped
