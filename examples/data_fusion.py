"""
Numbers, a sequence and a text: three data sources in one model
===============================================================

Is a strain of bacteria resistant to a drug? Three sources describe each sample: lab values, a
promoter sequence and a clinical note. Each source alone has an accuracy of about 0.7, all together
about 0.9, although some samples lack a source.

Run ``python examples/data_fusion.py`` after ``pip install '.[app]'``.
"""  # noqa: D205, D400 (a title for the gallery)

# %%
# The data
# --------
# A strain is resistant if at least two of three conditions hold: its pumps are active, as the lab
# values show; its promoter contains the box TTGACA; the patient was treated before, as the note
# says. One sample in five has no sequence, one in ten no note.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant
from discernel.displays import SourcesDisplay
from discernel.views import join_views, source_kernels, source_weights, weights_spread

rng = np.random.default_rng(0)
n = 300
pumps, promoter, treated = rng.random((3, n)) < 0.5
resists = np.where(pumps.astype(int) + promoter + treated >= 2, "resists", "yields")

lab = rng.normal(size=(n, 4))
lab[:, :2] += 2.5 * pumps[:, None]


def sequence(has_box):
    letters = "".join(rng.choice(list("ACGT"), 40))
    at = rng.integers(34)
    return letters[:at] + ("TTGACA" if has_box else "GCATCG") + letters[at + 6 :]


def note(was_treated):
    drug = rng.choice(["amoxicillin", "Amoxicilin", "penicillin", "antibiotics"])
    before = ["had {} last month", "{} in March, no effect", "came with a course of {}"]
    never = ["never had {}", "no {} so far", "has not taken {} before"]
    who = rng.choice(["patient", "Pt.", "68 y, diabetic,", "from the coast,"])
    return f"{who} {rng.choice(before if was_treated else never).format(drug)}"


sequences = np.array([sequence(box) for box in promoter], dtype=object)
notes = np.array([note(was) for was in treated], dtype=object)
sequences[rng.random(n) < 0.2] = None
notes[rng.random(n) < 0.1] = None
print(lab[0].round(1), sequences[0], notes[0], resists[0], sep="\n")

# %%
# One table, kernels for each source
# ----------------------------------
# ``join_views`` joins the sources into one table, which cross-validation can split.
# ``source_kernels`` selects kernels by content: Gaussian and linear kernels for numbers, k-mers for
# sequences, character n-grams for text. A sample without a sequence is not influenced by that
# source.

views = join_views({"lab": lab, "sequence": sequences, "note": notes})
kernels = source_kernels(views)
for name in kernels:
    print(name)

# %%
# Accuracy of each source, and of all
# -----------------------------------

choices = {
    source: {name: kernel for name, kernel in kernels.items() if name.startswith(f"{source}: ")}
    for source in views.columns
}
for source, own in {**choices, "all three": kernels}.items():
    scores = cross_val_score(MultipleKernelDiscriminant(own), views.table, resists, cv=5)
    print(f"{source:<10} {scores.mean():.2f} ± {scores.std():.2f}")

# %%
# Weights of the sources
# ----------------------
# The weight of a source is the sum of the weights of its kernels. Five fits, each without one fifth
# of the samples, show how much the weights vary. Weights are not importances: to judge a source,
# compare the accuracies above.

clf = MultipleKernelDiscriminant(kernels).fit(views.table, resists)
print({source: round(weight, 2) for source, weight in source_weights(clf).items()})
spread = weights_spread(clf, views.table, resists, cv=5)
print(spread)
SourcesDisplay.from_estimators(spread.estimators)
plt.show()

# %%
# A new sample
# ------------
# Join new samples in the same way. This one has no sequence.

new = join_views(
    {"lab": [[2.9, 2.2, 0.1, -0.4]], "sequence": [None], "note": ["Pt. had penicilin in May"]}
)
for label, chance in zip(clf.classes_, clf.predict_proba(new.table)[0], strict=True):
    print(f"{label} {chance:.2f}")
