"""
Data fusion: numbers, text and sequences
========================================

Information about a patient often comes from several sources: laboratory values, a note, a genetic
sequence. Some patients lack a source. ``join_views`` joins all sources into one table, and
``source_kernels`` selects kernels for each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant
from discernel.displays import SourcesDisplay
from discernel.kernels import NGram, Spectrum
from discernel.views import join_views, source_kernels, weights_spread

rng, n = np.random.default_rng(0), 240
ill = np.arange(n) % 2
lab = rng.normal(size=(n, 6)) + 0.6 * ill[:, None] * (np.arange(6) < 3)
lab[rng.random(n) < 0.15] = np.nan  # some patients have no laboratory values
calm, bad = ["no complaints", "feels well", "slept well"], ["chest pain", "feels weak", "dizzy"]
notes = [str(rng.choice(bad if rng.random() < 0.25 + 0.5 * i else calm)) for i in ill]
genes = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(n)]
for i in np.flatnonzero(rng.random(n) < 0.2 + 0.5 * ill):  # a motif, more frequent in ill patients
    genes[i] = genes[i][:12] + "GATTACA" + genes[i][19:]
noise = rng.normal(size=(n, 8))
sources = {"lab": lab, "notes": notes, "genes": genes, "noise": noise}
menu = {"lab": "auto", "notes": NGram(), "genes": Spectrum(4), "noise": "auto"}


def fused(names):
    views = join_views({name: sources[name] for name in names})
    kernels = source_kernels(views, {name: menu[name] for name in names})
    return MultipleKernelDiscriminant(kernels), views.table


def accuracy(names):
    clf, table = fused(names)
    return cross_val_score(clf, table, ill, cv=5).mean()


# %%
# Left: cross-validated accuracy of each source alone and of all. Right: weights of sources and
# kernels, with their spread over five fits.

bars = {name: accuracy([name]) for name in sources} | {"all four": accuracy(sources)}
clf, table = fused(sources)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
left.bar(list(bars), list(bars.values()), color=["C4"] * 4 + ["C0"])
left.axhline(0.5, color="black", lw=0.8, ls=":")
left.set(title="Accuracy by source", ylabel="accuracy", ylim=(0.4, 1))
SourcesDisplay.from_estimators(weights_spread(clf, table, ill).estimators, ax=right)
right.set_title("Weights of sources and kernels")
plt.show()

# %%
# **Takeaway:** the sources together are more accurate than each source alone, and rows with a
# missing source still contribute.
