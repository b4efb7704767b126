"""What a fit will take, before it is begun: memory, time, and which way of computing fits."""

from discernel.planning.forecast import FEW_ROWS, Forecast, Problem, parse_duration, plan_fit
from discernel.planning.speed import Speed, measure_speed

__all__ = [
    "FEW_ROWS",
    "Forecast",
    "Problem",
    "Speed",
    "measure_speed",
    "parse_duration",
    "plan_fit",
]
