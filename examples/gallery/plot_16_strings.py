"""
Your own kernel on strings
==========================

Any function that returns similarities of two lists of objects can be a kernel. Here: sequences of
DNA, one class with a motif. Each kernel counts the words of k letters that two sequences share.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.kernels import Function

rng, n, length = np.random.default_rng(0), 400, 40
y = np.arange(n) % 2
sequences = np.array(["".join(rng.choice(list("ACGT"), length)) for _ in range(n)], dtype=object)
for i in np.flatnonzero(y):  # TATAAA, with one letter changed in half of the cases
    motif, start = list("TATAAA"), rng.integers(length - 6)
    if rng.random() < 0.5:
        motif[rng.integers(6)] = rng.choice(list("ACGT"))
    sequences[i] = sequences[i][:start] + "".join(motif) + sequences[i][start + 6 :]


def words(k):
    count = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False)
    count.fit(["".join(letters) for letters in product("ACGT", repeat=k)])

    def similarity(A, B):
        return (count.transform(A) @ count.transform(B).T).toarray()

    return Function(similarity)


kernels = {f"words of {k}": words(k) for k in (1, 2, 3, 4, 5)}
X_train, X_test, y_train, y_test = train_test_split(sequences, y, train_size=200, random_state=0)
clf = MultipleKernelDiscriminant(kernels)
models = [*(MultipleKernelDiscriminant([kernel]) for kernel in kernels.values()), clf]
scores = [model.fit(X_train, y_train).score(X_test, y_test) for model in models]

# %%
# Left: accuracy of each kernel alone and of the learned combination. Right: held-out sequences.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.scatter(scores, [*kernels, "learned"], s=90, color=["C4"] * 5 + ["C0"])
left.grid(axis="y", alpha=0.4)
left.set(title="200 held-out sequences", xlabel="accuracy", xlim=(0.6, 0.9))
left.invert_yaxis()
for label, name in enumerate(("no motif", "motif")):
    right.hist(clf.predict_proba(X_test)[y_test == label, 1], bins=20, alpha=0.6, label=name)
right.set(title="Predicted probability of the motif", xlabel="probability", ylabel="sequences")
right.legend(frameon=False)
plt.show()

# %%
# **Takeaway:** a similarity function is enough; the weights of the word lengths are learned.
