"""Floor 6, the studies: the papers as data, and their tables next to your own numbers."""

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

# A module has the same name: importing that first would give it instead.
from diptych.studies.compare import compare as compare  # noqa: E402

if TYPE_CHECKING:
    from diptych.studies.claims import Claim as Claim
    from diptych.studies.claims import judge as judge
    from diptych.studies.compare import judged_in_the_paper as judged_in_the_paper
    from diptych.studies.evidence import Evidence as Evidence
    from diptych.studies.evidence import Figure as Figure
    from diptych.studies.evidence import Trajectory as Trajectory
    from diptych.studies.plan import Choices as Choices
    from diptych.studies.published import cell_verdict as cell_verdict
    from diptych.studies.published import published_papers as published_papers
    from diptych.studies.published import published_table as published_table
    from diptych.studies.results import Entry as Entry
    from diptych.studies.results import Measurement as Measurement
    from diptych.studies.results import Results as Results
    from diptych.studies.results import collect as collect
    from diptych.studies.runner import run_study as run_study
    from diptych.studies.sources import Subject as Subject
    from diptych.studies.study import STUDIES as STUDIES
    from diptych.studies.study import Column as Column
    from diptych.studies.study import Row as Row
    from diptych.studies.study import Setting as Setting
    from diptych.studies.study import Study as Study
