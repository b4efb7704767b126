"""
Explaining one prediction
=========================

A score is a sum of kernels, so the contribution of each column can be computed, and the
contributions add up to the score. We explain the least certain prediction of a test set, by
columns and by similar training rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.displays import ContributionsDisplay
from discernel.inspection import contributions, explain_in_words, similar_rows

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
clf = MultipleKernelDiscriminant().fit(X_train, y_train)

probability = clf.predict_proba(X_test).max(axis=1)
row = X_test.iloc[[probability.argmin()]]
print(f"truth: {y_test.loc[row.index[0]]}, predicted with probability {probability.min():.2f}")
found = contributions(clf, row)
print(explain_in_words(found, n=3))
total = found.baseline + found.columns.sum()
print(f"all columns add up to the score, to {abs(total - clf.decision_function(row)).max():.0e}")

# %%
# Left: contributions that lead from the score of a typical row to that of this row; blue supports
# the predicted class. Right: the similar training rows with the most support for and against it.

sides = [similar_rows(clf, row, n=6, side=side) for side in ("for", "against")]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12, 6.5), width_ratios=[1.4, 1], layout="constrained"
)
ContributionsDisplay.from_estimator(clf, row, ax=left)
left.set_title("Contributions of columns")
predicted = clf.predict(row)[0]
labels, support = (
    np.hstack([getattr(each, name)[0] for each in sides]) for name in ("labels", "support")
)
colors = ["C0" if label == predicted else "C1" for label in labels]
right.bar(np.arange(1, 13), support, color=colors)
right.axhline(0, color="0.5", lw=0.8)
right.set(title="Similar training rows", xlabel="training row")
right.set_ylabel("contribution to the score")
for color, label in (("C0", f"{predicted}, as predicted"), ("C1", "the other class")):
    right.bar(1, 0, color=color, label=label)
right.legend(frameon=False, loc="upper right")
plt.show()

# %%
# **Takeaway:** a prediction is uncertain if columns contradict each other and the row resembles
# training rows of both classes.
