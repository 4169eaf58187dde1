"""Floor 5, the studies: one file per paper, its tables as rows to train, its claims as checks."""

from diptych.studies.claims import Claim, Finding, Judgement, judge
from diptych.studies.collect import collect
from diptych.studies.compare import compare, judged_in_the_paper
from diptych.studies.comparison import Comparison
from diptych.studies.evidence import Evidence, Figure, Trajectory
from diptych.studies.further import FurtherTable
from diptych.studies.log_source import LogSource
from diptych.studies.measurement import Measurement, Subject
from diptych.studies.published import published_papers, published_table
from diptych.studies.results import Entry, Results
from diptych.studies.rows import Choices, recipe_of
from diptych.studies.runner import run_study
from diptych.studies.study import STUDIES, Column, Row, Setting, Study
from diptych.studies.verdict import cell_verdict

__all__ = [
    "STUDIES",
    "Choices",
    "Claim",
    "Column",
    "Comparison",
    "Entry",
    "Evidence",
    "Figure",
    "Finding",
    "FurtherTable",
    "Judgement",
    "LogSource",
    "Measurement",
    "Results",
    "Row",
    "Setting",
    "Study",
    "Subject",
    "Trajectory",
    "cell_verdict",
    "collect",
    "compare",
    "judge",
    "judged_in_the_paper",
    "published_papers",
    "published_table",
    "recipe_of",
    "run_study",
]
