"""What a fit will take, before it is begun: memory, time, and which way of computing fits."""

from discernel.plan.device import FEW_ROWS_ON_DEVICE, measure_device, plan_on_device
from discernel.plan.forecast import (
    FEW_ROWS,
    PATIENCE,
    Forecast,
    Problem,
    parse_duration,
    plan_fit,
    similar_bank,
)
from discernel.plan.plan import FIRST_STAGE_ROWS, FitPlan, Stage, plan_stages
from discernel.plan.speed import Speed, measure_speed

__all__ = [
    "FEW_ROWS",
    "FEW_ROWS_ON_DEVICE",
    "FIRST_STAGE_ROWS",
    "PATIENCE",
    "FitPlan",
    "Forecast",
    "Problem",
    "Speed",
    "Stage",
    "measure_device",
    "measure_speed",
    "parse_duration",
    "plan_fit",
    "plan_on_device",
    "plan_stages",
    "similar_bank",
]
