"""
A first fit
===========

One ``fit`` on the breast cancer data: 30 measurements of cell nuclei, in their original units. The
model reports which measurements matter and which accuracy to expect, before it sees a test row.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.displays import DiscriminantEmbeddingDisplay, ImportancesDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

clf = MultipleKernelDiscriminant().fit(X_train, y_train)
print("expected:", clf.expected_)
print(f"measured: accuracy {clf.score(X_test, y_test):.1%} on {len(y_test)} held-out rows")

# %%
# Left: importances with standard errors. Right: training and test rows along the discriminant
# direction.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ImportancesDisplay.from_estimator(clf, n_columns=10, ax=left)
left.set_title("Which measurements matter")
DiscriminantEmbeddingDisplay.from_estimator(
    clf, X_train, y_train, X_held_out=X_test, y_held_out=y_test, ax=right
)
right.set_title("How well the classes separate")
plt.show()

# %%
# **Takeaway:** many of the 30 measurements share the importance, and the test accuracy lies within
# the expected interval.
