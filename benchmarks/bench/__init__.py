"""How fast we are, in units of what others take for the same in the same run."""

from bench.cases import CASES, Case, Pair, chosen_cases
from bench.records import environment, make_record, read_record
from bench.results import Change, Measured, judge
from bench.run import run_case, run_cases

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
