"""
Serving a model without discernel
=================================

A fitted classifier can be exported as an ONNX graph, or as a Python file that needs only NumPy.
Both give the same probabilities as the model.
"""

import timeit
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.export import numpy_scorer, to_onnx

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=500, random_state=0)
clf = MultipleKernelDiscriminant().fit(X_train, y_train)

session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
scorer = numpy_scorer(clf)
ways = {
    "discernel": clf.predict_proba,
    "ONNX": lambda rows: session.run(None, {"X": rows})[1],
    "NumPy": scorer.predict_proba,
}
probabilities = {name: way(X_test) for name, way in ways.items()}
for name in ("ONNX", "NumPy"):
    apart = np.abs(probabilities[name] - probabilities["discernel"]).max()
    print(f"{name}: probabilities at most {apart:.0e} apart on {len(X_test):,} rows")

# %%
# Left: probabilities of ONNX against those of the model. Right: time to predict one row and 200
# rows on this machine.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(probabilities["discernel"].ravel(), probabilities["ONNX"].ravel(), ".", ms=3)
left.set(title="The same probabilities", xlabel="discernel", ylabel="ONNX")
for i, n in enumerate((1, 200)):
    calls = [partial(way, X_test[:n]) for way in ways.values()]
    times = [min(timeit.repeat(call, number=1, repeat=5)) for call in calls]
    right.bar(np.arange(3) + 0.4 * i, np.multiply(1000, times), 0.35, label=f"rows: {n}")
right.set(title="Time to predict", ylabel="milliseconds", yscale="log")
right.set_xticks(np.arange(3) + 0.2, list(ways))
right.legend(frameon=False)
plt.show()

# %%
# **Takeaway:** an exported model gives the same probabilities where discernel is not installed.
