"""Kernels called with arrays of another library: computed there, and equal to NumPy's."""

import inspect
import pickle
from dataclasses import dataclass

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RationalQuadratic, WhiteKernel

from discernel import learn_kernel, reweigh_spectrum
from discernel.arrays import Device, as_host, device_of
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Exponential,
    Function,
    GaussianProcess,
    Intersection,
    Jaccard,
    Kernel,
    Laplace,
    Linear,
    Lookup,
    Matching,
    NGram,
    Pairwise,
    Polynomial,
    Precomputed,
    Spectrum,
    Standardized,
    Tanimoto,
    WhereKnown,
    rbf_ladder,
    resolve_kernels,
)
from discernel.kernels import base as kernel_base
from discernel.kernels import device as device_kernels
from discernel.kernels.pairs import CITY, INNER, SQUARED
from discernel.kernels.terms import Atom, Decay, PairKind, Term

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")

N, M, D = 90, 70, 4


def product_and_one(A, B):
    assert isinstance(A, np.ndarray)
    assert isinstance(B, np.ndarray)
    return 1.0 + A @ B.T


@dataclass(frozen=True)
class Student(Kernel):
    """A kernel of a user, who knows NumPy only."""

    scale: float = 1.0

    def __call__(self, X, Z=None):
        """Return 1 / (1 + ‖x − z‖² / s²), and a half more for each row with itself."""
        assert isinstance(X, np.ndarray)
        assert Z is None or isinstance(Z, np.ndarray)
        other = X if Z is None else Z
        matrix = 1.0 / (1.0 + ((X[:, None] - other) ** 2).sum(axis=2) / self.scale**2)
        return matrix + (0.5 * np.eye(len(X)) if Z is None else 0.0)

    def diagonal(self, X):
        assert isinstance(X, np.ndarray)
        return np.full(len(X), 1.5)


class Doubled(RBF):
    """It calls what it inherits, which is not to be sent back and forth again."""

    def __call__(self, X, Z=None):
        return 2.0 * super().__call__(X, Z)


#: All kernels that take rows of numbers.
NUMBERS = {
    "RBF": RBF(width=1.5),
    "RBF of scales": RBF(gamma=0.2, scales=(1.0, 0.0, 2.0, 0.5)),
    "Exponential": Exponential(width=2.0),
    "Laplace": Laplace(width=3.0, scales=(1.0, 0.0, 2.0, 0.5)),
    "Linear": Linear(),
    "Linear of an origin": Linear(origin=(1.0, 2.0, 3.0, 4.0)),
    "Polynomial": Polynomial(degree=3, gamma=0.5, coef0=2.0),
    "Cosine": Cosine(),
    "Pairwise": Pairwise("sigmoid", (("gamma", 0.1), ("coef0", 0.0))),
    "GaussianProcess": GaussianProcess(RationalQuadratic() + WhiteKernel(0.3)),
    "Function": Function(product_and_one),
    "Standardized": Standardized(RBF(width=1.5), (1.0, 2.0, 0.0, 3.0)),
    "Restricted": RBF(width=1.5).on([0, 2]),
    "one column": Exponential(width=1.5).on([1]),
    "columns by slice": RBF(width=1.5).on(slice(1, 4)).on(slice(0, 3)),
    "columns by mask": Laplace(width=1.5).on([True, False, True, False]),
    "named": RBF(width=1.5).named("mine"),
    "scaled": 3.0 * RBF(width=1.5),
    "sum": RBF(width=1.5) + 2.0 * Linear() + Cosine(),
    "product": RBF(width=1.5) * Polynomial(degree=2),
    "sums and products within": 2.0
    * Standardized(
        (RBF(width=1.5) + Laplace(width=2.0).on([0])) * (3.0 * (Linear() * Student())),
        (1.0, 2.0, 1.0, 3.0),
    )
    .on([3, 2, 1, 0])
    .named("all"),
    "constant": 2.0 * (RBF(width=1.5) + 0.5),
    "power": Linear() ** 3,
    "powers of sums": ((RBF(width=1.5) + 2.0 * Linear() + 0.5) ** 2 + 1.0).on([3, 2, 1, 0]),
    "powers of what NumPy makes": (Student() * RBF(width=1.5) + 1.0) ** 2,
    "the user's": Student(2.0),
    "the user's, inheriting": Doubled(width=1.5),
    "the user's, in a sum": Student() + Doubled(width=1.5) + RBF(width=2.0),
}
#: Those of histograms and counts.
COUNTS = {
    "ChiSquared": ChiSquared(width=2.0),
    "Intersection": Intersection(),
    "Tanimoto": Tanimoto(),
    "Matching": Matching(),
    "WhereKnown": WhereKnown(RBF(width=2.0)).resolve(np.arange(12.0).reshape(3, 4)),
    "sum": ChiSquared(width=2.0) + RBF(width=1.5),
}
#: Those of strings, sets and matrices, which rows of numbers are not.
OTHERS = {Spectrum, NGram, Jaccard, Lookup, Precomputed}


@pytest.fixture(params=[2**27, 500], ids=["one strip", "several strips"])
def strips(request, monkeypatch):
    monkeypatch.setattr(device_kernels, "STRIP_ENTRIES", request.param)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)), rng.normal(size=(M, D))


def check(kernel, X, Z, send):
    """Compare what is computed there, and where it is, with NumPy's."""
    there, other = send(X), send(Z)
    pairs = [
        (kernel(there), kernel(X)),
        (kernel(there, there), kernel(X, X)),
        (kernel(there, other), kernel(X, Z)),
        (kernel(there, Z=other), kernel(X, Z)),
        (kernel(X, other), kernel(X, Z)),
        (kernel(there, Z), kernel(X, Z)),
        (kernel.diagonal(there), kernel.diagonal(X)),
    ]
    for found, expected in pairs:
        assert type(found) is type(there)
        assert device_of(found) == device_of(there)
        found = as_host(found)
        assert found.dtype == expected.dtype == np.float64
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


# ---- every kernel ------------------------------------------------------------------------------


def test_all_kernels_are_here():
    import discernel.kernels as room

    found = {value for value in vars(room).values() if inspect.isclass(value)} - {Kernel}
    tried = {type(kernel) for kernel in (*NUMBERS.values(), *COUNTS.values())}
    assert found - tried <= OTHERS


@pytest.mark.parametrize("name", NUMBERS)
def test_matrices_are_numpys_and_live_there(name, send, strips):
    check(NUMBERS[name], *draw(), send)


@pytest.mark.parametrize("name", COUNTS)
def test_those_of_counts_too(name, send, strips):
    X, Z = (np.floor(np.abs(rows) * 4) for rows in draw())
    check(COUNTS[name], X, Z, send)


@pytest.mark.parametrize("name", ["RBF", "Exponential", "Laplace", "one column", "Standardized"])
def test_far_from_the_origin(name, send, strips):
    X, Z = draw()
    check(NUMBERS[name], X + 1e6, Z + 1e6, send)


@pytest.mark.parametrize("name", ["RBF", "Exponential", "Laplace"])
def test_one_far_row(name, send, strips):
    X, Z = draw()
    X[17] += 1e5
    Z[3] += 1e5
    check(NUMBERS[name], X, Z, send)


def test_rows_have_a_distance_of_exactly_0_from_themselves(send, strips):
    X = draw()[0] + 1e3
    for kernel in (RBF(width=1e-3), Exponential(width=1e-3), Laplace(width=1e-3)):
        found = as_host(kernel(send(X)))
        assert_array_equal(np.diagonal(found), 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("name", ["RBF", "Linear", "Cosine", "sum", "the user's"])
def test_other_numbers_give_double_precision_too(name, dtype, send, strips):
    X, Z = ((4 * rows).astype(dtype) for rows in draw())
    found, expected = as_host(NUMBERS[name](send(X), send(Z))), NUMBERS[name](X, Z)
    assert found.dtype == expected.dtype
    assert found.dtype == np.float64 or name == "the user's"  # who may not care
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_rows_are_not_changed(send):
    X, Z = draw()
    there, other = send(X.copy()), send(Z.copy())
    for kernel in NUMBERS.values():
        kernel(there, other)
    assert_array_equal(as_host(there), X)
    assert_array_equal(as_host(other), Z)


# ---- where they are computed -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("RBF", "Exponential", "Laplace", "Linear", "Polynomial", "Standardized", "Restricted"),
        *("columns by slice", "scaled", "product"),
    ],
)
def test_no_matrix_is_made_by_numpy(name, send, monkeypatch):
    X, Z = draw()
    there, other = send(X), send(Z)
    if device_of(there).is_host:
        pytest.skip("NumPy computes with them")
    sent = []
    put = Device.put

    def watched(self, array, **options):
        sent.append(array.shape)
        return put(self, array, **options)

    monkeypatch.setattr(Device, "put", watched)
    NUMBERS[name](there, other)
    assert sent
    assert all(columns <= D + 2 for _, columns in sent)


def test_temporaries_are_strips(torch_as_device, monkeypatch):
    monkeypatch.setattr(device_kernels, "STRIP_ENTRIES", 500)
    made = []
    for pair in map(type, (SQUARED, CITY, INNER)):
        tile_on = pair.tile_on

        def watched(self, *given, tile_on=tile_on):
            tile = tile_on(self, *given)
            made.append(tuple(tile.shape))
            return tile

        monkeypatch.setattr(pair, "tile_on", watched)
    X, Z = map(torch.as_tensor, draw())
    kernel = RBF(width=1.0) + Laplace(width=1.0) * Linear()
    for given in ((X,), (X, Z)):
        made.clear()
        kernel(*given)
        assert sum(n * m for n, m in made) == 3 * len(X) * len(given[-1])
        assert max(n * m for n, m in made) <= 500 // 3


def test_the_kernels_of_a_sum_share_distances(torch_as_device, monkeypatch):
    made = []
    tile_on = type(SQUARED).tile_on
    monkeypatch.setattr(
        type(SQUARED), "tile_on", lambda self, *a: made.append(a[0]) or tile_on(self, *a)
    )
    (RBF(width=1.0) + RBF(width=2.0) + RBF(width=4.0) * Exponential(width=1.0))(torch.rand(9, 2))
    assert len(made) == 1


@dataclass(frozen=True)
class Canberra(PairKind):
    """Σ |x_l − z_l| / (1 + |x_l| + |z_l|), a pair of a user's."""

    kind = "canberra"
    is_distance = True

    def tile(self, X, Z, out):
        Z = X if Z is None else Z
        return (np.abs(X[:, None] - Z) / (1.0 + np.abs(X[:, None]) + np.abs(Z))).sum(axis=2)

    def diagonal(self, X):
        return np.zeros(len(X))

    def formula(self, X, Z, xp, steepness):
        return xp.column_sums(lambda x, z: abs(x - z) / (1.0 + abs(x) + abs(z)), X, Z)


@dataclass(frozen=True)
class Near(Kernel):
    def _terms(self, view):
        return (Term(1.0, (Atom(Canberra(), view, Decay(0.5)),)),)


def test_a_pair_of_ones_own_is_computed_there_by_its_formula(send, strips, monkeypatch):
    X, Z = draw()
    check(Near().on([3, 1]), X, Z, send)
    expected, there, other = Near()(X, Z), send(X), send(Z)
    if not device_of(there).is_host:
        monkeypatch.setattr(Canberra, "tile", None)
    assert_allclose(as_host(Near()(there, other)), expected, rtol=1e-12)


def test_nested_kernels_are_dispatched_once(send, monkeypatch):
    seen = []
    real = kernel_base.check_given
    monkeypatch.setattr(kernel_base, "check_given", lambda *given: seen.append(1) or real(*given))
    NUMBERS["sums and products within"](send(draw()[0]))
    NUMBERS["the user's, inheriting"](send(draw()[0]))
    assert len(seen) == 2


def test_numpy_is_not_even_looked_at(monkeypatch):
    def never(*given):
        raise AssertionError(given)

    monkeypatch.setattr(kernel_base, "check_given", never)
    X, Z = draw()
    for kernel in NUMBERS.values():
        kernel(X, Z)
        kernel(X)
        kernel.diagonal(X)
        kernel.resolve(X, None, {})


def test_a_kernel_can_be_learned_from_matrices_made_there(send, monkeypatch):
    X = draw()[0]
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    kernels = [RBF(width=w) for w in (1, 2, 4)]
    expected = learn_kernel([kernel(X) for kernel in kernels], y, regularization=0.1)
    grams = [kernel(send(X)) for kernel in kernels]
    assert all(type(gram) is type(grams[0]) and device_of(gram) for gram in grams)
    found = learn_kernel(grams, send(y), regularization=0.1)
    assert_allclose(found.weights, expected.weights, atol=1e-8)


# ---- what depends on the rows ------------------------------------------------------------------


def test_numbers_are_found_from_rows_there(send):
    X = draw()[0]
    kernels = [
        *rbf_ladder(3),
        Laplace().on(slice(0, 2)),
        Standardized(RBF()) + Polynomial(gamma=None),
        Pairwise("rbf"),
        ChiSquared().on([0]),
    ]
    X = np.abs(X)
    there = send(X)
    assert resolve_kernels(kernels, there) == resolve_kernels(kernels, X)
    for kernel in kernels:
        assert kernel.resolve(there) == kernel.resolve(X)
        assert kernel.resolve(X=there) == kernel.resolve(X)
    known = {}
    RBF().resolve(there, None, known)
    assert known  # the dictionary of the caller, not a copy


def test_what_is_not_resolved_says_so(send):
    with pytest.raises(InvalidInputError, match=r"Call kernel\.resolve\(X\) first"):
        RBF()(send(draw()[0]))


def test_derivatives_come_back_there(send):
    X, Z = draw()
    there, other, kernel = send(X), send(Z), RBF(width=1.5) + Laplace(width=2.0)
    coef = np.random.default_rng(1).normal(size=(M, 2))
    pairs = [
        (kernel.derivative("left.width", there, other), kernel.derivative("left.width", X, Z)),
        (kernel.left.scale_derivative(1, there), kernel.left.scale_derivative(1, X)),
        (kernel.gradient(there, send(coef), other), kernel.gradient(X, coef, Z)),
        (kernel.squared_gradient(there, coef, Z=other), kernel.squared_gradient(X, coef, Z)),
    ]
    for found, expected in pairs:
        assert type(found) is type(there)
        assert_allclose(as_host(found), expected, atol=1e-12)


# ---- what is given -----------------------------------------------------------------------------


def test_views_and_tensors_with_gradients(request):
    X, Z = draw()
    for as_device in (False, True):
        if as_device:
            request.getfixturevalue("torch_as_device")
        there = torch.tensor(X, requires_grad=True)
        found = RBF(width=1.5)(there, torch.nn.Parameter(torch.tensor(Z)))
        assert type(found) is torch.Tensor
        assert not found.requires_grad
        assert_allclose(as_host(found), RBF(width=1.5)(X, Z), atol=1e-12)
        turned = torch.tensor(X.T.copy()).T[::2]
        assert_allclose(as_host(RBF(width=1.5)(turned)), RBF(width=1.5)(X[::2]), atol=1e-12)


def test_bad_arrays_are_refused(request):
    X = torch.as_tensor(draw()[0])
    for as_device in (False, True):
        if as_device:
            request.getfixturevalue("torch_as_device")
        for dtype in (torch.float16, torch.bfloat16, torch.complex128):
            for call in (RBF(width=1.0), RBF(width=1.0).diagonal, RBF().resolve):
                with pytest.raises(InvalidInputError, match="at least 32 bits"):
                    call(X.to(dtype))
        with pytest.raises(InvalidInputError, match="one library and on one device"):
            RBF(width=1.0)(X, strict.asarray(draw()[1]))
        with pytest.raises(InvalidInputError, match=r"meta.*Move the second array.*\.to\('cpu'\)"):
            RBF(width=1.0)(X, X.to("meta"))
        with pytest.raises(InvalidInputError, match="dense"):
            RBF(width=1.0)(X.to_sparse())


def test_a_matrix_that_does_not_fit_is_refused_before_it_is_made(torch_as_device, monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", lambda self: 10_000)
    X = torch.as_tensor(draw()[0])
    with pytest.raises(InvalidInputError, match=r"90 × 90.*6.48e-05 GB.*1e-05 GB are free"):
        RBF(width=1.0)(X)


def test_matrices_of_the_wrong_shape_are_refused_by_name(torch_as_device):
    def short(A, B):
        return np.ones((1, 1))

    with pytest.raises(InvalidInputError, match="short must return a matrix"):
        (Function(short) + RBF(width=1.0))(torch.as_tensor(draw()[0]))


def test_sparse_rows_beside_rows_there(send):
    X, Z = draw()
    found = RBF(width=1.5)(sp.csr_array(X), send(Z))
    assert device_of(found) == device_of(send(Z))
    assert_allclose(as_host(found), RBF(width=1.5)(X, Z), atol=1e-12)


def test_other_rows_are_as_they_were():
    frame = pd.DataFrame(draw()[0], columns=list("abcd"))
    on_names = RBF(width=1.5).on(["a", "c"])
    for kernel, given in [
        (RBF(width=1.5), frame),
        (RBF(width=1.5), frame.to_numpy().tolist()),
        (on_names, frame),
        (RBF(width=1.5), sp.csr_array(frame.to_numpy())),
        (Spectrum(k=2), ["abc", "abe", "xyz"]),
        (NGram(), np.array(["abc", "abe", "xyz"], dtype=object)),
        (Jaccard(), [{"a", "b"}, {"a"}]),
        (Lookup(np.eye(3)), [0, 1, 2]),
        (Precomputed(1), np.stack([np.eye(3), np.ones((3, 3))], axis=-1)),
    ]:
        assert type(kernel(given)) is type(kernel(given, given)) is np.ndarray
        assert type(kernel.diagonal(given)) is np.ndarray
        assert isinstance(kernel.resolve(given), Kernel)
    assert_array_equal(on_names(frame), RBF(width=1.5)(frame[["a", "c"]].to_numpy()))
    assert on_names.resolve(frame.to_numpy(), frame).columns == (0, 2)


def test_identifiers_and_stacks_from_there(send):
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = Lookup(matrix)(send(np.array([1, 0, 1])))
    assert_array_equal(as_host(found), matrix[np.ix_([1, 0, 1], [1, 0, 1])])
    stack = np.stack([np.eye(3), np.full((3, 3), 2.0)], axis=-1)
    found = Precomputed(1)(send(stack))
    assert device_of(found) == device_of(send(stack))
    assert_array_equal(as_host(found), stack[:, :, 1])


# ---- kernels are what they were ----------------------------------------------------------------


def test_kernels_are_the_value_objects_they_were():
    assert list(inspect.signature(RBF.__call__).parameters) == ["self", "X", "Z"]
    assert list(inspect.signature(RBF.resolve).parameters) == ["self", "X", "frame", "known"]
    assert Student.__call__.__doc__.startswith("Return 1 / (1 + ")
    assert Student.__call__.__qualname__ == "Student.__call__"
    assert Pairwise.resolve.__doc__.startswith("Return the kernel")
    for kernel in (*NUMBERS.values(), *COUNTS.values()):
        again = pickle.loads(pickle.dumps(kernel))
        assert again == kernel
        assert repr(again) == repr(kernel)


def test_a_class_that_is_sent_to_another_process_works_there(send):
    class Local(Kernel):
        def __call__(self, X, Z=None):
            return np.ones((len(X), len(X if Z is None else Z)))

        def diagonal(self, X):
            return np.ones(len(X))

    again = cloudpickle.loads(cloudpickle.dumps(Local()))
    assert type(again(send(draw()[0]))) is type(send(draw()[0]))


def test_a_class_without_what_it_must_have_says_so():
    class Half(Kernel):
        def diagonal(self, X):
            return np.ones(len(X))

    with pytest.raises(NotImplementedError, match=r"Half must define __call__"):
        Half()(draw()[0])


# ---- re-weighted spectra -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["closed_form", "dinkelbach", "alignment"])
def test_a_spectrum_is_returned_where_the_matrix_was(send, method):
    X, Z = draw()
    K, y = RBF(width=2.0)(X), np.where(np.arange(N) % 3, -1, (X[:, 0] > 0).astype(int))
    expected = reweigh_spectrum(K, y, method=method)
    there = send(K)
    found = reweigh_spectrum(there, send(y), method=method)
    assert type(found.matrix) is type(there)
    assert device_of(found.matrix) == device_of(there)
    assert_allclose(as_host(found.matrix), expected.matrix, atol=1e-10)
    assert found.mu.tolist() == expected.mu.tolist()
    cross = RBF(width=2.0)(Z, X)
    assert type(found.extend(send(cross))) is type(there)
    assert_allclose(as_host(found.extend(send(cross))), expected.extend(cross), atol=1e-10)
    assert isinstance(expected.matrix, np.ndarray)
    assert isinstance(found.extend(cross), np.ndarray)


def test_a_spectrum_refuses_what_all_refuse():
    with pytest.raises(InvalidInputError, match="at least 32 bits"):
        reweigh_spectrum(torch.eye(6, dtype=torch.float16), [0, 0, -1, -1, 1, 1])
