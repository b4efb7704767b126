"""What the discriminant promises, by formulas written out."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from discernel import KernelDiscriminant
from discernel.discriminant import Decision, left_out_log_likelihood
from discernel.kernels import RBF
from discernel.targets import ClassTarget
from tests import reference


def unbalanced(n_classes, seed=0):
    sizes = [70, 20, 30, 15][:n_classes]
    return make_blobs(sizes, n_features=3, cluster_std=4.0, random_state=seed)


def fitted(X, y, **options):
    return KernelDiscriminant(RBF(width=6.0), regularization=0.05, **options).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_training_covariance_is_the_regularised_one_of_ye_2008_eq_23(n_classes):
    """(RᵀR + λAᵀKA)/m is the identity in discriminant coordinates; R alone is less."""
    X, y = unbalanced(n_classes)
    found = fitted(X, y, statistics="training").discriminant_
    K = reference.trace_normalized(RBF(width=6.0)(X)[None])[0]
    F, A = found.training_scores, found.dual_coef
    R = F - np.array([F[y == label].mean(axis=0) for label in range(n_classes)])[y]
    covariance = (R.T @ R + 0.05 * A.T @ K @ A) / len(y)
    seen = found.scalings.T @ covariance @ found.scalings
    np.testing.assert_allclose(seen, np.eye(len(seen)), atol=1e-6)


@pytest.mark.parametrize("statistics", ["loo", "training"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_last_class_is_on_the_positive_side_of_every_coordinate(n_classes, statistics):
    for seed in range(4):
        X, y = unbalanced(n_classes, seed)
        found = fitted(X, y, statistics=statistics).discriminant_
        assert (found.means[-1] >= 0).all()
        scores = found.coordinates(found.training_scores)[y == n_classes - 1].mean(axis=0)
        assert (scores >= -1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_sharpness_has_the_least_left_out_log_loss_with_the_shares_as_priors(seed):
    X, y = unbalanced(3, seed)
    found = fitted(X, y).discriminant_
    shares = np.bincount(y) / len(y)

    def loss(factor):
        likelihood = left_out_log_likelihood(
            found, found.training
        )  # each row by the classes without it
        posterior = factor * found.sharpness * likelihood + np.log(shares)
        posterior -= np.logaddexp.reduce(posterior, axis=1, keepdims=True)
        own, doubt = posterior[np.arange(len(y)), y], 1.0 / (len(y) + 2)
        return -((1.0 - doubt) * own + doubt * posterior[np.arange(len(y)), others]).mean()

    # Of one row in n + 2 it is the likeliest other class that is right, before the factor.
    others = left_out_log_likelihood(found, found.training) + np.log(shares)
    others[np.arange(len(y)), y] = -np.inf
    others = others.argmax(axis=1)

    assert loss(1.0) <= min(loss(0.97), loss(1.03))


@pytest.mark.parametrize("seed", range(6))
def test_the_roc_threshold_counts_rates_and_not_rows(seed):
    """True less false positive rate of all thresholds between training scores; 70 rows to 20."""
    X, y = unbalanced(2, seed)
    target, found = ClassTarget.from_labels(y), fitted(X, y).discriminant_
    decision = Decision.make(target, priors=None, class_costs=None, threshold="roc")
    threshold = decision.choose_threshold(found)
    posterior = found.log_posterior(found.training_scores, decision.priors)
    probability = 1.0 / (1.0 + np.exp(posterior[:, 0] - posterior[:, 1]))
    values = np.unique(probability)
    middles = (values[1:] + values[:-1]) / 2.0

    def youden(t):
        return np.mean(probability[y == 1] > t) - np.mean(probability[y == 0] > t)

    assert youden(threshold) == pytest.approx(max(map(youden, middles)))
