"""
Three data sources
==================

Three sources describe the same handwritten digits: the top half, the bottom half, and the amount
of ink in each row and column. Each source has its own kernel, and the fit combines them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

pixels, y = load_digits(return_X_y=True)
images = pixels.reshape(-1, 8, 8)
ink = np.hstack([images.sum(axis=1), images.sum(axis=2)])
X = np.hstack([pixels, ink])  # the first 32 pixels are the top half
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=200, random_state=0)

columns = {"top": slice(0, 32), "bottom": slice(32, 64), "ink": slice(64, 80)}
sources = {name: RBF().on(where) for name, where in columns.items()}


def accuracy(names):
    clf = MultipleKernelDiscriminant({name: sources[name] for name in names})
    return clf.fit(X_train, y_train).score(X_test, y_test)


alone = {name: accuracy([name]) for name in sources}
without = {name: accuracy([other for other in sources if other != name]) for name in sources}
clf = MultipleKernelDiscriminant(sources).fit(X_train, y_train)
together = clf.score(X_test, y_test)

# %%
# Left: accuracy of each source alone, of all but one, and of all. Right: the learned weights.
# There are 200 training rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
bars = [*(f"{name} alone" for name in alone), *(f"without {name}" for name in without), "all"]
values = [*alone.values(), *without.values(), together]
left.scatter(values, bars, s=90, color=["C4"] * 3 + ["C0"] * 3 + ["C1"])
left.grid(axis="y", alpha=0.4)
left.set(xlim=(0.8, 1), xticks=[0.8, 0.9, 1], xlabel=f"accuracy on {len(y_test)} held-out rows")
left.set_title("Accuracy by source")
left.invert_yaxis()
right.bar(clf.kernel_names_, clf.kernel_weights_)
right.set(title="Kernel weights", ylabel="weight")
plt.show()

# %%
# **Takeaway:** sources complement each other. The two halves together contain the information in
# the ink: leaving the ink out costs almost nothing, although it is the best single source and has
# the weight shown.
