"""What a fit will take, before it is begun: memory, time, and which way of computing fits."""

from discernel.planning.costs import Cost, Work, work_of
from discernel.planning.forecast import Forecast, Problem, parse_duration, plan_fit
from discernel.planning.speed import Speed, measure_speed

__all__ = [
    "Cost",
    "Forecast",
    "Problem",
    "Speed",
    "Work",
    "measure_speed",
    "parse_duration",
    "plan_fit",
    "work_of",
]
