"""From a combined kernel to directions, scores, probabilities and decisions."""

from discernel.discriminant.conformal import check_coverage, conformal_quantile
from discernel.discriminant.decision import Decision, class_factors
from discernel.discriminant.expectation import Expectation, held_out_log_posterior
from discernel.discriminant.fit import (
    HeldOutScores,
    Statistics,
    fit_discriminant,
    held_out_likelihoods,
    left_out_words,
    mix_links,
)
from discernel.discriminant.gaussian import (
    Discriminant,
    calibrated,
    discriminant_of_shares,
    left_out_log_likelihood,
    log_posteriors,
    posterior_losses,
    row_losses,
    within_reach,
)
from discernel.discriminant.head import ClassHead, Head
from discernel.discriminant.links import KernelLogistic, Link, Mixture
from discernel.discriminant.numbers import HeldOutNumbers, NumberExpectation, Spread

__all__ = [
    "ClassHead",
    "Decision",
    "Discriminant",
    "Expectation",
    "Head",
    "HeldOutNumbers",
    "HeldOutScores",
    "KernelLogistic",
    "Link",
    "Mixture",
    "NumberExpectation",
    "Spread",
    "Statistics",
    "calibrated",
    "check_coverage",
    "class_factors",
    "conformal_quantile",
    "discriminant_of_shares",
    "fit_discriminant",
    "held_out_likelihoods",
    "held_out_log_posterior",
    "left_out_log_likelihood",
    "left_out_words",
    "log_posteriors",
    "mix_links",
    "posterior_losses",
    "row_losses",
    "within_reach",
]
