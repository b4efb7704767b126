"""
Calibrated probabilities
========================

Of all rows with a predicted probability of 0.8, eight in ten should belong to that class. The
probabilities of discernel are calibrated on held-out rows, so a kernel that fits its training rows
perfectly is not overconfident. We compare with a random forest, boosting and an SVC on 400 rows.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant

X, y = make_classification(
    6000, 12, n_informative=5, n_clusters_per_class=3, flip_y=0.1, class_sep=0.8, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
methods = {
    "discernel": MultipleKernelDiscriminant(),
    "random forest": RandomForestClassifier(500, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "SVC, Platt": CalibratedClassifierCV(SVC(), ensemble=False),
}
probabilities = {
    name: method.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    for name, method in methods.items()
}

# %%
# A calibrated method follows the diagonal. A steeper curve is underconfident, a flatter one
# overconfident. The log-loss is small for probabilities that are both calibrated and sharp.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), width_ratios=[1.4, 1], layout="constrained"
)
for name, values in probabilities.items():
    CalibrationDisplay.from_predictions(y_test, values, n_bins=10, name=name, ax=left)
left.set(title="Calibration on 5,600 test rows")
left.set(xlabel="predicted probability", ylabel="observed frequency")
left.legend(frameon=False)
losses = {name: log_loss(y_test, values) for name, values in probabilities.items()}
bars = right.bar(losses.keys(), losses.values(), color=["C0", "C1", "C2", "C3"])
right.bar_label(bars, fmt="%.3f")
right.margins(y=0.1)  # room for the labels
right.set(title="Log-loss (smaller is better)")
right.tick_params(axis="x", rotation=20)
plt.show()

# %%
# **Takeaway:** accuracy does not show how reliable probabilities are; compare the log-loss as
# well.
