"""
First fit and importances
=========================

One ``fit`` on the breast cancer data: 30 measurements of cell nuclei, in their own units. It says
which of them matter, and what accuracy to expect of new rows, before any new row is seen.
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
# The bars are shares of importance with their standard errors. Each dot is a row, along the one
# direction that tells the two classes apart.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ImportancesDisplay.from_estimator(clf, n_columns=10, ax=left)
left.set_title("Which measurements matter")
DiscriminantEmbeddingDisplay.from_estimator(
    clf, X_train, y_train, X_held_out=X_test, y_held_out=y_test, ax=right
)
right.set_title("How far apart the classes lie")
plt.show()

# %%
# **What one learns:** a few of the 30 measurements carry the decision, and the accuracy on
# held-out rows lies within the interval that was said before.
