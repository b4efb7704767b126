"""
Several labels for each row
===========================

A digit can be even, have a closed loop and be greater than four at the same time.
``MultiLabelKernelDiscriminant`` learns one kernel for all three labels, and separate probabilities
for each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from discernel import MultiLabelKernelDiscriminant

X, digit = load_digits(return_X_y=True)
labels = {"even": digit % 2 == 0, "loop": np.isin(digit, [0, 6, 8, 9]), "above 4": digit > 4}
Y = np.column_stack(list(labels.values())).astype(int)
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, train_size=300, random_state=1)

clf = MultiLabelKernelDiscriminant().fit(X_train, Y_train)
right = (clf.predict(X_test) == Y_test).mean(axis=0)
for name, share in zip(labels, right, strict=True):
    print(f"{name:8} accuracy {share:.1%} on {len(Y_test):,} held-out digits")

# %%
# Six held-out digits: the three most certain and the three least certain predictions.

probabilities = clf.predict_proba(X_test)
doubt = np.abs(probabilities - 0.5).min(axis=1).argsort()
figure, axes = plt.subplots(2, 6, figsize=(11, 4), height_ratios=[1.5, 1], layout="constrained")
for (top, bottom), row in zip(axes.T, [*doubt[-3:], *doubt[:3]], strict=True):
    top.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    top.axis("off")
    colors = ["C0" if truth else "C4" for truth in Y_test[row]]
    bottom.bar(list(labels), probabilities[row], color=colors)
    bottom.axhline(0.5, color="black", lw=0.7, ls=":")
    bottom.set(ylim=(0, 1), yticks=[0, 1])
    bottom.tick_params(axis="x", labelsize=8)
axes[1, 0].set_ylabel("probability")
figure.suptitle("Certain (left) and uncertain (right); blue: the label is true, grey: it is not")
plt.show()

# %%
# **Takeaway:** one fit predicts several labels, and it is uncertain where a person would be
# uncertain too.
