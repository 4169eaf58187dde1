from __future__ import annotations

from dataclasses import dataclass

import pytest

from diptych.core.errors import UnknownNameError
from diptych.core.registry import Registry


@dataclass(frozen=True)
class Thing:
    name: str
    description: str = "a thing"


def test_unknown_name_lists_the_known_and_the_nearest() -> None:
    registry: Registry[Thing] = Registry("thing", "diptych.core")
    registry.add(Thing("recall"))
    registry.add(Thing("precision"))
    with pytest.raises(UnknownNameError) as caught:
        registry.get("recal")
    assert caught.value.message == "unknown thing 'recal'"
    assert caught.value.fix == "did you mean 'recall'? known: precision, recall"
    assert caught.value.exit_code == 2


def test_every_registry_describes_its_members() -> None:
    from diptych.data.readers import READERS
    from diptych.encoders.family import FAMILIES
    from diptych.index import ENGINES
    from diptych.metrics.measures import MEASURES
    from diptych.objectives import OBJECTIVES

    for registry in (READERS, FAMILIES, OBJECTIVES, ENGINES, MEASURES):
        assert registry.names()
        for member in registry:
            assert len(member.description) > 10, member.name
