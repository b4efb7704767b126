"""
Weights are not importances
===========================

A weight is the amount of a kernel in the combination. A source of pure noise can get a large
weight, because a kernel that separates all rows helps to fit the training rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import scale

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
X = np.hstack([scale(X[:, [5, 6, 8]]), scale(X[:, [9, 10]]), rng.normal(size=(len(y), 10))])
sources = {
    "phenols": RBF().on(slice(0, 3)),
    "colour": RBF().on(slice(3, 5)),
    "noise": RBF().on(slice(5, 15)),
}


def learner(names, lam):
    chosen = {name: sources[name] for name in names}
    return MultipleKernelDiscriminant(chosen, criterion="rkda", regularization=lam)


# %%
# Left: weights for three values of λ. Right: loss of cross-validated accuracy when a source is
# left out.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
places = np.arange(len(sources))
for i, lam in enumerate((0.1, 0.01, 0.001)):
    weights = learner(sources, lam).fit(X, y).kernel_weights_
    left.bar(places + 0.27 * (i - 1), weights, 0.25, label=f"λ = {lam:g}")
left.set(title="Weights", xticks=places, xticklabels=list(sources), ylabel="weight")
left.legend(frameon=False)
whole = cross_val_score(learner(sources, 0.01), X, y).mean()
lost = [
    whole - cross_val_score(learner([o for o in sources if o != name], 0.01), X, y).mean()
    for name in sources
]
right.bar(list(sources), np.multiply(100, lost), color="C1")
right.axhline(0, color="black", lw=0.8)
right.set(title="Accuracy lost without the source, λ = 0.01", ylabel="points")
plt.show()

# %%
# **Takeaway:** do not read weights as importances; leave the source out and compare.
