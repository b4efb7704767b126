"""Kernel discriminant analysis with one kernel, or with the best combination of several."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discernel.arrays import FloatArray, check_given, on_host
from discernel.bank import BankChoice
from discernel.criteria import takes_two_classes
from discernel.discriminant import ClassHead, Decision, HeldOutScores, fit_discriminant
from discernel.estimators.base import BaseKernelEstimator, by_chunks, score_any, view
from discernel.exceptions import InvalidInputError, is_word, unknown_choice
from discernel.learn import Request, make_request
from discernel.learn.chunks import StreamLearner
from discernel.learn.rows import PRIOR_REQUEST, Learning
from discernel.learn.stages import FitRun
from discernel.learn.training import TrainingRows
from discernel.model import Model
from discernel.rows.chunks import is_dask
from discernel.rows.open import open_rows
from discernel.rows.sources import Source
from discernel.targets import ClassTarget


class BaseKernelDiscriminant(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseKernelEstimator
):
    """Learn a kernel and its discriminant; then predict."""

    priors: Any
    class_weight: Any
    class_costs: Any
    threshold: Any
    statistics: Any
    n_components: Any
    _holds_out: ClassVar[bool] = True
    _sums: ClassVar[bool] = True

    discriminant_ = view("head.discriminant", "Directions, means and scalings.")
    decision_ = view("head.decision", "How probabilities become a class.")
    expected_ = view("head.expected", "What to expect of new rows; None where nothing is known.")
    threshold_ = view("head.threshold", "The threshold that was chosen.", optional=True)
    classes_ = view("classes", "The labels.")
    priors_ = view("head.decision.priors", "Class probabilities before a row is seen.")
    explained_variance_ratio_ = view("head.explained", "Shares of variance between classes.")
    streamed_ = view("facts.streamed", "What a fit to chunks is based on.", optional=True)
    _n_features_out = view("head.n_components", "The columns of `transform`.")

    score = score_any(ClassifierMixin.score)

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel and its discriminant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or Source
            Training rows: an array, a sparse matrix, a dataframe, with ``kernels="auto"`` of any
            columns, what callable kernels take, or for precomputed kernels a stack of shape
            (n_samples, n_samples, n_kernels). What `open_rows` returned is read twice, a chunk at
            a time: the kernel is learned on a random sample of some thousands of rows, and the
            discriminant, of kernels at landmarks, on all of them. So is a Dask array or dataframe,
            where its partitions lie; with ``bank="distributed"`` its rows are collected instead.
        y : array-like of shape (n_samples,)
            Class labels; of a `Source` nothing, which has them; of a Dask dataframe also the name
            of a column.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, at least 0; a row of weight 0 is absent. Weights are
            relative: their scale changes nothing. Leave-one-out leaves out a row with all of its
            weight, and intervals have the effective number of rows (Σω)²/Σω².

        Returns
        -------
        self
            Fitted.
        """
        return super().fit(X, y, sample_weight)

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the classes with rows, all classes, and how probabilities become a class."""
        least = 2 if training.absent is None else 1
        target = ClassTarget.from_labels(training.y, training.weights, least=least)
        given = training.among_given(target, self.class_weight)
        return given.seen, given, self._decide(given, request)

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel, all rows kept or in a bank of features."""
        (given, decision), target = known, learning.target
        fit, held_out = learning.fit(), HeldOutScores()
        if self.statistics == "loo":
            held_out = learning.held_out(fit)
        found = fit_discriminant(fit, target, self.statistics, held_out)
        found = replace(found, dual_coef=learning.coef(found.dual_coef))
        return learning.model(
            fit,
            self._make_head(found, decision, given, held_out.where),
            target.codes,
            coef=found.dual_coef,
            intercept=found.intercept,
            classes=given.classes,
            labels=target.classes[target.codes],
            rows=held_out.rows if held_out.scores is None else None,
        )

    def _make_head(
        self, found: Any, decision: Decision, target: ClassTarget, where: str | None
    ) -> ClassHead:
        """Return the head: from scores to probabilities and classes.

        Parameters
        ----------
        found : Discriminant
            That of the classes with rows.
        decision : Decision
            How probabilities become a class.
        target : ClassTarget
            All classes.
        where : str or None
            How rows were predicted without their labels; None: nothing is expected.
        """
        chooses = is_word(self.threshold, "roc") and where is not None
        where = where if self.statistics == "loo" else None
        n_components = self._check_n_components(target)
        return ClassHead.of(found, decision, target, n_components, where, chooses=chooses)

    def _held_out_loss(self, model: Model) -> float | None:
        """Return the log-loss of held-out rows; None if unknown."""
        expected = model.head.expected
        return None if expected is None else float(expected.log_loss)

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, bank: BankChoice) -> tuple[Any, ...]:
        """Return rows, labels and weights as they are learned from."""
        if isinstance(X, Source) and (y is not None or sample_weight is not None):
            raise InvalidInputError(
                "Labels and weights of rows in chunks come with them. Got them for fit; name "
                "their columns, or give them, to open_rows."
            )
        if not is_dask(X):
            return X, y, sample_weight
        source = open_rows(X, y, weights=sample_weight)
        if bank.kind != "distributed":
            return source, None, None
        from discernel.rows.dask import gathered

        return gathered(source)  # of which every worker will have all

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        forget: float = 1.0,
    ) -> Self:
        """Learn from these rows too.

        The first call learns the kernel and draws the landmarks, from its rows alone, so these
        should be some thousands; after `fit` of a `Source` its kernel stays. Every further call
        adds rows to sums, and the discriminant is that of one fit to all rows so far. It costs
        some seconds with 1,500 landmarks, whatever the number of rows: give many at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            In the first call, all labels that there will be, which ``classes_`` are from then on;
            by default those of its rows. A class is learned from its second row on: until then
            its prior and its probabilities are 0, and its rows wait. So do all rows until two
            classes are learned from: predictions are then the shares of the classes.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.
        forget : float, default=1.0
            What the weights of all rows of the calls before are multiplied by, above 0 and at
            most 1.

        Returns
        -------
        self
            Fitted.
        """
        if not (isinstance(forget, Real) and 0 < forget <= 1):
            raise InvalidInputError(
                f"forget must be a number above 0 and at most 1, which forgets nothing. Got "
                f"{forget!r}."
            )
        if isinstance(self.class_weight, str):
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} depends on all rows, which partial_fit does "
                "not know. Give a dictionary of class to number."
            )
        check_given(X, y, classes, sample_weight)
        X, y, classes, sample_weight = map(on_host, (X, y, classes, sample_weight))
        known = self.model_ if "model_" in vars(self) else None
        device = None if known is None else known.device
        learner = StreamLearner(self, FitRun(self, device))
        self.model_ = learner.learn_more(known, X, y, sample_weight, classes, float(forget))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        binary = self.threshold is not None or takes_two_classes(self.criterion)
        tags.classifier_tags.multi_class = not binary
        return tags

    def _decide(self, target: ClassTarget, request: Request) -> Decision:
        """Return how probabilities become a class, or raise a clear error before any heavy work.

        Parameters
        ----------
        target : ClassTarget
            All classes.
        request : Request
            What is to be learned, where at least two classes have rows.
        """
        if target.seen.n_classes == 1:  # nothing to learn by
            request = PRIOR_REQUEST
        request.criterion.check_target(target.seen, request.regularization)
        if self.statistics not in ("loo", "training"):
            raise unknown_choice("statistics", self.statistics, ["loo", "training"])
        if self.statistics == "training" and request.regularization == 0.0:
            raise InvalidInputError(
                "Without regularization the fit is exact on training rows, which then have no "
                "scatter: statistics must be 'loo'. Got 'training' and regularization=0."
            )
        self._check_n_components(target)
        return Decision.make(
            target, priors=self.priors, class_costs=self.class_costs, threshold=self.threshold
        )

    def _check_n_components(self, target: ClassTarget) -> int:
        most, asked = target.n_classes - 1, self.n_components
        if asked is None:
            return most
        if not (isinstance(asked, (int, np.integer)) and 1 <= asked <= most):
            raise InvalidInputError(
                f"n_components must be an integer from 1 to n_classes - 1 = {most}, or None. "
                f"Got {asked!r}."
            )
        return int(asked)

    # ---- prediction --------------------------------------------------------------------------

    def _result_of(self, method: str) -> tuple[int | None, Any]:
        """Return how many columns a method returns, None for one dimension, and of which kind."""
        n_classes = len(self.classes_)
        if method == "predict":
            return None, self.classes_.dtype
        if method == "decision_function" and n_classes == 2:
            return None, np.float64
        return self._n_features_out if method == "transform" else n_classes, np.float64

    def _log_posterior(self, X: Any) -> FloatArray:
        return np.asarray(self.model_.head.log_posterior(self.model_.scores(X)))

    @by_chunks
    def decision_function(self, X: Any) -> FloatArray:
        """Return how strongly each row belongs to the classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: the log-odds of the second, less the boundary that costs or a threshold
            set, so that it is predicted above 0. More: log-posteriors up to a constant of the
            row, costs added; the largest is predicted.
        """
        return self.model_.head.decide(self.model_.scores(X))  # type: ignore[no-any-return]

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        model = self.model_
        decision = model.head.decide(model.scores(X))
        codes = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        assert model.classes is not None
        return np.asarray(model.classes[codes])

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class; costs and thresholds do not change it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows sum to 1.
        """
        return np.asarray(softmax(self._log_posterior(X), axis=1))

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log-probabilities.
        """
        return np.asarray(log_softmax(self._log_posterior(X), axis=1))

    @by_chunks
    def transform(self, X: Any) -> FloatArray:
        """Return discriminant coordinates, in which the classes have covariance one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. Of a `Source`, an iterator of the results of its chunks is returned, of a
            Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The classes differ most along the first column.
        """
        return np.asarray(self.model_.head.coordinates(self.model_.scores(X)))


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
    statistics, priors, class_weight, class_costs, threshold, n_components
        As in `MultipleKernelDiscriminant`.

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

    #: What is not asked for, and so no parameter.
    bank, max_time, verbose, callback = "auto", None, False, None

    def _candidates(self) -> Any:
        """Return the kernel as the user gave it."""
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
    bank : str or object, default="auto"
        How kernels are computed: a name, or an object of `discernel.bank` that has its numbers,
        such as ``LowRank(500)``, ``Tiled(memory="2GB")`` or ``AutoBank(memory="1GB")``. The memory
        is the room for kernel matrices, 256 MiB by default; two matrices of n_samples² numbers
        are needed beside it, with ``"iterative"`` and ``"lowrank"`` none. With a convex criterion
        and λ given, ``"auto"`` takes a quarter: few passes do not pay for a large stack.
        ``"dense"`` keeps all matrices. ``"tiled"`` computes tiles anew whenever they are
        needed, in memory that does not grow with the number of kernels.
        ``"factored"`` keeps factors, exact to rounding, which are small for smooth kernels of few
        features. ``"iterative"`` makes no matrix of n_samples² numbers at all: systems are solved
        by conjugate gradients on tiles, as exactly as by a factorisation, and gaps are certified
        as with one. Leave-one-out predictions are then estimates, good to about two hundredths for
        λ from 1e-3 on, and weights cannot be learned by ``"loo"`` or ``"margin"``.
        ``"distributed"`` is the same on the workers of the active ``distributed.Client``, of which
        each has all rows. ``"lowrank"`` approximates kernels by Nyström features: time grows with
        the number of rows and not with its square or cube, and the model keeps landmarks instead
        of training rows; ``low_rank_loss_`` says what that costs, and features that do not fit
        into the memory, n_samples × rank numbers, are summed up, chunk by chunk. The rank is that
        of all kernels together, by default 1,500, or what there is room for; with
        ``kernels="auto"`` it is the number of landmarks.
        ``"auto"`` keeps matrices that fit into the memory and factors many kernels of low rank. Of
        more rows it takes the fastest exact way that memory and time allow, else a low rank;
        ``forecast_`` says why.
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
    forecast_ : Stage or None
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
        bank: Any = "auto",
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
        self.max_time = max_time
        self.device = device
        self.verbose = verbose
        self.callback = callback
