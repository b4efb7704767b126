"""
A certified optimum
===================

With ``criterion="rkda"`` the kernel weights solve a convex program, and the gap bounds how much
any other weights could improve it. We check this by brute force: the weights of three kernels form
a triangle, and we evaluate the criterion of Ye, Ji and Chen (2008), Eq. (26), on a grid over it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from discernel import learn_kernel
from discernel.kernels import RBF

X, y = load_breast_cancer(return_X_y=True)
X, y, lam = scale(X)[:150], y[:150], 0.001
widths = (2, 8, 16)
grams = [RBF(width=width)(X) for width in widths]
learned = learn_kernel(grams, y, criterion="rkda", regularization=lam)
print(f"weights {learned.weights.round(3)}, criterion {learned.objective:.4f}")
print(f"no other weights improve it by more than a fraction of {learned.gap:.0e}")

# %%
# The same criterion in NumPy, with centred kernels of trace 1 and the class indicator H.

m, counts = len(y), np.bincount(y)
P = np.eye(m) - 1 / m
kernels = [P @ G @ P / np.trace(P @ G @ P) for G in grams]
H = np.eye(2)[y] * np.sqrt(m / counts) - np.sqrt(counts / m)


def criterion(w):
    N = lam * np.eye(m) + sum(wi * K for wi, K in zip(w, kernels, strict=True))
    return lam * np.sum(H * np.linalg.solve(N, H))


grid = [(i / 30, j / 30, 1 - (i + j) / 30) for i in range(31) for j in range(31 - i)]
values = np.array([criterion(w) for w in grid])
corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
places = np.array(grid) @ corners

figure, axes = plt.subplots(figsize=(7.4, 5), layout="constrained")
shades = axes.tricontourf(*places.T, values, levels=30, cmap="viridis_r")
figure.colorbar(shades, label="criterion (smaller is better)")
axes.plot(*(learned.weights @ corners), "*", ms=22, color="C1", mec="white", label="learned")
axes.plot(*places[values.argmin()], "o", ms=9, mfc="none", mec="black", label="best of the grid")
for width, (x, z), side in zip(widths, corners, ("left", "right", "right"), strict=True):
    axes.text(x - 0.03 * (z > 0), z - 0.02, f"only width {width}", ha=side, va="top")
axes.set(title=f"All combinations of three kernels, certified gap {learned.gap:.0e}")
axes.axis("off")
axes.legend(frameon=False)
plt.show()

# %%
# **Takeaway:** the weights are optimal, and the gap proves it without a search.
