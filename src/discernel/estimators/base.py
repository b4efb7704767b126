"""The base class of all estimators: kernel parameters, array conversion and the fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial, wraps
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from discernel.arrays import (
    Device,
    FloatArray,
    check_given,
    device_errors,
    device_failure,
    device_of,
    elsewhere,
    is_dask,
    is_frame,
    on_host,
)
from discernel.bank import BankChoice
from discernel.exceptions import InvalidInputError, check_number
from discernel.kernels.make import get_settings, learns_scales, with_settings
from discernel.learn import Request, make_request
from discernel.learn.rows import Learning, learn_rows, rows_vary
from discernel.learn.stages import FitRun
from discernel.model import Model
from discernel.model.training import TrainingRows, check_training, input_kinds
from discernel.plan import parse_duration
from discernel.rows.chunks import Chunk, errors_with_origin
from discernel.rows.sources import Source, is_in_chunks

if TYPE_CHECKING:
    from discernel.learn.chunks import StreamLearner

Method = TypeVar("Method", bound=Callable[..., Any])


def view(path: str, doc: str, *, optional: bool = False) -> Any:
    """Return a fitted attribute of an estimator: a property that reads ``model_``.

    Parameters
    ----------
    path : str
        The attribute of the model, with dots for nested attributes.
    doc : str
        The docstring.
    optional : bool, default=False
        Whether to raise an `AttributeError` if the value is None.
    """
    read = attrgetter(path)

    def get(self: Any) -> Any:
        found = read(self.model_)
        if found is None and optional:
            raise AttributeError(f"This fit of {type(self).__name__} has no such attribute: {doc}")
        return found

    return property(get, doc=doc)


class BaseKernelEstimator(BaseEstimator):
    """An estimator with kernels as parameters, whose `fit` makes a `Model`.

    Subclasses have a parameter ``kernels``, or override `_candidates`. Their `fit` sets only
    ``model_``; all fitted attributes are properties that read it.
    """

    #: Names of the parameters with kernels.
    _kernel_parameters: ClassVar[tuple[str, ...]] = ("kernel", "kernels")
    #: Whether the estimator computes on devices.
    _computes_on_device: ClassVar[bool] = True
    #: Whether labels or numbers are predicted. Kernels may then be approximated by low-rank
    #: features, and are learned again without each fold, for held-out scores.
    _predicts: ClassVar[bool] = True
    #: Whether rows in chunks can be fitted, by sums of features.
    _sums: ClassVar[bool] = False
    #: Whether a kernel logistic regression of the classes is a part of the model.
    _fits_logits: bool = False
    #: Options of `check_training` for the check of y.
    _y_checks: ClassVar[Mapping[str, Any]] = {}
    #: The clock of a time limit.
    _clock: Any = staticmethod(time.perf_counter)
    kernels: Any
    device: Any = None
    model_: Model

    n_features_in_ = view("reader.n_features", "The number of columns.", optional=True)
    feature_names_in_ = view("reader.names", "The names of the columns.", optional=True)
    encoder_ = view("reader.encoder", "The encoder of a table; None for plain numbers.")
    kernels_ = view("reader.kernels", "The kernels, with values that depend on the rows fixed.")
    combined_kernel_ = view(
        "kernel", "The learned kernel between new rows and kept rows.", optional=True
    )
    learned_kernel_ = view("facts.learned", "The complete result of the solver.", optional=True)
    kernel_names_ = view("facts.names", "Names of the kernels, in the order of the weights.")
    kernel_weights_ = view("facts.learned.weights", "The weights of the normalized kernels.")
    regularization_ = view("facts.learned.regularization", "The λ used, given, chosen or learned.")
    gap_ = view("facts.learned.gap", "The certified relative duality gap, or None.")
    bank_ = view("facts.bank", "The name of the bank, or 'stream' for rows in chunks.")
    forecast_ = view("facts.forecast", "The expected time and memory of the fit, or None.")
    plan_ = view("facts.plan", "How the fit was computed, and why.")
    metric_ = view("facts.metric", "The learned column scales.", optional=True)
    streamed_ = view("facts.streamed", "Sizes of a fit to rows in chunks.", optional=True)
    low_rank_loss_ = view("facts.low_rank_loss", "The loss of bank='lowrank', or None.")

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        criterion: Any = "auto",
        solver: Any = "auto",
        regularization: float | str = "auto",
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

    def _store(self, given: Mapping[str, Any]) -> None:
        """Set every parameter of the constructor as an attribute.

        Parameters
        ----------
        given : mapping of str to value
            The ``locals()`` of the constructor.
        """
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the solver."""
        return max(1, int(self.learned_kernel_.n_iter))

    @property
    def feature_importances_(self) -> FloatArray:
        """The importances of the columns, at least 0 and summing to 1."""
        return self._importances()[0]

    @property
    def feature_importances_std_(self) -> FloatArray:
        """The standard errors of `feature_importances_`, over rows."""
        return self._importances()[1]

    def _importances(self) -> tuple[FloatArray, FloatArray]:
        """Return importances and standard errors, or raise an `AttributeError`."""
        known = self.model_.facts.importances if "model_" in vars(self) else None
        if known is None:
            raise AttributeError(
                f"{type(self).__name__} must be fitted to dense rows with columns to have "
                "importances. It is not fitted, or its rows are sparse or its kernels "
                "precomputed."
            )
        return cast(tuple[FloatArray, FloatArray], known.found)

    def _candidates(self) -> Any:
        """Return the candidate kernels, as given by the user."""
        return self.kernels

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the kernel, and fit the model with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or Source
            Training rows: an array, a sparse matrix, a DataFrame (of any columns with
            ``kernels="auto"``), objects for callable kernels, or for precomputed kernels a stack
            of shape (n_samples, n_samples, n_kernels). Discriminants with one class for each row
            and `MultipleKernelRidge` also take a `Source` of `open_rows`. It is read twice, one
            chunk at a time: the kernel is learned on a random sample of some thousands of rows,
            the discriminant or regression on all rows, with kernels at landmarks. Dask collections
            are read in the same way, where their partitions are stored; with
            ``bank="distributed"`` their rows are collected instead.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The target: class labels, one 0/1 column for each label, or numbers, depending on the
            estimator. Omit it for a `Source`, which contains it; for a Dask DataFrame this may be
            the name of a column.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, at least 0; rows of weight 0 are ignored. Weights are relative:
            their scale changes nothing. Leave-one-out removes a row with its whole weight, and
            intervals use the effective number of rows, (Σω)²/Σω².
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows, such as patients with several rows each. Predictions are for
            new groups: the rows of a group are held out together, in all folds and leave-one-out
            errors by which kernels, λ and probabilities are chosen, in ``expected_`` and in the
            importances. Intervals count groups.

        Returns
        -------
        self
            Fitted.
        """
        given, device = (X, y, sample_weight, groups), None
        try:
            found, named = check_given(*given), self.device
            # Arrays of other libraries in CPU memory are processed by NumPy.
            if named != "cpu" and self._computes_on_device:  # "cpu" needs no other library
                device = elsewhere(found if named is None else Device.named(named))
            X, y, sample_weight, groups = map(on_host, given)
            self.model_ = self._fit(X, y, sample_weight, groups, device).prepared()
        except BaseException as error:
            devices = (each for each in map(device_of, given) if each is not None)
            failed = device_failure(error, device or next(devices, None), **self._when_fitting())
            if failed is None:
                raise
            raise failed from error
        return self

    def _request(self) -> Request:
        """Return the criterion, solver and λ that the parameters name, checked."""
        return make_request(
            criterion=self.criterion,
            solver=self.solver,
            regularization=self.regularization,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            callback=self.callback,
        )

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, device: Device | None) -> Model:
        """Return the model of a fit to NumPy arrays, within the time limit."""
        return FitRun(self, device, parse_duration(self.max_time)).fit(X, y, sample_weight, groups)

    def _fit_model(self, X: Any, y: Any, sample_weight: Any, groups: Any, run: FitRun) -> Model:
        """Return the model of one stage: check the rows, plan, learn, and make the model.

        Parameters
        ----------
        X, y, sample_weight, groups : array-like
            Rows, labels, weights and groups; a `Source` contains all of them.
        run : FitRun
            The fit.
        """
        if self._is_summed(X):
            return self._stream_learner(run).fit(X)
        training = check_training(self, X, y, sample_weight, groups, **self._y_checks)
        target, *known = self._make_target(training, run.request)
        with run.planned_stage(training) as stage:
            if stage.sums and rows_vary(training.X, training.reader.kernels, run.tables):
                del training, target, known  # read again, chunk by chunk
                return self._stream_learner(run).fit_rows(X, y, sample_weight, groups, planned=True)
            return self._make_model(learn_rows(run, training, target), *known)

    def _refuse_groups(self, groups: Any) -> None:
        """Raise an error if groups are given to an estimator whose held-out rows have none."""
        if groups is not None:
            raise InvalidInputError(
                f"{type(self).__name__} must be fitted without groups: it holds out single rows. "
                "Use MultipleKernelDiscriminant, which holds out groups, or leave groups out."
            )

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target and further arguments of `_make_model`, or raise a clear error."""
        raise NotImplementedError

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel.

        Parameters
        ----------
        learning : Learning
            The learned kernel.
        *known
            The values that `_make_target` returned after the target.
        """
        raise NotImplementedError

    def _held_out_loss(self, model: Model) -> float | None:
        """Return the held-out loss of a model; None if unknown."""
        return None

    def _open_rows(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, bank: BankChoice
    ) -> tuple[Any, ...]:
        """Return rows, labels, weights and groups in memory, or a `Source` with all of them."""
        if not (self._sums and is_in_chunks(X)):
            return X, y, sample_weight, groups
        source = _open_source(X, y, sample_weight, groups)
        if source is X or bank.kind != "distributed":
            return source, None, None, None
        from discernel.rows.dask import load_chunks

        return load_chunks(source)  # every worker gets all rows

    def _is_summed(self, X: Any) -> bool:
        """Return whether rows come in chunks, whose features are summed."""
        return self._sums and isinstance(X, Source)

    def _stream_learner(self, run: FitRun, **options: Any) -> StreamLearner:
        """Return the learner of rows in chunks, whose modules are imported on first use."""
        raise NotImplementedError

    def _add_rows(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, forget: float, **options: Any
    ) -> Self:
        """Add rows to the model, for `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight, groups : array-like
            Rows, labels or numbers, weights and groups.
        forget : float
            Factor for the weights of all rows of earlier calls.
        **options
            Further attributes of the class that fits rows in chunks.
        """
        forget = check_number("parameter forget", forget, positive=True, most=1.0)
        given = X, y, sample_weight, groups
        check_given(*given)
        X, y, sample_weight, groups = map(on_host, given)
        known = self.model_ if "model_" in vars(self) else None
        run = FitRun(self, None if known is None else known.device)
        learner = self._stream_learner(run, **options)
        self.model_ = learner.add_rows(known, X, y, sample_weight, groups, forget)
        return self

    def _when_fitting(self) -> dict[str, str]:
        """Return the advice in errors of a device during a fit."""
        params = self.get_params(deep=False)
        leave_out = " and leave `device` out" if "device" in params else ""
        iterates = params.get("bank", "iterative") != "iterative"
        return {
            "smaller": "Take fewer rows" + (" or bank='iterative'" if iterates else ""),
            "instead": f"give NumPy arrays{leave_out}, to compute on the processor",
        }

    # ---- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` including those of the kernels.

        Parameters
        ----------
        deep : bool, default=True
            Whether the settings of kernels are included: ``kernel__width``, ``kernels__0__width``
            in a list, ``kernels__name__width`` in a dictionary.

        Returns
        -------
        dict of str to value
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._kernel_parameters:
                if name in params:
                    settings = get_settings(params[name])
                    params |= {f"{name}__{inner}": value for inner, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator and of its kernels; kernels are replaced, not changed.

        Parameters
        ----------
        **params : dict
            Values by the names of `get_params`.

        Returns
        -------
        self
            This estimator.
        """
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for path, value in params.items():
            name, _, inner = path.partition("__")
            if inner and name in self._kernel_parameters and name in self._get_param_names():
                nested.setdefault(name, {})[inner] = value
            else:
                plain[path] = value
        for name, changes in nested.items():
            plain[name] = with_settings(plain.get(name, getattr(self, name)), changes)
        super().set_params(**plain)
        return self

    def __sklearn_tags__(self) -> Any:
        tags, candidates = super().__sklearn_tags__(), self._candidates()
        tags.input_tags.pairwise, tags.input_tags.sparse = input_kinds(candidates)
        # Not `categorical`: scikit-learn's checks would then convert all numbers to codes.
        # Histogram gradient boosting, which takes categories too, does not set this tag either.
        tags.input_tags.allow_nan = tags.input_tags.string = learns_scales(candidates)
        return tags

    def to_cpu(self) -> Self:
        """Return a fitted estimator that computes with NumPy, to be saved and used anywhere.

        Returns
        -------
        estimator
            A new estimator with the same predictions, up to rounding.
        """
        check_is_fitted(self, "model_")
        return self._with_model(self.model_.to_cpu())

    def for_prediction(self) -> Self:
        """Return a fitted estimator without the parts that only further fitting needs.

        Returns
        -------
        estimator
            A new estimator with the same predictions, without callback and without the sums to
            which `partial_fit` adds rows.
        """
        return self._with_model(self.model_.for_prediction(), silent=True)

    def _with_model(self, model: Model, *, silent: bool = False) -> Self:
        """Return an estimator with the same parameters and another model."""
        params = self.get_params(deep=False)
        if silent and "callback" in params:
            params["callback"] = None
        found = type(self)(**params)
        found.model_ = model
        return found

    # ---- notebooks ---------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._facts_html()  # type: ignore[no-any-return]

    def _facts_html(self) -> str:
        """Return the facts about a fit as HTML; empty if no kernel was learned."""
        if not hasattr(self, "learned_kernel_"):
            return ""
        from discernel.inspection.facts import facts_html

        return facts_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._facts_html()
        return bundle


# ---- arrays of other libraries -----------------------------------------------------------------


def like_input(method: Method, *, chunks: bool = False) -> Method:
    """Decorate a method to return an array of the same library and device as its input.

    The method itself gets and returns NumPy arrays, or a tuple of them. Arrays of text are not
    converted back, nor are results from which scikit-learn makes a DataFrame.

    Parameters
    ----------
    method : callable
        A method of an estimator that takes rows and options, and returns an array.
    chunks : bool, default=False
        Whether the method also takes rows that are not in memory. For a `Source` it returns an
        iterator over the results of the chunks, for a Dask collection a lazy Dask array.
    """

    @wraps(method)
    def converted(self: Any, X: Any, *given: Any, **options: Any) -> Any:
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")  # raises NotFittedError
        if self.model_.device is None and type(X) is np.ndarray:
            return method(self, X, *given, **options)
        if chunks and is_in_chunks(X):
            return _map_chunks(converted, self, X, *given, **options)
        device = check_given(X)
        with device_errors(self.model_.device or device, **_when_predicting(self)):
            found = method(self, on_host(X), *given, **options)
            in_frame = (
                method.__name__ == "transform"
                and _get_output_config("transform", self)["dense"] != "default"
            )
            if device is None or in_frame:
                return found
            if isinstance(found, tuple):
                return tuple(map(device.returned, found))
            return device.returned(found)

    return cast(Method, converted)


def _map_chunks(
    method: Callable[..., Any], estimator: Any, X: Any, *given: Any, **opts: Any
) -> Any:
    """Return the results of a method for the chunks of X."""
    fitted = estimator.for_prediction()  # later fits must not change lazy results

    def work(chunk: Chunk) -> Any:
        with errors_with_origin(chunk.place):
            return method(fitted, chunk.X, *given, **opts)

    if not is_dask(X):
        return X.map(work)
    from discernel.rows.dask import map_lazily

    work.__name__ = method.__name__
    rows = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
    fitted.model_.reader.check_columns(rows)
    return map_lazily(work, X, *fitted._result_of(method.__name__))


#: Decorate a method that also takes rows in chunks.
by_chunks = partial(like_input, chunks=True)


def score_any(score: Method) -> Method:
    """Decorate the method `score` of a scikit-learn mixin to take arrays of any library or chunks.

    Parameters
    ----------
    score : callable
        The method.
    """

    @wraps(score)
    def scored(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        if is_in_chunks(X):
            return _score_chunks(score, self, _open_source(X, y, sample_weight))
        check_given(X, y, sample_weight)
        return float(score(self, on_host(X), on_host(y), on_host(sample_weight)))

    return cast(Method, scored)


def _score_chunks(score: Callable[..., Any], estimator: Any, source: Source) -> float:
    """Return the score of predictions of rows in chunks, which have labels and weights."""
    check_is_fitted(estimator, "model_")
    fitted = estimator.for_prediction()

    def work(chunk: Chunk) -> tuple[Any, Any, Any]:
        if chunk.y is None:
            raise InvalidInputError(
                f"Rows to score must have labels. Got none in {chunk.place.name}. Name the column "
                "of the target: open_rows(rows, target)."
            )
        with errors_with_origin(chunk.place):
            predicted = fitted.predict(chunk.X)
        return chunk.y, chunk.row_weights, predicted

    parts = list(source.map(work))
    if not parts:
        raise source.no_rows()
    y, weights, predicted = (np.concatenate(each) for each in zip(*parts, strict=True))
    known = SimpleNamespace(predict=lambda X: predicted)  # all that the mixins need
    return float(score(known, None, y, weights))


def _open_source(X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Source:
    """Return a Dask collection as a `Source`; refuse labels, weights or groups beside a Source."""
    from discernel.rows.open import open_rows

    return open_rows(X, y, weights=sample_weight, groups=groups)


def _when_predicting(estimator: Any) -> dict[str, str]:
    """Return the advice in errors of a device during a prediction."""
    on_device = estimator.model_.device is not None
    advice = " to the model that `to_cpu()` returns, to compute on the processor"
    return {
        "smaller": "Take fewer rows at a time",
        "instead": "give NumPy arrays" + (advice if on_device else ""),
    }
