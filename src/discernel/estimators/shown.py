"""What a notebook shows of a fitted estimator beside scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import Any

from discernel.notebook import bars, panel, top_bars

__all__ = ["ShownInNotebooks"]

_MOST = 10
_NO_IMPORTANCE = "A weight says how much of a kernel is used, not how important its columns are."


class ShownInNotebooks:
    """Put weights and importances of a fit, as bars, below the diagram of scikit-learn.

    An estimator that is not fitted looks as scikit-learn has it, and so does
    ``set_config(display="text")``.
    """

    def _repr_html_inner(self) -> str:
        return self._with_learned(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._with_learned(bundle["text/html"])
        return bundle

    def _with_learned(self, diagram: str) -> str:
        if not hasattr(self, "learned_kernel_"):
            return diagram
        return diagram + panel(_expected(self), _importances(self), _learned(self))


def _expected(estimator: Any) -> str:
    """Return what to expect of new rows, in a paragraph; nothing where it is not known."""
    found = getattr(estimator, "expected_", None)
    if found is None:
        return ""
    return f"<p><strong>Expected of new rows:</strong> {escape(repr(found))}</p>"


def _importances(estimator: Any) -> str:
    """Return bars of how much columns matter, with their standard errors."""
    if not hasattr(estimator, "feature_importances_"):
        return ""
    shares, spreads = estimator.feature_importances_, estimator.feature_importances_std_
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if len(names) != len(shares):
        names = [f"column {i}" for i in range(len(shares))]
    texts = [f"{a:z.3f} ± {b:.3f}" for a, b in zip(shares, spreads, strict=True)]
    rows = top_bars(names, shares.tolist(), texts, most=_MOST, what="columns")
    return bars("Which columns matter (share ± standard error)", rows)


def _learned(estimator: Any) -> str:
    """Return the weights and how they were learned, to be unfolded."""
    learned = estimator.learned_kernel_._html()
    note = f'<p class="note">{escape(_NO_IMPORTANCE)}</p>'
    return f"<details open><summary>Learned kernel</summary>{learned}{note}</details>"
