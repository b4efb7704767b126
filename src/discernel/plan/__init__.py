"""Choice of the bank and the stages of a fit, with forecasts of time and memory."""

from discernel.plan.costs import Problem, Stage
from discernel.plan.plan import (
    FEW_ROWS,
    FIRST_STAGE_ROWS,
    LEARNED_ON,
    FitPlan,
    bank_of_folds,
    choose_bank,
    forecast_rest,
    parse_duration,
    plan_fit,
    plan_stage,
    plan_stages,
)

__all__ = [
    "FEW_ROWS",
    "FIRST_STAGE_ROWS",
    "LEARNED_ON",
    "FitPlan",
    "Problem",
    "Stage",
    "bank_of_folds",
    "choose_bank",
    "forecast_rest",
    "parse_duration",
    "plan_fit",
    "plan_stage",
    "plan_stages",
]
