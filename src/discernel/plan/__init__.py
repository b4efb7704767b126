"""Which bank a fit is computed with, in which stages, and what they will take."""

from discernel.plan.costs import PATIENCE, Problem, Stage, forecast
from discernel.plan.plan import (
    FEW_ROWS,
    FEW_ROWS_ON_DEVICE,
    FIRST_STAGE_ROWS,
    FitPlan,
    choose_bank,
    forecast_rest,
    parse_duration,
    plan_stage,
    plan_stages,
)
from discernel.plan.speed import Speed, measure_device, measure_speed

__all__ = [
    "FEW_ROWS",
    "FEW_ROWS_ON_DEVICE",
    "FIRST_STAGE_ROWS",
    "PATIENCE",
    "FitPlan",
    "Problem",
    "Speed",
    "Stage",
    "choose_bank",
    "forecast",
    "forecast_rest",
    "measure_device",
    "measure_speed",
    "parse_duration",
    "plan_stage",
    "plan_stages",
]
