"""How fast we are, in units of what others take for the same in the same run."""

from discernel.bench.cases import CASES, Case, Pair, chosen_cases
from discernel.bench.records import environment, make_record, read_record
from discernel.bench.results import Change, Measured, judge
from discernel.bench.run import run_case, run_cases

__all__ = [
    "CASES",
    "Case",
    "Change",
    "Measured",
    "Pair",
    "chosen_cases",
    "environment",
    "judge",
    "make_record",
    "read_record",
    "run_case",
    "run_cases",
]
