from __future__ import annotations

import pytest

import diptych.index
from diptych.core.errors import UnknownNameError, UsageError
from diptych.index import ENGINES, Index, Option


def test_what_is_there_is_declared():
    assert {"exact", "hnsw"} <= set(ENGINES.names())
    for engine in ENGINES:
        assert engine.description
        assert issubclass(engine.index, Index)
        assert engine.index.engine() is engine
        for option in engine.options:
            assert option.meaning
            assert option.check(option.default) == option.default
    assert not ENGINES.get("exact").approximate
    assert ENGINES.get("hnsw").approximate
    with pytest.raises(UnknownNameError, match=r"unknown index engine 'hsnw' \(did you mean 'hnsw'"):
        ENGINES.get("hsnw")


def test_every_public_name_is_there():
    for name in diptych.index.__all__:
        assert hasattr(diptych.index, name)


def test_options_are_resolved_whole():
    hnsw = ENGINES.get("hnsw")
    assert hnsw.resolve({"m": 8}) == {"m": 8, "ef_construction": 100, "ef_search": 128, "threads": 1}
    stored = hnsw.resolve({"ef_search": 40})
    assert hnsw.resolve_search(stored, {}) == {"ef_search": 40}
    assert hnsw.resolve_search(stored, {"ef_search": 7}) == {"ef_search": 7}


def test_options_refused():
    hnsw = ENGINES.get("hnsw")
    with pytest.raises(UnknownNameError, match="unknown option of index engine hnsw 'ef_serach'"):
        hnsw.resolve({"ef_serach": 3})
    with pytest.raises(UnknownNameError, match="known: ef_search"):
        hnsw.resolve_search(hnsw.resolve({}), {"m": 3})
    with pytest.raises(UsageError, match="m=1 is below 2"):
        hnsw.resolve({"m": 1})
    with pytest.raises(UsageError, match="m='8' is not of type int"):
        hnsw.resolve({"m": "8"})
    with pytest.raises(UsageError, match="m=True is not of type int"):
        hnsw.resolve({"m": True})


def test_options_from_a_command_line():
    assert Option("m", 32, "links", minimum=2).parse("8") == 8
    assert Option("share", 0.5, "a share").parse("1") == 1.0
    assert Option("exactly", False, "a switch").parse("True") is True
    assert Option("where", "here", "a place").parse("there") == "there"
    with pytest.raises(UsageError, match="not of type int"):
        Option("m", 32, "links").parse("eight")
    with pytest.raises(UsageError, match="below 0"):
        Option("share", 0.5, "a share", minimum=0).parse("-1")
    with pytest.raises(UsageError, match="neither true nor false"):
        Option("exactly", False, "a switch").parse("1")
    with pytest.raises(UsageError, match="below 0"):
        Option("share", 0.5, "a share", minimum=0).parse("nan")
