"""Sessions and their statistics by polars and by pandas, as somebody who knows them would write it.

Both read the canonical files of a log, whose events lie in the order of client, time and event; both use that
order, so that neither sorts ten million rows. What they give is checked against ours before anything is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["by_pandas", "by_polars"]

GAP = 1_800_000_000
PAGES, ENOUGH = 10, 12
READ = [
    *("event_id", "client_id", "visitor_id", "t_us", "local_day", "local_hour", "local_dow"),
    *("device", "channel", "action", "page_type", "query", "is_purchase"),
]

Found = dict[str, Any]


def by_polars(files: Sequence[Path]) -> Found:
    """Sessions, first pages, queries and all statistics, with polars' lazy frames."""
    import polars as pl

    action = pl.col("action")
    events = (
        pl.scan_parquet([str(file) for file in files])
        .select(READ)
        .with_columns(
            is_page=(action == "page").cast(pl.Int64),
            new=(pl.col("client_id") != pl.col("client_id").shift(1)).fill_null(True)
            | ((pl.col("t_us") - pl.col("t_us").shift(1)) > GAP).fill_null(True),
        )
        .with_columns(session=pl.col("new").cum_sum(), before=pl.col("is_page").cum_sum() - pl.col("is_page"))
        .collect()
    )
    first = pl.col("before").first()
    sessions = (
        events.lazy()
        .group_by("session", maintain_order=True)
        .agg(
            session_id=pl.col("event_id").first(),
            visitor_id=pl.col("visitor_id").drop_nulls().first(),
            n_visitors=pl.col("visitor_id").drop_nulls().n_unique(),
            start_us=pl.col("t_us").first(),
            end_us=pl.col("t_us").last(),
            hour=pl.col("local_hour").first(),
            dow=pl.col("local_dow").first(),
            device=pl.col("device").first(),
            channel=pl.col("channel").first(),
            n_events=pl.len(),
            length=action.is_in(["page", "query", "add", "remove"]).sum(),
            n_pages=pl.col("is_page").sum(),
            n_queries=(action == "query").sum(),
            purchase=pl.col("is_purchase").any(),
            pages_before_purchase=pl.col("before").filter(pl.col("is_purchase")).first() - first,
            pages_before_identified=pl.col("before").filter(pl.col("visitor_id").is_not_null()).first()
            - first,
            begun=first,
        )
        .collect()
    )
    keyed = sessions.lazy().select("session", "session_id", "device", "purchase", "n_pages", "begun")
    pages = (
        events.lazy()
        .filter(action == "page")
        .join(keyed.filter(pl.col("n_pages") >= ENOUGH), on="session")
        .with_columns(position=pl.col("before") - pl.col("begun") + 1)
        .filter(pl.col("position") <= PAGES)
        .select("session_id", "position", "t_us", "page_type")
        .collect()
    )
    queries = (
        events.lazy()
        .filter(action == "query")
        .select(
            "session", query=pl.col("query").str.to_lowercase().str.strip_chars().str.replace_all(r"\s+", " ")
        )
        .join(keyed, on="session")
        .collect()
    )
    del events
    known = sessions.lazy().filter(pl.col("visitor_id").is_not_null())
    of = sessions.lazy()
    visits = known.sort("visitor_id", "start_us", "session_id").with_columns(
        previous=pl.col("device").shift(1).over("visitor_id")
    )
    per_visitor = known.group_by("visitor_id").agg(
        devices=pl.col("device").n_unique(), purchaser=pl.col("purchase").any()
    )
    lazy = {
        "lengths": of.group_by("device", "purchase", "length").len(),
        "week days": of.group_by("purchase", "dow").len(),
        "hours": of.group_by("purchase", "hour").len(),
        "channels": of.group_by("channel").agg(pl.len(), pl.col("purchase").sum()),
        "devices": of.group_by("device").agg(pl.len(), pl.col("purchase").sum()),
        "per visitor": per_visitor.group_by("purchaser", "devices").len(),
        "transitions": visits.filter(pl.col("purchase") & pl.col("previous").is_not_null())
        .group_by("previous", "device")
        .len(),
        "queries": of.group_by("purchase", "device").agg(
            pl.len(), pl.col("n_queries").sum(), squares=(pl.col("n_queries") ** 2).sum()
        ),
        "unique queries": queries.lazy().group_by("purchase", "device").agg(pl.col("query").n_unique()),
        "unique in class": queries.lazy().group_by("purchase").agg(pl.col("query").n_unique()),
    }
    found = dict(zip(lazy, pl.collect_all(list(lazy.values())), strict=True))
    return {
        "sessions": len(sessions),
        "purchases": int(sessions["purchase"].sum()),
        "length": int(sessions["length"].sum()),
        "pages": len(pages),
        "queries": len(queries),
        "distinct queries": queries["query"].n_unique(),
        "transitions": int(found["transitions"]["len"].sum()),
        "visitors": int(found["per visitor"]["len"].sum()),
    }


def by_pandas(files: Sequence[Path]) -> Found:
    """The same with pandas, its texts as categories and its columns as NumPy arrays where that is faster."""
    import numpy as np
    import pandas as pd
    import pyarrow.parquet as pq

    words = ["client_id", "visitor_id", "device", "channel", "action", "page_type"]
    table = pq.ParquetDataset([str(file) for file in files], partitioning=None).read(READ)
    for name in words:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].dictionary_encode().unify_dictionaries())
    events = table.to_pandas(self_destruct=True)
    del table
    time = events["t_us"].to_numpy()
    client = events["client_id"].cat.codes.to_numpy()
    new = np.r_[True, (client[1:] != client[:-1]) | (np.diff(time) > GAP)] if len(time) else np.zeros(0, bool)
    session = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    action = events["action"]
    is_page = (action == "page").to_numpy()
    before = np.cumsum(is_page) - is_page
    sums = {
        "n_pages": is_page,
        "n_queries": (action == "query").to_numpy(),
        "length": action.isin(["page", "query", "add", "remove"]).to_numpy(),
        "purchase": events["is_purchase"].to_numpy(),
    }
    sessions = pd.DataFrame(
        {name: np.add.reduceat(values.astype(np.int64), starts) for name, values in sums.items()}
    )
    sessions["purchase"] = sessions["purchase"] > 0
    for name in ("event_id", "t_us", "local_hour", "local_dow"):
        sessions[name] = events[name].to_numpy()[starts]
    for name in ("device", "channel"):
        sessions[name] = events[name].array[starts]
    sessions["end_us"] = time[np.r_[starts[1:], len(time)] - 1]
    sessions["n_events"] = np.diff(np.r_[starts, len(time)])
    for name, flag in (
        ("purchase", sums["purchase"]),
        ("identified", events["visitor_id"].notna().to_numpy()),
    ):
        rows = np.flatnonzero(flag)
        of, where = np.unique(session[rows], return_index=True)
        sessions.loc[of, f"pages_before_{name}"] = before[rows[where]] - before[starts[of]]
        if name == "identified":
            sessions["visitor"] = -1
            sessions.loc[of, "visitor"] = events["visitor_id"].cat.codes.to_numpy()[rows[where]]
    seen = pd.DataFrame({"session": session, "visitor": events["visitor_id"].cat.codes.to_numpy()})
    sessions["n_visitors"] = seen[seen["visitor"] >= 0].drop_duplicates().groupby("session").size()
    position = before - before[starts][session] + 1
    chosen = is_page & (sessions["n_pages"].to_numpy()[session] >= ENOUGH) & (position <= PAGES)
    pages = pd.DataFrame(
        {
            "session_id": sessions["event_id"].to_numpy()[session[chosen]],
            "position": position[chosen],
            "t_us": time[chosen],
            "page_type": events["page_type"].array[chosen],
        }
    )
    asked = np.flatnonzero(sums["n_queries"])
    text = events["query"].iloc[asked].str.lower().str.strip().str.replace(r"\s+", " ", regex=True)
    queries = pd.DataFrame(
        {
            "query": text.to_numpy(),
            "device": sessions["device"].array[session[asked]],
            "purchase": sessions["purchase"].to_numpy()[session[asked]],
        }
    )
    del events
    known = sessions[sessions["visitor"] >= 0].sort_values(["visitor", "t_us", "event_id"])
    previous = known.groupby("visitor")["device"].shift(1)
    bought = known["purchase"] & previous.notna()
    transitions = pd.crosstab(previous[bought], known["device"][bought])
    per_visitor = known.groupby("visitor").agg(devices=("device", "nunique"), purchaser=("purchase", "any"))
    for keys in (["device", "purchase", "length"], ["purchase", "local_dow"], ["purchase", "local_hour"]):
        sessions.groupby(keys, observed=True).size()
    for key in ("channel", "device"):
        sessions.groupby(key, observed=True)["purchase"].agg(["size", "sum"])
    per_visitor.groupby(["purchaser", "devices"]).size()
    squares = sessions.assign(squares=sessions["n_queries"] ** 2)
    squares.groupby(["purchase", "device"], observed=True)[["n_queries", "squares"]].sum()
    queries.groupby(["purchase", "device"], observed=True)["query"].nunique()
    queries.groupby("purchase")["query"].nunique()
    return {
        "sessions": len(sessions),
        "purchases": int(sessions["purchase"].sum()),
        "length": int(sessions["length"].sum()),
        "pages": len(pages),
        "queries": len(queries),
        "distinct queries": int(queries["query"].nunique()),
        "transitions": int(transitions.to_numpy().sum()),
        "visitors": len(per_visitor),
    }
