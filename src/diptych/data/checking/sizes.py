"""Which of a dataset's forms a collection has, and where its splits differ from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diptych.data.checking.findings import Problem, SplitCheck
from diptych.data.known import Form, KnownDataset, Size

__all__ = ["Found", "held_against", "nearest_form", "size_problems"]

Found = Mapping[str, tuple[int, int]]
"""Images and captions of each split."""


def held_against(found: Found, form: Form | None) -> list[SplitCheck]:
    """Each split of ``found`` and of ``form``, one beside the other; the form's order first."""
    sizes: Mapping[str, Size] = {} if form is None else form.sizes
    checks = [_one(split, found.get(split), size) for split, size in sizes.items()]
    for split, (images, captions) in found.items():
        if split not in sizes:
            verdict = "not known" if form is None else "not expected"
            checks.append(SplitCheck(split, images, captions, None, {}, verdict))
    return checks


def _one(split: str, found: tuple[int, int] | None, size: Size) -> SplitCheck:
    if found is None:
        return SplitCheck(split, 0, 0, size.images, size.captions, "absent")
    images, captions = found
    meaning = size.captions.get(captions, "")
    if not meaning and captions == images:
        meaning = "one of each"
    fits = images == size.images and (meaning or not size.captions)
    verdict = "as expected" if fits else "differs"
    return SplitCheck(split, images, captions, size.images, size.captions, verdict, meaning)


def nearest_form(found: Found, forms: Sequence[Form]) -> Form | None:
    """The form with the most splits as expected and the fewest others; of equals, the first.

    None where there are no forms.
    """

    def distance(form: Form) -> tuple[int, int]:
        checks = held_against(found, form)
        right = sum(check.verdict == "as expected" for check in checks)
        images = sum(check.images == check.expected_images for check in checks)
        return right - len(checks), images

    return max(forms, key=distance, default=None)


def size_problems(
    splits: Sequence[SplitCheck], form: Form | None, known: KnownDataset | None
) -> list[Problem]:
    """What is wrong with the splits of a form that binds."""
    if form is None or known is None or not form.binding:
        return []
    problems = []
    for one in splits:
        if one.verdict == "absent":
            what = (
                f"split {one.split} is not there, {one.expected_images:,} images are expected ({form.name})"
            )
            problems.append(
                Problem(what, f"fetch it, or check what is there alone with --split {_any(splits)}")
            )
        elif one.verdict == "differs":
            captions = " or ".join(f"{n:,} ({what})" for n, what in one.expected_captions.items())
            expected = f"{one.expected_images:,} images" + (f" and {captions} captions" if captions else "")
            problems.append(
                Problem(
                    f"split {one.split}: {expected} expected ({form.name}), "
                    f"found {one.images:,} images and {one.captions:,} captions",
                    f"fetch the captions again; diptych data {known.name} lists the sizes in use",
                )
            )
        elif one.verdict == "not expected":
            what = f"split {one.split} with {one.images:,} images is in none of {form.name}"
            problems.append(Problem(what, f"diptych data {known.name} lists the splits in use"))
    return problems


def _any(splits: Sequence[SplitCheck]) -> str:
    return next((one.split for one in splits if one.images), "NAME")
