from __future__ import annotations

from pathlib import Path

import pytest
from study_runs import SMALL

from diptych.studies.claims import Claim, beats
from diptych.studies.published import published_table
from diptych.studies.retrieval import Retrieval
from diptych.studies.rows import Choices
from diptych.studies.study import Column, Row, Setting, Study


@pytest.fixture(scope="session")
def small_study() -> Study:
    """Two losses, and a third row that goes on from the first; columns are table 1's recalls."""
    quick = Setting("made up", {"model": "metric-learning.quick.vsepp.toml"}, seeds=(0, 1))
    return Study(
        name="made-up.table-1",
        asks="Does it run?",
        rows=(
            Row("vsepp-triplet", "Triplet", changes={"objective": {"name": "triplet"}}),
            Row("vsepp-nt-xent", "NT-Xent", changes={"objective": {"name": "nt-xent"}}),
            Row("onwards", "Onwards", base="vsepp-triplet", extra="not in the paper"),
        ),
        columns=(Column("i2t R@1"), Column("t2i R@10"), Column("i2t mAP@5", 2), Column("rsum")),
        published=(published_table("metric-learning", "table-1"),),
        claims=(
            Claim("(1)", "Triplet beats NT-Xent", beats("vsepp-triplet", "vsepp-nt-xent", "rsum"), "nowhere"),
            Claim("(2)", "VSRN is better", beats("vsrn-triplet", "vsepp-triplet", "rsum")),
        ),
        settings={"quick": quick},
        measure=Retrieval(measures=("mAP@5",), published={"mAP@5": "mAP-hits@5"}, trajectory=True),
    )


@pytest.fixture(scope="session")
def choices(scenes_folder: Path) -> Choices:
    return Choices(setting="quick", data={"path": str(scenes_folder)}, values=SMALL)
