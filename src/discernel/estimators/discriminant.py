"""Kernel discriminant analysis with one kernel, or with the best combination of several."""

from __future__ import annotations

from typing import Any

from discernel.estimators.base import BaseKernelDiscriminant
from discernel.learn import Request, make_request

__all__ = ["KernelDiscriminant", "MultipleKernelDiscriminant"]


class KernelDiscriminant(BaseKernelDiscriminant):
    """Kernel discriminant analysis with one given kernel.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        A kernel of `discernel.kernels`, the name of a scikit-learn pairwise kernel, a scikit-learn
        Gaussian process kernel, a callable or ``"precomputed"``. ``"rbf"`` has the median
        distance for its width.
    criterion : {"rkda", "fdr"}, default="rkda"
        Whose discriminant: that of [Ye08]_, whose scatter counts samples, or that of [Kim06]_, for
        two classes, whose scatter is the sum of the class covariances.
    regularization : float or "loo", default="loo"
        λ, in units of the normalised kernel, where 0 is for a kernel matrix of full rank and
        ``statistics="loo"``; ``"loo"`` takes the one with the least
        leave-one-out error.
    statistics : {"loo", "training"}, default="loo"
        Where class means and covariance are taken from: leave-one-out predictions, which give
        honest probabilities, or the fit itself, as in the papers.
    priors : array-like of shape (n_classes,), dict, "uniform" or None, default=None
        Class probabilities, in the order of the sorted labels or by label, all of them; None is
        the share of the samples.
    class_weight : dict, "balanced" or None, default=None
        What the weights of the rows of each class are multiplied by, in all that is learned. A
        dictionary goes by label, 1 where not said; ``"balanced"`` makes all classes weigh the
        same, rare or not. Unlike ``class_costs`` it changes probabilities too: they are those
        of classes that are as frequent as their weights say.
    class_costs : array-like of shape (n_classes,), dict, "balanced" or None, default=None
        What misclassifying a sample of each class costs. A dictionary goes by label, 1 where not
        said; ``"balanced"`` is n_samples / (n_classes × samples of the class), so that rare
        classes cost more.
    threshold : float or "roc", optional
        Two classes: the probability from which the second is predicted. ``"roc"`` chooses it for
        the largest difference of true and false positive rate.
    n_components : int, optional
        The columns of `transform`, at most n_classes − 1; a kernel of lower rank, such as that of
        few features, has fewer.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    regularization_ : float
        The λ used.
    combined_kernel_ : CombinedKernel
        The centred kernel between new rows and the training rows.
    discriminant_ : Discriminant
        Directions, means and scalings.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The share of the variance between the classes along each column of `transform`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), KernelDiscriminant()).fit(X[::2], y[::2])
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.99
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        criterion: str = "rkda",
        regularization: float | str = "loo",
        statistics: str = "loo",
        priors: Any = None,
        class_weight: Any = None,
        class_costs: Any = None,
        threshold: float | str | None = None,
        n_components: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.criterion = criterion
        self.regularization = regularization
        self.statistics = statistics
        self.priors = priors
        self.class_weight = class_weight
        self.class_costs = class_costs
        self.threshold = threshold
        self.n_components = n_components

    def _candidates(self) -> Any:
        return self.kernel if isinstance(self.kernel, str) else [self.kernel]

    def _request(self) -> Request:
        return make_request(criterion=self.criterion, regularization=self.regularization)


class MultipleKernelDiscriminant(BaseKernelDiscriminant):
    """Kernel discriminant analysis with the best combination of candidate kernels.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels or dict of names to kernels
        The candidates. ``"auto"`` is eleven Gaussian and Laplace kernels around the median
        distance, and linear, of columns divided by their spread and perhaps scaled by a learned
        metric; of sparse rows nine Gaussian kernels and linear, without. It takes tables with
        categories, text and missing cells too. Other kernels take columns as they are.
        ``"precomputed"`` takes a stack of matrices, kernels last, for X.
        Lists and dictionaries hold kernels of `discernel.kernels`, names of scikit-learn pairwise
        kernels, scikit-learn Gaussian process kernels or callables; ``kernel.on(columns)`` is
        one kernel for one data source.
    criterion : str or object, default="auto"
        What makes a combination good. Convex and certified: ``"rkda"`` [Ye08]_, for any number of
        classes, with `RKDA(shrinkage=0.1)` closer to equal weights; ``"fdr"`` [Kim06]_ and
        ``"margin"`` [Lanckriet04]_, for two. ``"loo"`` is the leave-one-out error itself, pulled
        towards equal weights; ``"akfd"`` [Fung04]_, ``"alignment"`` [Pothin06]_ and
        ``"separability"`` [Yeung06]_ are those papers'; ``"uniform"`` takes the plain average,
        and `discernel.criteria.GivenWeights` has weights of your own.
        ``"auto"`` takes what predicts left-out rows best: of given kernels plain average, best
        single kernel, ``"rkda"`` with shrinkage, or ``"loo"``; with ``kernels="auto"``, equal or
        learned weights, with or without the metric. ``learned_kernel_.considered`` says why.
    solver : {"auto", "newton", "galerkin", "sdp", "sdp_approximate", "qcqp", "silp"} or object
        How a convex criterion is minimised. ``"auto"`` is ``"newton"`` or, for ``"rkda"`` on
        many rows, ``"galerkin"``, which takes fewer factorisations.
        With a solver or ``regularization="joint"``, ``criterion="auto"`` is ``"rkda"``.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ, in units of the normalised kernels. 0 is for a kernel matrix of full rank, and weights
        that do not depend on λ, as of a single kernel. ``"loo"``, which is ``"auto"``, takes the λ
        with the least leave-one-out error of a path; ``"joint"`` learns λ with the weights
        (``"rkda"`` only).
    statistics : {"loo", "training"}, default="loo"
        Where class means and covariance are taken from: leave-one-out predictions, which give
        honest probabilities, or the fit itself, as in the papers.
    priors : array-like of shape (n_classes,), dict, "uniform" or None, default=None
        Class probabilities, in the order of the sorted labels or by label, all of them; None is
        the share of the samples.
    class_weight : dict, "balanced" or None, default=None
        What the weights of the rows of each class are multiplied by, in all that is learned. A
        dictionary goes by label, 1 where not said; ``"balanced"`` makes all classes weigh the
        same, rare or not. Unlike ``class_costs`` it changes probabilities too: they are those
        of classes that are as frequent as their weights say.
    class_costs : array-like of shape (n_classes,), dict, "balanced" or None, default=None
        What misclassifying a sample of each class costs. A dictionary goes by label, 1 where not
        said; ``"balanced"`` is n_samples / (n_classes × samples of the class), so that rare
        classes cost more.
    threshold : float or "roc", optional
        Two classes: the probability from which the second is predicted. ``"roc"`` chooses it for
        the largest difference of true and false positive rate.
    n_components : int, optional
        The columns of `transform`, at most n_classes − 1; a kernel of lower rank, such as that of
        few features, has fewer.
    tol : float, default=1e-6
        The relative duality gap to certify.
    max_iter : int, optional
        The limit of the solver's iterations for one λ; by default its own. Those of ``"newton"``
        are its steps, however many kernels there are.
    random_state : int or RandomState, optional
        Where there are more than 500, draws the rows that ``"auto"`` searches on and those that λ
        is first looked for on; None is 0.
    bank : str, default="auto"
        How kernels are computed. ``"dense"`` keeps all matrices. ``"tiled"`` computes tiles anew
        whenever they are needed, in memory that does not grow with the number of kernels.
        ``"factored"`` keeps factors, exact to rounding, which are small for smooth kernels of few
        features. ``"iterative"`` makes no matrix of n_samples² numbers at all: systems are solved
        by conjugate gradients on tiles, as exactly as by a factorisation, and gaps are certified
        as with one. Leave-one-out predictions are then estimates, good to about two hundredths for
        λ from 1e-3 on, and weights cannot be learned by ``"loo"`` or ``"margin"``.
        ``"distributed"`` is the same on the workers of the active ``distributed.Client``, of which
        each has all rows. ``"lowrank"`` approximates kernels by Nyström features: time grows with
        the number of rows and not with its square or cube, and the model keeps landmarks instead
        of training rows; ``low_rank_loss_`` says what that costs, and features that do not fit
        into the cache are summed up, chunk by chunk.
        ``"auto"`` keeps matrices that fit into the cache and factors many kernels of low rank. Of
        more rows it takes the fastest exact way that memory and time allow, else a low rank;
        ``forecast_`` says why.
    cache_size : float, default=256
        Room for kernel matrices, in MiB, as in scikit-learn's ``SVC``. Two matrices of n_samples²
        numbers are needed beside it, with ``"iterative"`` and ``"lowrank"`` none. With a convex
        criterion and λ given, ``"auto"`` takes a quarter: few passes do not pay for a large stack.
        Of ``"lowrank"`` it is the room for all features, n_samples × rank numbers.
    rank : int, optional
        The rank of all kernels together, for ``bank="lowrank"``; by default 1,500, or what there
        is room for. With ``kernels="auto"`` it is the number of landmarks.
    max_time : float or str, optional
        A deadline, in seconds or as ``"90s"``, ``"10m"`` or ``"1.5h"``. The fit goes in stages:
        equal weights on 500 rows first, then more rows, a higher rank and learned weights as long
        as there is time. What is asked for by name is kept; a solver that runs out of time stops
        with its present weights. ``plan_`` says what was done. Without a deadline, an exact fit
        may take ten minutes. `partial_fit` has no deadline.
    device : str, optional
        Where the work that grows with the square of the rows is done: ``"cuda"``, ``"cuda:1"`` or
        another device of PyTorch. By default that of X, which is the processor for all but arrays
        of PyTorch and CuPy on another device. Systems are factored there in single precision and
        refined in double: gaps are those of double precision. `to_cpu` gives a model that needs
        no device. ``bank`` must then be ``"auto"``, ``"iterative"`` or ``"lowrank"``; of given
        matrices ``"auto"`` or ``"dense"``.
    verbose : bool, default=False
        Whether to say which bank was chosen, with the memory and time to expect, and to show how
        far the fit is. Without it, fits of two minutes or more warn.
    callback : callable, optional
        Called with a `Progress` once per iteration; of rows in chunks, with a `RowProgress` once
        per chunk.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        At least 0, summing to 1, over the normalised kernels.
    kernel_names_ : list of str
        What the weights belong to.
    regularization_ : float
        The λ used, chosen or learned.
    gap_ : float or None
        The certified relative duality gap: how far from the optimum the weights can be at most.
        None where the criterion is not convex.
    learned_kernel_ : LearnedKernel
        Everything the solver said.
    forecast_ : Forecast or None
        The bank that was chosen and why, with the time and memory that were expected; None for
        few rows, unless `verbose`.
    plan_ : FitPlan
        How the fit was computed, and why: the stages that were run, with the time of each.
    encoder_ : TableEncoder or None
        What became of the columns of a table; None where they are plain numbers.
    feature_importances_, feature_importances_std_ : ndarray of shape (n_features,)
        How much worse the log-loss of training rows gets, each left out of the fit, when a column
        that was given holds the value of another row: shares at least 0, summing to 1, and their
        standard errors over rows. They are of the model that predicts, whatever kernels it has.
        What may be chance is shrunk towards 0. Where no column helps beyond chance, shares are
        those of the squared change of the scores; where predictions depend on no column, all are
        0. Sparse rows and precomputed kernels have none.
    metric_ : Metric
        The scales of columns that ``kernels="auto"`` considered for dense rows; the chosen
        candidate says to which power it uses them.
    streamed_ : Streamed
        Of a fit to rows in chunks, and of `partial_fit`: how many rows, those of the sample, the
        landmarks, and how much of the kernel these have. ``bank_`` is then ``"stream"``, and what
        ``learned_kernel_`` certifies is of rows of the sample.
    expected_ : Expectation or None
        What to expect of new rows: accuracy with an interval, log-loss, and of which rows. None
        with ``statistics="training"``, which predicts no rows without their labels, and while
        `partial_fit` has rows of one class only.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    combined_kernel_ : CombinedKernel or CombinedFeatures
        The centred learned kernel between new rows and the training rows; with
        ``bank="lowrank"``, the centred features of new rows.
    low_rank_loss_ : LowRankLoss or None
        What ``bank="lowrank"`` lost: share of the trace, objective, errors of left-out rows. None
        for other banks.
    discriminant_ : Discriminant
        Directions, means and scalings.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The share of the variance between the classes along each column of `transform`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.99
    >>> clf.learned_kernel_.considered[0].name
    'weights'
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
        statistics: str = "loo",
        priors: Any = None,
        class_weight: Any = None,
        class_costs: Any = None,
        threshold: float | str | None = None,
        n_components: int | None = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        bank: str = "auto",
        cache_size: float = 256,
        rank: int | None = None,
        max_time: Any = None,
        device: str | None = None,
        verbose: bool = False,
        callback: Any = None,
    ) -> None:
        self.kernels = kernels
        self.criterion = criterion
        self.solver = solver
        self.regularization = regularization
        self.statistics = statistics
        self.priors = priors
        self.class_weight = class_weight
        self.class_costs = class_costs
        self.threshold = threshold
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.bank = bank
        self.cache_size = cache_size
        self.rank = rank
        self.max_time = max_time
        self.device = device
        self.verbose = verbose
        self.callback = callback
