"""Arrays of other libraries: brought to NumPy at the door, and what is found goes back there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.utils._set_output import _get_output_config

from discernel.arrays import check_given, device_errors, device_failure, device_of, on_host

__all__ = ["ScoresAnywhere", "where_rows_are", "whole_or_nothing"]

Method = TypeVar("Method", bound=Callable[..., Any])


def where_rows_are(method: Method) -> Method:
    """Return a method of rows whose result is an array of their library, on their device.

    The method itself sees NumPy's only. Text stays NumPy's, and where scikit-learn is to make a
    dataframe of the result, it gets that.

    Parameters
    ----------
    method : callable
        A method of an estimator that takes rows and returns an array.
    """

    @wraps(method)
    def there(self: Any, X: Any) -> Any:
        device = check_given(X)
        with device_errors(self._device or device, **_when_predicting(self)):
            found = method(self, on_host(X))
            in_frame = method.__name__ == "transform" and _makes_frames(self)
            return found if device is None or in_frame else device.returned(found)

    return cast(Method, there)


def whole_or_nothing(fit: Method) -> Method:
    """Return a method that fits to arrays of any library, or leaves all as it was.

    The method itself sees NumPy's only; `_device` says where to compute. What a device says when
    it fails becomes an error that says what to do.

    Parameters
    ----------
    fit : callable
        A method of an estimator that takes rows, labels and weights.
    """

    @wraps(fit)
    def whole(self: Any, *given: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            self._device = self._device_for(*given, *named.values())
            here = {name: on_host(value) for name, value in named.items()}
            return fit(self, *map(on_host, given), **here)
        except BaseException as error:
            found = map(device_of, (*given, *named.values()))
            device = self._device or next((each for each in found if each is not None), None)
            self.__dict__ = before
            failed = device_failure(error, device, **_when_fitting(self))
            if failed is None:
                raise
            raise failed from error

    return cast(Method, whole)


class ScoresAnywhere:
    """Score rows, labels and weights of any library; before scikit-learn's class that scores."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how well rows are predicted.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            What is right for them.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts.

        Returns
        -------
        float
            Of classes, the share of rows that are predicted right; of numbers, R².
        """
        check_given(X, y, sample_weight)
        given = on_host(X), on_host(y), on_host(sample_weight)
        return float(super().score(*given))  # type: ignore[misc]


def _makes_frames(estimator: Any) -> bool:
    """Whether `set_output`, or scikit-learn's own setting, asks for dataframes."""
    return bool(_get_output_config("transform", estimator)["dense"] != "default")


def _when_fitting(estimator: Any) -> dict[str, str]:
    """Return what to do where a device fails in a fit; only what this estimator has."""
    leave_out = " and leave `device` out" if hasattr(estimator, "device") else ""
    iterates = getattr(estimator, "bank", "iterative") != "iterative"
    return {
        "smaller": "Take fewer rows" + (" or bank='iterative'" if iterates else ""),
        "instead": f"give NumPy arrays{leave_out}, to compute on the processor",
    }


def _when_predicting(estimator: Any) -> dict[str, str]:
    there = estimator._device is not None
    return {
        "smaller": "Take fewer rows at a time",
        "instead": "give NumPy arrays"
        + (" to the model that `to_cpu()` returns, to compute on the processor" if there else ""),
    }
