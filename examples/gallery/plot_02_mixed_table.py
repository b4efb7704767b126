"""
A table with categories and missing cells
=========================================

A DataFrame with numbers, categories, booleans and missing cells goes into ``fit`` as it is. The
table is simulated, so we know which columns determine the outcome: age, ward and dose.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.displays import ImportancesDisplay

rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "age": rng.normal(55, 12, n).round(),
        "ward": rng.choice(["north", "east", "west"], n),
        "dose": rng.lognormal(1, 0.5, n),
        "smoker": rng.random(n) < 0.3,
        "blood group": rng.choice(["A", "B", "AB", "0"], n),
        "height": rng.normal(172, 9, n),
    }
)
risk = (table["age"] - 55) / 12 + 1.5 * (table["ward"] == "west") - 0.8 * table["dose"] + 1.7
ill = rng.random(n) < 1 / (1 + np.exp(-2.5 * risk))
for column in ("age", "ward", "dose"):  # one cell in eight is missing
    table.loc[rng.random(n) < 0.125, column] = None
print(table.head(3))

X_train, X_test, y_train, y_test = train_test_split(table, ill, random_state=0)
clf = MultipleKernelDiscriminant().fit(X_train, y_train)
print("expected:", clf.expected_)
print(f"measured: accuracy {clf.score(X_test, y_test):.1%}")

# %%
# Importances refer to the columns of the table, not to their encoding.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
ImportancesDisplay.from_estimator(clf, ax=left)
left.set_title("Which columns matter")
probability = clf.predict_proba(X_test)[:, 1]
for answer, words in ((True, "ill"), (False, "well")):
    right.hist(probability[y_test == answer], bins=np.linspace(0, 1, 21), alpha=0.6, label=words)
right.set(title="Held-out rows", xlabel="predicted probability of being ill", ylabel="rows")
right.legend(frameon=False)
plt.show()

# %%
# **Takeaway:** the model finds the three columns that determine the outcome, although one in eight
# of their cells is missing. The other three columns get almost no importance.
