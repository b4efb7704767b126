"""
Few labels, many rows
=====================

Labels are expensive, rows are cheap. ``SeparabilityClassifier`` uses all 300 rows, although only a
few are labelled; the others have the label −1, as in scikit-learn. All rows determine the shape of
the kernel, the labelled ones the directions that separate the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_circles
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from discernel import SeparabilityClassifier

circles = make_circles(300, noise=0.08, factor=0.5, random_state=0)
wine, grapes = load_wine(return_X_y=True)
data = {"circles": circles, "wine": (scale(wine), grapes)}


def draw(y, n, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.choice(np.flatnonzero(y == c), n, False) for c in np.unique(y)])


def answers(X, y, known):
    partly = np.full(len(y), -1)
    partly[known] = y[known]
    yield SeparabilityClassifier().fit(X, partly).transduction_
    yield KNeighborsClassifier(1).fit(X[known], y[known]).predict(X)


# %%
# Left and middle: one draw of eight labels per class; crosses mark errors. Right: mean accuracy
# over ten draws.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
(X, y), colors, methods = circles, np.array(["C0", "C1"]), ("separability", "nearest neighbour")
known = draw(y, 8, seed=4)
for panel, name, answer in zip(axes, methods, answers(X, y, known), strict=False):
    panel.scatter(*X.T, c=colors[answer], s=12)
    panel.scatter(*X[answer != y].T, c="black", marker="x", s=36)
    panel.scatter(*X[known].T, c=colors[y[known]], s=110, ec="black")
    panel.set(title=f"{name}: {(answer != y).sum()} errors", xticks=[], yticks=[])
counts = (2, 4, 8, 16)
for (name, (X, y)), color in zip(data.items(), ("C2", "C3"), strict=True):
    draws = [[draw(y, n, seed) for seed in range(10)] for n in counts]
    right = [[[np.mean(a == y) for a in answers(X, y, d)] for d in some] for some in draws]
    for values, method, style in zip(np.mean(right, axis=1).T, methods, ("o-", "o:"), strict=True):
        axes[2].plot(counts, values, style, color=color, label=f"{name}, {method}")
axes[2].set(title="Accuracy", xlabel="labels per class", xticks=counts)
axes[2].legend(frameon=False)
plt.show()

# %%
# **Takeaway:** unlabelled rows help if the classes have a shape, such as rings. For compact
# classes, as in wine, they change little.
