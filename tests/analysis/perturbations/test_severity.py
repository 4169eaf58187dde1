from __future__ import annotations

import json
from typing import cast

import pytest

from diptych.analysis.perturbations import PERTURBATIONS, Perturbation, choose_perturbations
from diptych.analysis.perturbations.declaration import DEFAULT_SEVERITY, SeverityOptions, options_of
from diptych.core.errors import UsageError

PICTURES = choose_perturbations(["pictures"])


def kind_of(perturbation: Perturbation) -> type[SeverityOptions]:
    return cast("type[SeverityOptions]", perturbation.options)


@pytest.mark.parametrize("perturbation", PICTURES, ids=lambda one: one.name)
def test_a_severity_and_its_amount_say_the_same(perturbation: Perturbation) -> None:
    kind = kind_of(perturbation)
    assert len(set(kind.amounts)) == 5
    assert kind.amounts in (tuple(sorted(kind.amounts)), tuple(sorted(kind.amounts, reverse=True)))
    assert kind() == kind(severity=None) == kind(severity=DEFAULT_SEVERITY)
    for severity, amount in enumerate(kind.amounts, 1):
        said = {"severity": severity, kind.amount: amount}
        for given in ({"severity": severity}, {kind.amount: amount}, said):
            options = kind(**given)
            assert {key: getattr(options, key) for key in said} == said
            # What was run can be run again from its description.
            assert kind.model_validate(json.loads(options.model_dump_json())) == options


def test_an_amount_of_its_own_has_no_severity() -> None:
    blur = PERTURBATIONS.get("blur")
    options = options_of(blur, {"sigma": 0.5})
    assert options.model_dump() == {"severity": None, "sigma": 0.5}
    assert options_of(blur, options.model_dump()) == options


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("blur", {"severity": 0}, "blur: option 'severity': Input should be greater than or equal to 1"),
        ("blur", {"severity": 6}, "option 'severity': Input should be less than or equal to 5"),
        ("blur", {"severity": "4"}, "option 'severity': Input should be a valid integer"),
        ("blur", {"severity": True}, "option 'severity': Input should be a valid integer"),
        ("blur", {"severity": 3, "sigma": 0.5}, "blur: severity 3 and sigma 0.5 are two amounts: give one"),
        ("blur", {"sigma": 0}, "option 'sigma': Input should be greater than 0"),
        ("blur", {"sigma": float("nan")}, "option 'sigma'"),
        ("blur", {"radius": 1}, "option 'radius': Extra inputs"),
        ("jpeg", {"quality": 96}, "option 'quality': Input should be less than or equal to 95"),
        ("crop", {"keep": 1.5}, "option 'keep'"),
        ("brightness", {"factor": 1}, "option 'factor': Input should be greater than 1"),
        ("occlusion", {"colour": "red"}, "option 'colour': Input should be 'mean' or 'grey'"),
        ("digit-overlay", {"size": 0.2}, "option 'size'"),
    ],
)
def test_what_cannot_be_is_refused(name: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        options_of(PERTURBATIONS.get(name), given)
    assert "severity" in caught.value.fix
