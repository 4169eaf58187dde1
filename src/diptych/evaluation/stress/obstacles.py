"""What stands against a stress run, found before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diptych.analysis.perturbations import Perturbation, TextPerturbation
from diptych.analysis.perturbations.declaration import options_of
from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.stress.asking import RSUM
from diptych.metrics import measure


def obstacle(
    perturbation: Perturbation,
    encoder: DualEncoder,
    collection: Collection,
    language: Language,
    compat: str = "none",
) -> UsageError | None:
    """What stands against a perturbation, with the way out; None where nothing does."""
    name = perturbation.name
    if not isinstance(perturbation, TextPerturbation):
        if encoder.takes != "pictures" or collection.holds != "pictures":
            return UsageError(
                f"{name}: the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
                "pictures are perturbed for an encoder of pictures",
            )
        return None
    if compat == "published" and perturbation.published is None:
        return UsageError(f"{name} has no published form", "leave compat out")
    needs = {"tags": language.need_tagger, "wordnet": language.need_wordnet}
    for what in sorted(perturbation.needs):
        try:
            needs[what](name)
        except UsageError as error:
            return error
    return None


def check_asked(
    perturbations: Sequence[Perturbation],
    seeds: Sequence[int],
    measures: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> None:
    """See that what is asked for can be."""
    if not perturbations:
        raise UsageError("no perturbation was asked for", "for example all, thesis, typos")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise UsageError(f"seeds are {list(seeds)}", "give one or more different numbers of at least 0")
    if not measures:
        raise UsageError("no measure was asked for", "for example rsum")
    for name in measures:
        if name != RSUM and getattr(measure(name), "kind", "sum") in ("rank", "sum"):
            raise UsageError(f"{name} is no mean of shares or gains per query", "see diptych info")
    by_name = {one.name: one for one in perturbations}
    for name, given in options.items():
        if name not in by_name:
            raise UnknownNameError("perturbation with options", name, by_name)
        options_of(by_name[name], given)


def possible_of(
    perturbations: Sequence[Perturbation],
    encoder: DualEncoder,
    collection: Collection,
    language: Language,
    compat: str,
    required: Iterable[str],
) -> tuple[list[Perturbation], dict[str, str]]:
    """What can be run, and why the others cannot."""
    possible, left_out, must = [], {}, set(required)
    for one in perturbations:
        error = obstacle(one, encoder, collection, language, compat)
        if error is None:
            possible.append(one)
        elif one.name in must:
            raise error
        else:
            left_out[one.name] = str(error)
    if not possible:
        first = next(iter(left_out.values()))
        raise UsageError(f"none of {len(left_out)} perturbations can be run: {first}", "")
    return possible, left_out
