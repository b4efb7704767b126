"""The base of all estimators: parameters of kernels, arrays of any library, the fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, cast

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
    is_frame,
    on_host,
)
from discernel.bank import BankChoice
from discernel.exceptions import is_word
from discernel.kernels.make import get_settings, with_settings
from discernel.learn import Request, make_request
from discernel.learn.chunks import StreamLearner, naming_rows
from discernel.learn.rows import Learning, learn_rows, rows_vary
from discernel.learn.stages import FitRun
from discernel.learn.training import (
    TrainingRows,
    are_precomputed,
    check_training,
    take_sparse,
)
from discernel.model import Model
from discernel.plan import parse_duration
from discernel.rows.chunks import Chunk, is_dask
from discernel.rows.sources import Source

Method = TypeVar("Method", bound=Callable[..., Any])


def view(path: str, doc: str, *, optional: bool = False) -> Any:
    """Return a property of an estimator that reads its model, and is not there before a fit.

    Parameters
    ----------
    path : str
        Where it is in the model.
    doc : str
        What it is.
    optional : bool, default=False
        Whether None means that there is none.
    """
    read = attrgetter(path)

    def get(self: Any) -> Any:
        found = read(self.model_)
        if found is None and optional:
            raise AttributeError(f"This fit of {type(self).__name__} has none: {doc}")
        return found

    return property(get, doc=doc)


class BaseKernelEstimator(BaseEstimator):
    """An estimator whose kernels are parameters, and whose fit makes a `Model`.

    Subclasses have a parameter ``kernels``, or say otherwise by `_candidates` what there is. Their
    `fit` sets ``model_`` and nothing else; fitted attributes are views of it.
    """

    #: The parameters that hold kernels.
    _kernel_parameters: ClassVar[tuple[str, ...]] = ("kernel", "kernels")
    #: Whether kernels can be computed on a device.
    _computes_on_device: ClassVar[bool] = True
    #: Whether a kernel of low rank serves as well, whether kernels are learned again without each
    #: fold, and whether features can be summed up.
    _approximable: ClassVar[bool] = True
    _holds_out: ClassVar[bool] = False
    _sums: ClassVar[bool] = False
    #: How `check_training` checks y.
    _y_checks: ClassVar[Mapping[str, Any]] = {}
    #: The clock of a time limit.
    _clock: Any = staticmethod(time.perf_counter)
    kernels: Any
    device: Any = None
    model_: Model

    n_features_in_ = view("reader.n_features", "The number of columns.", optional=True)
    feature_names_in_ = view("reader.names", "The names of the columns.", optional=True)
    encoder_ = view("reader.encoder", "What became of the columns of a table; None for numbers.")
    kernels_ = view("reader.kernels", "The kernels, with all that depends on rows fixed.")
    combined_kernel_ = view(
        "kernel", "The learned kernel between new rows and those kept.", optional=True
    )
    learned_kernel_ = view("facts.learned", "Everything the solver said.", optional=True)
    kernel_names_ = view("facts.names", "What the weights belong to.")
    kernel_weights_ = view("facts.learned.weights", "The weights of the normalised kernels.")
    regularization_ = view("facts.learned.regularization", "The λ used, chosen or learned.")
    gap_ = view("facts.learned.gap", "The certified relative duality gap, or None.")
    bank_ = view("facts.bank", "How the rows were learned from: the bank, or 'stream'.")
    forecast_ = view("facts.forecast", "What the fit was expected to take, or None.")
    plan_ = view("facts.plan", "How the fit was computed, and why.")
    metric_ = view("facts.metric", "The scales of columns that were considered.", optional=True)
    low_rank_loss_ = view("facts.low_rank_loss", "What a low rank lost, or None.")

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
        self.kernels = kernels
        self.criterion = criterion
        self.solver = solver
        self.regularization = regularization
        self.tol = tol
        self.max_iter: Any = max_iter  # a number, always, where a subclass says so
        self.random_state = random_state
        self.bank = bank
        self.max_time = max_time
        self.device = device
        self.verbose = verbose
        self.callback = callback

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the solver."""
        return max(1, int(self.learned_kernel_.n_iter))

    @property
    def feature_importances_(self) -> FloatArray:
        """The loss of predictions without each column, as shares that sum to 1."""
        return self._importances()[0]

    @property
    def feature_importances_std_(self) -> FloatArray:
        """The standard errors of `feature_importances_`, over rows."""
        return self._importances()[1]

    def _importances(self) -> tuple[FloatArray, FloatArray]:
        known = self.model_.facts.importances if "model_" in vars(self) else None
        if known is None:
            raise AttributeError(
                f"{type(self).__name__} must be fitted to dense rows with columns to have "
                "importances. It is not fitted, or its rows are sparse or its kernels "
                "precomputed."
            )
        return cast(tuple[FloatArray, FloatArray], known.found)

    def _candidates(self) -> Any:
        """Return the kernels as the user gave them."""
        return self.kernels

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel, and what predicts with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: an array of any library, a sparse matrix, a dataframe, with
            ``kernels="auto"`` of any columns, what callable kernels take, or for precomputed
            kernels a stack of shape (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            What is to be predicted: class labels, labels as columns, or numbers, as the class says.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, at least 0: relative to the others, and a row of weight 0 is
            absent.

        Returns
        -------
        self
            Fitted.
        """
        given, device = (X, y, sample_weight), None
        try:
            found, named = check_given(*given), self.device
            # What other libraries have in NumPy's memory is computed by NumPy.
            if named != "cpu" and self._computes_on_device:  # "cpu" needs no other library
                device = elsewhere(found if named is None else Device.named(named))
            X, y, sample_weight = map(on_host, given)
            self.model_ = self._fit(X, y, sample_weight, device).prepared()
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

    def _fit(self, X: Any, y: Any, sample_weight: Any, device: Device | None) -> Model:
        """Return the model of a fit to arrays of NumPy, within the time limit if there is one."""
        return FitRun(self, device, parse_duration(self.max_time)).fit(X, y, sample_weight)

    def _fit_model(self, X: Any, y: Any, sample_weight: Any, run: FitRun) -> Model:
        """Return the model of a stage of a fit: check the rows, plan, learn, and make the model.

        Parameters
        ----------
        X, y, sample_weight : array-like
            Rows, labels and weights; a `Source` has all three.
        run : FitRun
            The fit.
        """
        if self._sums and isinstance(X, Source):
            return StreamLearner(self, run).fit(X)
        training = check_training(self, X, y, sample_weight, **self._y_checks)
        target, *known = self._make_target(training, run.request)
        with run.working(training) as stage:
            if stage.sums and rows_vary(training.X, training.reader.kernels, run.tables):
                del training, target, known  # read again, chunk by chunk
                return StreamLearner(self, run).fit_rows(X, y, sample_weight, planned=True)
            return self._make_model(learn_rows(run, training, target), *known)

    def _make_target(self, training: TrainingRows, request: Request) -> tuple[Any, ...]:
        """Return the target, and all else that `_make_model` needs, or raise a clear error."""
        raise NotImplementedError

    def _make_model(self, learning: Learning, *known: Any) -> Model:
        """Return the model of a learned kernel.

        Parameters
        ----------
        learning : Learning
            The learned kernel.
        *known
            What `_make_target` returned beside the target.
        """
        raise NotImplementedError

    def _held_out_loss(self, model: Model) -> float | None:
        """Return the loss of held-out rows with a model; None if unknown."""
        return None

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, bank: BankChoice) -> tuple[Any, ...]:
        """Return rows, labels and weights as they are learned from."""
        return X, y, sample_weight

    def _survey_rows(self, X: Any, run: FitRun) -> Any:
        """Return the survey of rows in chunks; None for rows in memory."""
        in_chunks = self._sums and isinstance(X, Source)
        return StreamLearner(self, run).survey(X) if in_chunks else None

    def _when_fitting(self) -> dict[str, str]:
        """Return the advice for a device that fails in a fit, by the parameters there are."""
        params = self.get_params(deep=False)
        leave_out = " and leave `device` out" if "device" in params else ""
        iterates = params.get("bank", "iterative") != "iterative"
        return {
            "smaller": "Take fewer rows" + (" or bank='iterative'" if iterates else ""),
            "instead": f"give NumPy arrays{leave_out}, to compute on the processor",
        }

    # ---- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and with ``deep`` those of the kernels among them.

        Parameters
        ----------
        deep : bool, default=True
            Whether the settings of kernels are included: ``kernel__width``, ``kernels__0__width``
            in a list, ``kernels__name__width`` in a dictionary.

        Returns
        -------
        dict of str to value
            By name.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._kernel_parameters:
                if name in params:
                    settings = get_settings(params[name])
                    params |= {f"{name}__{inner}": value for inner, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of kernels among them, which are replaced and never changed.

        Parameters
        ----------
        **params : dict
            By the names of `get_params`.

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
        tags.input_tags.pairwise = are_precomputed(candidates)
        tags.input_tags.sparse = take_sparse(candidates)
        # Not `categorical`: scikit-learn's checks would make codes of all numbers, as they would
        # not of what histogram gradient boosting takes, which has no such tag either.
        tags.input_tags.allow_nan = tags.input_tags.string = is_word(candidates, "auto")
        return tags

    def to_cpu(self) -> Self:
        """Return the fitted model as one of NumPy, which can be saved and used anywhere.

        Returns
        -------
        estimator
            Another one that predicts the same, up to rounding.
        """
        check_is_fitted(self, "model_")
        return self._with_model(self.model_.to_cpu())

    def for_prediction(self) -> Self:
        """Return an estimator that predicts the same, without what only further fitting needs.

        Returns
        -------
        estimator
            Another one, without a callback, and without the sums that `partial_fit` adds rows to.
        """
        return self._with_model(self.model_.for_prediction(), silent=True)

    def _with_model(self, model: Model, *, silent: bool = False) -> Self:
        """Return an estimator of the same parameters with another model."""
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
        from discernel.inspection.facts import model_facts
        from discernel.show.notebook import notebook_html

        return notebook_html(model_facts(self).blocks())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._facts_html()
        return bundle


# ---- arrays of other libraries -----------------------------------------------------------------


def like_input(method: Method) -> Method:
    """Return a method of rows whose result is an array of their library, on their device.

    The method itself sees NumPy's only. Text stays NumPy's, and where scikit-learn is to make a
    dataframe of the result, it gets that.

    Parameters
    ----------
    method : callable
        A method of an estimator that takes rows and returns an array.
    """

    @wraps(method)
    def converted(self: Any, X: Any) -> Any:
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")  # raises, and says what to do
        if self.model_.device is None and type(X) is np.ndarray:
            return method(self, X)
        device = check_given(X)
        with device_errors(self.model_.device or device, **_when_predicting(self)):
            found = method(self, on_host(X))
            in_frame = method.__name__ == "transform" and _makes_frames(self)
            return found if device is None or in_frame else device.returned(found)

    return cast(Method, converted)


def by_chunks(method: Method) -> Method:
    """Return a method of rows that also takes those that are not in memory.

    Of a source it gives an iterator of its results for the chunks, of a Dask collection a Dask
    array, which is computed when it is asked for; of an array of another library one of that, on
    the same device.
    """
    in_memory = like_input(method)

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        if type(X) is np.ndarray or not (isinstance(X, Source) or is_dask(X)):
            return in_memory(self, X)
        check_is_fitted(self, "model_")
        fitted = self.for_prediction()  # as it is now, whenever chunks are predicted

        def work(chunk: Chunk) -> Any:
            with naming_rows(chunk.place):
                return in_memory(fitted, chunk.X)

        if isinstance(X, Source):
            return X.map(work)
        from discernel.rows.dask import map_lazily

        work.__name__ = method.__name__
        rows = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
        fitted.model_.reader.check_columns(rows)
        return map_lazily(work, X, *fitted._result_of(method.__name__))

    return cast(Method, either)


def score_any(score: Method) -> Method:
    """Return a method of scikit-learn that scores rows, labels and weights of any library.

    Parameters
    ----------
    score : callable
        The method.
    """

    @wraps(score)
    def scored(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        check_given(X, y, sample_weight)
        return float(score(self, on_host(X), on_host(y), on_host(sample_weight)))

    return cast(Method, scored)


def _makes_frames(estimator: Any) -> bool:
    """Whether `set_output`, or scikit-learn's own setting, asks for dataframes."""
    return bool(_get_output_config("transform", estimator)["dense"] != "default")


def _when_predicting(estimator: Any) -> dict[str, str]:
    there = estimator.model_.device is not None
    return {
        "smaller": "Take fewer rows at a time",
        "instead": "give NumPy arrays"
        + (" to the model that `to_cpu()` returns, to compute on the processor" if there else ""),
    }
