"""Floor 5, the studies: one file per paper, its tables as rows to train, its claims as checks."""

from diptych.studies.claims import Claim, Finding, Judgement, judge
from diptych.studies.compare import Comparison, compare, judged_in_the_paper
from diptych.studies.published import published_papers, published_table
from diptych.studies.results import Entry, Results, collect
from diptych.studies.rows import Choices, LogSource, recipe_of
from diptych.studies.runner import run_study
from diptych.studies.study import STUDIES, Column, Measurement, Row, Setting, Study, Subject
from diptych.studies.verdict import Evidence, Figure, Trajectory, cell_verdict

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
