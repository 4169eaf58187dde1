from __future__ import annotations

import pytest
from study_runs import SMALL, run_study

from diptych.studies import Choices, Claim, Column, Row, Setting, Study, published_table


@pytest.fixture(scope="session")
def small_study():
    """Two losses, and a third row that goes on from the first on fewer images; columns are table 1's recalls."""
    measure = {"kind": "retrieval", "measures": ["mAP@5"], "published": {"mAP@5": "mAP-hits@5"}}
    losses, fewer = {"vsepp-triplet": "Triplet", "vsepp-nt-xent": "NT-Xent"}, {"data.images": 24}
    return Study(
        name="made-up.table-1",
        asks="Does it run?",
        topic="whether it runs",
        rows=(
            *(
                Row(name, label, recipe="vsepp", options={"objective": {"name": label.lower()}})
                for name, label in losses.items()
            ),
            Row("onwards", "Onwards", options=fewer, recipe="vsepp", base="vsepp-triplet", extra="ours"),
        ),
        columns=tuple(Column(name) for name in ("i2t R@1", "t2i R@10", "i2t mAP@5", "rsum")),
        published=(published_table("metric-learning", "table-1"),),
        claims=(
            Claim("(1)", "Triplet beats NT-Xent", checks=("[vsepp-triplet: rsum] > [vsepp-nt-xent: rsum]",)),
            Claim("(2)", "VSRN is better", checks=("[vsrn-triplet: rsum] > [vsepp-triplet: rsum]",)),
        ),
        settings={"quick": Setting("made up", recipes={"vsepp": "quick-vsepp"}, seeds=(0, 1))},
        measure={**measure, "trajectory": True},
    )


@pytest.fixture(scope="session")
def choices(scenes_folder):
    return Choices(setting="quick", data={"path": str(scenes_folder)}, values=SMALL)


@pytest.fixture(scope="session")
def made(small_study, choices, tmp_path_factory):
    """Two rows of two seeds in a folder, their results, and what was logged."""
    folder, told = tmp_path_factory.mktemp("made") / "out", []
    some = {"rows": ["onwards", "1.1"], "seeds": [0, 1], "tell": told.append}
    return folder, run_study(small_study, folder, choices, command="diptych study run x", **some), told
