"""Which bank a fit is computed with, in which stages, and what they will take."""

from discernel.plan.costs import Problem, Stage
from discernel.plan.plan import (
    FEW_ROWS,
    FIRST_STAGE_ROWS,
    FitPlan,
    choose_bank,
    forecast_rest,
    needs_forecast,
    parse_duration,
    plan_stage,
    plan_stages,
)

__all__ = [
    "FEW_ROWS",
    "FIRST_STAGE_ROWS",
    "FitPlan",
    "Problem",
    "Stage",
    "choose_bank",
    "forecast_rest",
    "needs_forecast",
    "parse_duration",
    "plan_stage",
    "plan_stages",
]
