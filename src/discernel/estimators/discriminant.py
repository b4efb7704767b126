"""Kernel discriminant analysis with one kernel, or with a learned combination of kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discernel.arrays import FloatArray, check_given, on_host
from discernel.criteria import takes_two_classes
from discernel.discriminant import (
    ClassHead,
    Decision,
    HeldOutScores,
    check_coverage,
    fit_discriminant,
)
from discernel.estimators.base import BaseKernelEstimator, by_chunks, score_any, view
from discernel.exceptions import InvalidInputError, is_count, is_word, unknown_choice
from discernel.learn import Request, make_request
from discernel.learn.held_out import held_out_scores
from discernel.learn.rows import PRIOR_REQUEST, Learning
from discernel.learn.stages import FitRun
from discernel.model import Model
from discernel.model.training import TrainingRows
from discernel.targets import ClassTarget

if TYPE_CHECKING:
    from discernel.learn.chunks import StreamLearner


class BaseKernelDiscriminant(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseKernelEstimator
):
    """Base class of the kernel discriminants with one class for each row."""

    priors: Any
    class_weight: Any
    class_costs: Any
    threshold: Any
    statistics: Any
    n_components: Any
    _sums: ClassVar[bool] = True

    @property
    def _fits_logits(self) -> bool:  # type: ignore[override]
        return bool(self.statistics == "loo")

    discriminant_ = view("head.discriminant", "Directions, class means and scalings.")
    link_weights_ = view("head.link_weights", "The weights of the links, by name.")
    decision_ = view("head.decision", "The rule from probabilities to a class.")
    expected_ = view("head.expected", "The performance to expect on new rows, or None.")
    threshold_ = view(
        "head.threshold", "The chosen threshold of the probability of `classes_[1]`.", optional=True
    )
    classes_ = view("classes", "The class labels.")
    priors_ = view("head.decision.priors", "The prior class probabilities.")
    explained_variance_ratio_ = view(
        "head.explained", "The share of between-class variance along each component."
    )
    _n_features_out = view("head.n_components", "The number of columns of `transform`.")

    score = score_any(ClassifierMixin.score)

    # ---- fitting -----------------------------------------------------------------------------

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target without empty classes, the complete target, and the decision."""
        least = 2 if training.absent is None else 1
        known = training.weights, training.groups
        target = ClassTarget.from_labels(training.y, *known, least=least)
        given = training.among_given(target, self.class_weight)
        return given.seen, given, self._decide(given, request)

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel."""
        (given, decision), target = known, learning.target
        fit, held_out = learning.fit(), HeldOutScores()
        if self.statistics == "loo":
            held_out = held_out_scores(learning, fit)
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
        """Return the head, which converts scores to probabilities and classes.

        Parameters
        ----------
        found : Discriminant
            The discriminant of the classes with rows.
        decision : Decision
            The rule from probabilities to a class.
        target : ClassTarget
            The target with all classes.
        where : str or None
            A description of the held-out predictions; None if there are none.
        """
        chooses = is_word(self.threshold, "roc") and where is not None
        where = where if self.statistics == "loo" else None
        n_components = self._check_n_components(target)
        return ClassHead.of(found, decision, target, n_components, where, chooses=chooses)

    def _held_out_loss(self, model: Model) -> float | None:
        """Return the held-out log-loss of a model; None if unknown."""
        expected = model.head.expected
        return None if expected is None else float(expected.log_loss)

    def _stream_learner(self, run: FitRun, **options: Any) -> StreamLearner:
        from discernel.learn.class_chunks import ClassStreamLearner

        return ClassStreamLearner(self, run, **options)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        forget: float = 1.0,
    ) -> Self:
        """Add rows to the model.

        The first call learns the kernel and draws the landmarks from its rows alone, so pass some
        thousands; after `fit` with a `Source` the kernel is kept. Each further call adds rows to
        sums, and the discriminant is that of one fit to all rows so far. A call takes some seconds
        with 1,500 landmarks, whatever the number of rows, so pass many rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            All class labels, in the first call; by default those of its rows. A class is
            learned from its second row on: until then its rows wait, and its prior and
            probabilities are 0. Until two classes can be learned, all rows wait, and predictions
            are the class frequencies.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows, as in `fit`, in all calls or in none. Rows of a group may come
            in several calls.
        forget : float, default=1.0
            Factor for the weights of all rows of earlier calls, above 0 and at most 1.

        Returns
        -------
        self
            Fitted.
        """
        if is_word(self.class_weight, "balanced"):
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} depends on all rows, which partial_fit does "
                "not know. Give a dictionary of class to number."
            )
        check_given(classes)
        classes = on_host(classes)
        return self._add_rows(X, y, sample_weight, groups, forget, classes=classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        binary = self.threshold is not None or takes_two_classes(self.criterion)
        tags.classifier_tags.multi_class = not binary
        return tags

    def _decide(self, target: ClassTarget, request: Request) -> Decision:
        """Return the rule from probabilities to a class, or raise an error for invalid parameters.

        Parameters
        ----------
        target : ClassTarget
            The target with all classes.
        request : Request
            Criterion, solver and λ, used if at least two classes have rows.
        """
        if target.seen.n_classes == 1:
            request = PRIOR_REQUEST
        request.criterion.check_target(target.seen, request.regularization)
        if self.statistics not in ("loo", "training"):
            raise unknown_choice("statistics", self.statistics, ["loo", "training"])
        if self.statistics == "training" and request.regularization == 0.0:
            raise InvalidInputError(
                "Without regularization, the fit is exact on training rows, which then have no "
                "scatter: statistics must be 'loo'. Got 'training' and regularization=0."
            )
        self._check_n_components(target)
        return Decision.make(
            target, priors=self.priors, class_costs=self.class_costs, threshold=self.threshold
        )

    def _check_n_components(self, target: ClassTarget) -> int:
        """Return the number of columns of `transform`, or raise a clear error."""
        most, asked = target.n_classes - 1, self.n_components
        if asked is None:
            return most
        if not (is_count(asked) and asked <= most):
            raise InvalidInputError(
                f"n_components must be an integer from 1 to n_classes - 1 = {most}, or None. "
                f"Got {asked!r}."
            )
        return int(asked)

    # ---- prediction --------------------------------------------------------------------------

    def _result_of(self, method: str) -> tuple[tuple[int, ...], Any]:
        """Return the shape of a method's result for one row, and its dtype."""
        n_classes = len(self.classes_)
        if method == "predict":
            return (), self.classes_.dtype
        if method == "decision_function" and n_classes == 2:
            return (), np.float64
        if method == "predict_set":
            return (n_classes,), np.bool_
        return (self._n_features_out if method == "transform" else n_classes,), np.float64

    def _log_posterior(self, X: Any) -> FloatArray:
        """Return log p(class | x) up to a constant of the row, of shape (n_rows, n_classes)."""
        head, scores = self.model_.head, self.model_.scores(X)
        return np.asarray(head.discriminant.log_likelihood(scores) + head.decision.log_priors)

    @by_chunks
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of the classes for each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows. For a `Source` an iterator over the results of its chunks is returned, for
            a Dask collection a Dask array with the same partitions.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the log-odds of the second class minus the decision boundary that
            costs or a threshold set; it is predicted above 0. For more classes, log-posteriors
            up to a constant of each row, plus costs; the largest is predicted.
        """
        decision: FloatArray = self._log_posterior(X) + self.model_.head.decision.offsets
        return decision[:, 1] - decision[:, 0] if decision.shape[1] == 2 else decision

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows, as for `decision_function`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        model = self.model_
        decision = self._log_posterior(X) + model.head.decision.offsets
        assert model.classes is not None
        return np.asarray(model.classes[decision.argmax(axis=1)])

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, which do not depend on costs or thresholds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows, as for `decision_function`.

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
            New rows, as for `decision_function`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log-probabilities.
        """
        return np.asarray(log_softmax(self._log_posterior(X), axis=1))

    @by_chunks
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        per_class: bool = False,
        allow_empty: bool = False,
    ) -> NDArray[np.bool_]:
        """Return a prediction set of classes for each row, with the given coverage.

        The set contains the classes whose probability is at least a threshold. The share
        ``coverage`` of the held-out training rows reach it with the probability of their own class.
        These are the held-out rows of `expected_`; nothing is fitted again.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows, as for `decision_function`.
        coverage : float, default=0.9
            The share of new rows whose class is to be in their set, above 0 and below 1.
        per_class : bool, default=False
            Whether this share is to hold for the rows of every class, with a threshold for each.
            The share then does not depend on the class frequencies of new rows. A class
            with fewer than coverage/(1 − coverage) held-out rows, 9 for 0.9, is in every set.
        allow_empty : bool, default=False
            Whether a set may be empty, if no class is likely enough. By default such a set
            contains the most probable class, and then covers more rows than asked for if the
            accuracy is above ``coverage``.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_classes)
            Whether each class of ``classes_`` is in the set.

        Notes
        -----
        *What is exact.* If the probabilities of n rows and of a new row are exchangeable, the
        probability of the new row's own class reaches the threshold with a probability of at least
        ``coverage``, and without ties of at most coverage + 1/(n + 1): its rank among the n + 1 is
        uniform (`conformal_quantile` has the proof). This is so if no model has seen any of the
        rows.

        *What is approximate.* Each held-out row is predicted by a kernel learned from the other
        folds and a fit to all other rows, a new row by the model of all rows. Both are alike, not
        exchangeable. In priors that are class frequencies, a new row takes the place of each
        held-out row: these would otherwise count their own class, which a new row does not. As for
        the jackknife and cross-conformal sets, no bound close to ``coverage`` holds for every
        distribution; for the related CV+ it is 1 − 2(1 − coverage) [Barber21]_. In practice the
        share is close to ``coverage``, and rather above it, because
        kernels of held-out rows are learned from fewer rows; docs/measured.md has figures. It is
        an average over rows drawn like the training rows, weighted as in `fit`, not the
        probability given a row. With a few held-out rows it also varies from one training set to
        another, by √(coverage (1 − coverage)/n).

        Sets are made of probabilities, and do not depend on costs or thresholds.
        """
        head, coverage = self.model_.head, check_coverage(coverage)
        if head.expected is None:
            raise InvalidInputError(
                "Prediction sets need rows that were predicted without their labels. This model "
                "has none: it was fitted with statistics='training', or has seen one class only. "
                "Fit with statistics='loo' and rows of two classes."
            )
        posterior = log_softmax(self._log_posterior(X), axis=1)
        found = posterior >= head.least_probabilities(coverage, per_class=per_class)
        if not allow_empty:
            empty = np.flatnonzero(~found.any(axis=1))
            found[empty, posterior[empty].argmax(axis=1)] = True
        return np.asarray(found)

    @by_chunks
    def transform(self, X: Any) -> FloatArray:
        """Return discriminant coordinates, in which the classes have unit covariance.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or Source
            New rows, as for `decision_function`.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The classes differ most along the first column.
        """
        return np.asarray(self.model_.head.coordinates(self.model_.scores(X)))


class KernelDiscriminant(BaseKernelDiscriminant):
    """Kernel discriminant analysis with one given kernel.

    The regularization is chosen by leave-one-out errors in closed form, and probabilities are
    calibrated on held-out rows. Columns are used unscaled.

    Parameters
    ----------
    kernel : kernel, str or callable, default="rbf"
        A kernel of `discernel.kernels`, the name of a scikit-learn pairwise kernel, a scikit-learn
        Gaussian process kernel, a callable or ``"precomputed"``. ``"rbf"`` uses the median
        distance as its width.
    criterion : {"rkda", "fdr"}, default="rkda"
        The definition of the within-class scatter: ``"rkda"`` [Ye08]_ counts samples, ``"fdr"``
        [Kim06]_, for two classes, adds up the class covariances.
    regularization : float or "loo", default="loo"
        λ, relative to the normalized kernel. ``"loo"`` is the largest of a path whose leave-one-out
        error is within 1 % of the least. 0 requires a kernel matrix of full rank and
        ``statistics="loo"``.
    statistics, priors, class_weight, class_costs, threshold, n_components
        As in `MultipleKernelDiscriminant`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    regularization_ : float
        The λ used.
    combined_kernel_ : CombinedKernel
        The centred kernel between new rows and the training rows.
    discriminant_ : Discriminant
        Directions, class means and scalings.
    link_weights_ : dict of str to float
        The weights with which links from scores to log-likelihoods are added: Gaussian classes,
        and a logistic regression on held-out scores.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The share of the between-class variance along each column of `transform`.
    expected_, feature_importances_, feature_importances_std_
        As in `MultipleKernelDiscriminant`.

    See Also
    --------
    MultipleKernelDiscriminant : Learn a combination of kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), KernelDiscriminant()).fit(X[::2], y[::2])
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.98
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
        self._store(locals())

    #: Parameters of other estimators, with fixed values here.
    bank, max_time, verbose, callback = "auto", None, False, None

    def _candidates(self) -> Any:
        """Return the kernel as a list, or its name."""
        return self.kernel if isinstance(self.kernel, str) else [self.kernel]

    def _request(self) -> Request:
        return make_request(criterion=self.criterion, regularization=self.regularization)


class MultipleKernelDiscriminant(BaseKernelDiscriminant):
    """Kernel discriminant analysis with a learned combination of kernels.

    By default, `fit` learns a scale for every column, the weights of twelve kernels and the
    regularization, and calibrates probabilities on held-out rows. Tables with categories, text and
    missing cells need no preparation. Read more in the :doc:`user guide </guide>`.

    Parameters
    ----------
    kernels : "auto", "precomputed", kernel, list of kernels, or dict of names to kernels or columns
        The candidate kernels. ``"auto"`` stands for eleven Gaussian and Laplace kernels around the
        median distance and a linear kernel, on columns divided by their spread and multiplied by
        learned scales; for sparse rows, nine Gaussian kernels and a linear one without learned
        scales. ``"precomputed"``
        expects a stack of kernel matrices as X, with the kernels on the last axis. Lists and
        dictionaries contain kernels of `discernel.kernels`, names of scikit-learn pairwise
        kernels, scikit-learn Gaussian process kernels or callables, and use the columns unscaled;
        ``kernel.on(columns)`` restricts a kernel to one data source. A dictionary of names to
        columns, such as ``{"scan": slice(0, 50), "clinic": ["age", "bmi"]}``, makes one kernel for
        each source, an average of Gaussian kernels or of those of ``"auto"`` on its columns, and
        one for all sources together; the criterion ``"auto"`` leaves out sources that do not help.
    criterion : str or object, default="auto"
        The criterion that determines the weights. ``"auto"`` selects the candidate that predicts
        held-out rows best: of kernels that you pass, the plain average, the best single kernel,
        ``"rkda"`` with shrinkage, or ``"loo"``; with ``kernels="auto"``, equal or learned weights,
        with or without learned scales. ``"rkda"`` [Ye08]_, for any number of classes, and
        ``"fdr"`` [Kim06]_ and ``"margin"`` [Lanckriet04]_, for two, are convex and certified;
        `RKDA(shrinkage=0.1)` is closer to equal weights. ``"loo"`` minimizes the leave-one-out
        error with a penalty on unequal weights. ``"akfd"`` [Fung04]_, ``"alignment"``
        [Pothin06]_ and ``"separability"`` [Yeung06]_ follow these papers. ``"uniform"`` is the
        plain average, and `discernel.criteria.GivenWeights` sets fixed weights.
    solver : str or object, default="auto"
        The solver of the criterion: a name, such as ``"newton"`` or ``"silp"``, or an object of
        `discernel.solvers`. For ``"rkda"``, ``"auto"`` is ``"galerkin"`` with many rows,
        ``"columns"`` with many kernels, and otherwise ``"newton"``. With a named solver or
        ``regularization="joint"``, ``criterion="auto"`` means ``"rkda"``.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ, relative to the normalized kernels. ``"auto"`` means ``"loo"``: the largest λ of a path
        whose leave-one-out error is within 1 % of the least; the criteria ``"auto"`` and ``"loo"``
        choose λ with the weights. ``"joint"`` learns both in one program (``"rkda"`` only). 0
        requires a kernel matrix of full rank and weights that do not depend on λ, such as that of a
        single kernel.
    statistics : {"loo", "training"}, default="loo"
        Scores from which class means and covariance are estimated: held-out predictions, for
        calibrated probabilities, or predictions of the training rows, as in the papers.
    priors : array-like of shape (n_classes,), dict, "uniform" or None, default=None
        Prior class probabilities, in the order of the sorted labels or by label. None uses the
        class frequencies.
    class_weight : dict, "balanced" or None, default=None
        Factors for the sample weights of each class, in everything that is learned. Labels missing
        from the dictionary have the factor 1; ``"balanced"`` gives all classes the same total
        weight. Unlike ``class_costs`` this changes the probabilities, which then assume class
        frequencies in proportion to these weights.
    class_costs : array-like of shape (n_classes,), dict, "balanced" or None, default=None
        Costs of misclassifying a sample of each class. Labels missing from the dictionary have
        the cost 1; ``"balanced"`` is n_samples / (n_classes × samples of the class).
    threshold : float or "roc", optional
        For two classes, the probability of the second class, ``classes_[1]``, from which it is
        predicted; labels are sorted, so of "fraud" and "ok" it is "ok". ``"roc"`` maximizes the
        difference of true and false positive rates.
    n_components : int, optional
        Number of columns of `transform`, at most n_classes − 1 and the rank of the kernel.
    tol : float, default=1e-6
        Tolerance of the relative duality gap.
    max_iter : int, optional
        Maximum number of iterations of the solver for one λ. For ``"newton"`` these are Newton
        steps, whatever the number of kernels.
    random_state : int or RandomState, optional
        With more than 500 rows, draws the rows on which ``"auto"`` searches and on which λ is
        first searched. None means 0.
    bank : str or object, default="auto"
        How kernels are computed: a name, or an object of `discernel.bank` with a memory limit or
        rank, such as ``LowRank(500)``, ``Tiled(memory="2GB")`` or ``AutoBank(memory="1GB")``. The
        memory limit, 256 MiB by default, is for kernel matrices; exact factorizations need two
        matrices of n_samples² numbers besides.

        - ``"dense"`` keeps all matrices.
        - ``"tiled"`` recomputes tiles when they are needed, so memory does not grow with the
          number of kernels.
        - ``"factored"`` keeps low-rank factors, exact to rounding, of smooth kernels of few
          features.
        - ``"iterative"`` needs no matrix of n_samples² numbers: it solves systems by conjugate
          gradients on tiles, and certifies gaps as with a factorization. Leave-one-out
          predictions are then estimates, with an error of about 2 % for λ ≥ 1e-3, and the criteria
          ``"loo"`` and ``"margin"`` are not available.
        - ``"distributed"`` does the same on the workers of the active ``distributed.Client``, each
          of which holds all rows.
        - ``"lowrank"`` approximates kernels by Nyström features. Time grows linearly with the
          number of rows, and the model keeps landmarks instead of training rows.
          ``low_rank_loss_`` reports the loss. Features that do not fit into the memory limit are
          summed chunk by chunk. The rank, of all kernels together, is 1,500 by default or what
          fits; with ``kernels="auto"`` it is the number of landmarks.
        - ``"auto"`` keeps matrices that fit into the memory limit (a quarter of it for a convex
          criterion with λ given) and factors many kernels of low rank. With more rows it selects
          the fastest exact method that memory and time allow, or else ``"lowrank"``;
          ``forecast_`` has the reason.
    max_time : float or str, optional
        Deadline in seconds, or as ``"90s"``, ``"10m"`` or ``"1.5h"``. The fit proceeds in stages:
        equal weights on 500 rows, then more rows, a higher rank and learned weights as time
        allows. Parameters that you set are kept; a solver that runs out of time stops with its
        current weights. ``plan_`` lists the stages. Without a deadline, an exact fit may take ten
        minutes. `partial_fit` ignores the deadline.
    device : str, optional
        Device for the work that grows with the square of the rows: ``"cuda"``, ``"cuda:1"`` or
        another device of PyTorch. The default is the device of X. Systems are factored in single
        precision and refined in double, and gaps are computed in double precision. `to_cpu`
        returns a model that needs no device. ``bank`` must be ``"auto"``, ``"iterative"`` or
        ``"lowrank"``; for given matrices ``"auto"`` or ``"dense"``.
    verbose : bool, default=False
        Whether to print the chosen bank, the expected memory and time, and the progress. Without
        it, fits expected to take two minutes or more emit a warning.
    callback : callable, optional
        Called with a `Progress` once per iteration, and with a `RowProgress` once per chunk if
        rows are read in chunks.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the normalized kernels, at least 0. They sum to 1, except for ``RKDA`` with a
        ``norm``.
    kernel_names_ : list of str
        Names of the kernels, in the order of the weights.
    regularization_ : float
        The λ used, given, chosen or learned.
    gap_ : float or None
        The certified relative duality gap, a bound on the distance of the weights from the
        optimum. None if the criterion is not convex.
    learned_kernel_ : LearnedKernel
        The complete result of the solver; ``considered`` lists the candidates of ``"auto"``.
    forecast_ : Stage or None
        The chosen bank, the reason, and the expected time and memory. None for few rows, unless
        `verbose`.
    plan_ : FitPlan
        How the fit was computed, and why: the stages with their times.
    encoder_ : TableEncoder or None
        The encoding of the columns of a table. None for plain numbers.
    feature_importances_ : ndarray of shape (n_features,)
        Increase of the log-loss of held-out training rows when the cells of a column come from
        other rows, as shares that are at least 0 and sum to 1, computed on first access. They
        describe the model that predicts, whatever its kernels. Increases that may be due to chance
        are shrunk towards 0. If no column helps beyond chance, the shares are those of the squared
        change of the scores; if predictions depend on no column, all are 0. Not available for
        sparse rows and precomputed kernels.
    feature_importances_std_ : ndarray of shape (n_features,)
        Standard errors of `feature_importances_`.
    metric_ : Metric
        The column scales that ``kernels="auto"`` learned on dense rows. The chosen candidate
        records the power to which it uses them; if that is 0, they were learned on four fifths of
        a sample, and are all 1 if there was no time to learn them.
    streamed_ : Streamed
        After a fit to rows in chunks or `partial_fit`: the number of rows, of sampled rows and of
        landmarks, and the share of the kernel's variance that the landmarks capture. ``bank_`` is
        then ``"stream"``, and ``learned_kernel_`` refers to the sample.
    expected_ : Expectation or None
        The performance to expect on new rows: accuracy with an interval, log-loss, and the rows
        they were estimated on. None with ``statistics="training"``, and while `partial_fit` has
        seen only one class.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    combined_kernel_ : CombinedKernel or CombinedFeatures
        The centred learned kernel between new rows and the training rows; with
        ``bank="lowrank"``, the centred features of new rows.
    low_rank_loss_ : LowRankLoss or None
        The loss of ``bank="lowrank"``: captured share of the trace, change of the objective,
        held-out errors. None for other banks.
    discriminant_ : Discriminant
        Directions, class means and scalings.
    link_weights_ : dict of str to float
        The weights with which links from scores to log-likelihoods are added: Gaussian classes,
        a logistic regression on held-out scores and, with ``kernels="auto"`` or
        ``criterion="auto"`` and up to 2,000 rows, a kernel logistic regression.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The share of the between-class variance along each column of `transform`.
    n_features_in_ : int
        The number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if all are strings.
    n_iter_ : int
        The number of iterations of the solver.

    See Also
    --------
    MultipleKernelRidge : Regression with learned kernels.
    MultiLabelKernelDiscriminant : Several labels for each row.
    learn_kernel : Learn the weights of given kernel matrices.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    0.98
    >>> clf.learned_kernel_.considered[0].name
    'average'
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
        self._store(locals())
