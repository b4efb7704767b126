"""
The path of λ
=============

λ says how much is regularised. Along its path, wide kernels give way to narrower ones, and the
leave-one-out error, computed in closed form, says where to stop.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import regularization_path
from discernel.displays import RegularizationPathDisplay
from discernel.kernels import rbf_ladder

X, y = load_wine(return_X_y=True)
X = scale(X)
kernels = rbf_ladder(5, center=8.0)
path = regularization_path([kernel(X) for kernel in kernels], y, np.geomspace(1, 1e-5, 21))
print(f"least leave-one-out error at λ = {path.best.regularization:.1e}")

# %%
# Every point of the path is a certified optimum for its λ.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
names = [kernel.name for kernel in kernels]
RegularizationPathDisplay.from_path(path, kernel_names=names, ax=axes)
axes[0].set_title("Which kernels are used")
axes[1].set_title("How well left-out rows are predicted")
plt.show()

# %%
# **What one learns:** weights are weights for one λ: much regularisation takes the smoothest
# kernel only, little of it mixes narrower ones in.
