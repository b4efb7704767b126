"""A bank of one sum of kernels whose landmarks are drawn without labels."""

from discernel.bank import BlendBank
from discernel.kernels.features import draw_landmarks


def blend_of_rank(kernels, weights, X, rank, **options):
    """Return the bank of so many landmarks; n_samples or more makes all rows landmarks."""

    def draw(kernel):
        return draw_landmarks(X, rank, kernel)

    return BlendBank.of_landmarks(kernels, weights, X, draw, rank=rank, **options)
