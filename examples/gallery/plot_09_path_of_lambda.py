"""
The regularization path
=======================

λ controls the amount of regularization. As λ decreases, narrower kernels replace wide ones. The
leave-one-out error, computed in closed form, shows which λ to choose.
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
# Every point on the path is a certified optimum for its λ.

names = [kernel.name for kernel in kernels]
RegularizationPathDisplay.from_path(path, kernel_names=names)
plt.show()

# %%
# **Takeaway:** weights belong to one λ. Strong regularization selects only the smoothest kernel,
# weak regularization mixes in narrower ones.
