"""
A rare class
============

One row in twenty belongs to the class of interest, so the most probable label is almost always the
other one. Class weights change what is learned; a threshold changes only the decision.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import precision_recall_curve, precision_score, recall_score
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant

X, y = make_classification(
    4000, 8, n_informative=4, weights=[0.95], flip_y=0.02, class_sep=0.9, random_state=3
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=800, stratify=y, random_state=0
)
ways = {
    "default": {},
    'class_weight="balanced"': {"class_weight": "balanced"},
    'threshold="roc"': {"threshold": "roc"},
    "threshold=0.2": {"threshold": 0.2},
}
fits = {
    name: MultipleKernelDiscriminant(**options).fit(X_train, y_train)
    for name, options in ways.items()
}

# %%
# Recall is the share of rare rows that are found, precision the share of alarms that are correct.

figure, axes = plt.subplots(figsize=(11, 4.6), layout="constrained")
plain = fits["default"].predict_proba(X_test)[:, 1]
precision, recall, _ = precision_recall_curve(y_test, plain)
axes.plot(recall, precision, color="lightgray", lw=3, label="all thresholds")
for (name, clf), marker in zip(fits.items(), "osD^", strict=True):
    found = clf.predict(X_test)
    at = recall_score(y_test, found), precision_score(y_test, found)
    axes.plot(*at, marker, ms=11, label=f"{name}: recall {at[0]:.0%}, precision {at[1]:.0%}")
axes.axhline(y_test.mean(), color="gray", ls=":", label="alarm for every row")
axes.set(title=f"{y_test.sum()} rare rows among {len(y_test):,}", xlabel="recall")
axes.set(ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()

# %%
# **Takeaway:** accuracy is misleading for a rare class. Decide what a missed row costs, and move
# the threshold accordingly.
