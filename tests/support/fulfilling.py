"""What conditions on metadata mean, written down a second time."""

from __future__ import annotations

import operator

from hypothesis import strategies as st

values = st.one_of(
    st.integers(0, 3), st.sampled_from(["red", "blue", "é"]), st.booleans(), st.sampled_from([0.5, 2.0])
)
fields = st.sampled_from(["a", "b", "b.c"])
ranges = st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), st.integers(0, 3), min_size=1)
entries = st.one_of(values, st.none(), st.lists(values, max_size=3))
records = st.dictionaries(
    st.sampled_from(["a", "b"]), st.one_of(entries, st.fixed_dictionaries({"c": entries}))
)
conditions = st.dictionaries(
    fields, st.one_of(values, st.lists(values, min_size=1, max_size=3), ranges), min_size=1
)


def entries_of(record, field):
    """The entries of a field, of which one has to fulfil the condition."""
    found = record
    for key in field.split("."):
        if not isinstance(found, dict) or key not in found:
            return []
        found = found[key]
    entries = found if isinstance(found, list) else [found]
    return [entry for entry in entries if entry is not None and not isinstance(entry, dict)]


def fulfils(value, wanted):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(wanted, list):
        return any(fulfils(value, one) for one in wanted)
    if isinstance(wanted, dict):
        said = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
        return is_number and all(said[name](value, bound) for name, bound in wanted.items())
    if isinstance(wanted, float):
        return is_number and value == wanted
    return type(value) is type(wanted) and value == wanted


def lets_through(record, where):
    return all(any(fulfils(one, wanted) for one in entries_of(record, f)) for f, wanted in where.items())
