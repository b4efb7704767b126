"""Facts about a fitted model as plain data, and the tables that show them.

`ModelFacts` is made once. The terminal, notebooks, pages and JSON show its blocks, so that all of
them give the same numbers in the same words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from importlib.resources import files
from json import loads
from platform import python_version
from typing import Any

from discernel.show.words import escaped, format_number, join, percent, plural

#: Largest numbers of classes listed with their rows, and of classes in a confusion matrix.
_MOST_CLASSES, _MOST_CONFUSED = 8, 20
#: Up to this number, kernels are listed even if all have the same weight.
_FEW_KERNELS = 3
#: Readable names of the links that probabilities are mixed from.
_LINKS = {
    "gaussian": "Gaussian classes",
    "logistic": "logistic regression",
    "kernel logistic": "kernel logistic regression",
}
_WEIGHTS = "how much of each kernel is used, not how much its columns matter"


# ---- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of a table: its texts, the value of its bar, and whether it is highlighted."""

    cells: tuple[str, ...]
    value: float | None = None
    is_highlighted: bool = False


@dataclass(frozen=True)
class Block:
    """A titled table, sentences, or both.

    Attributes
    ----------
    id : str
        Identifier, used in links.
    title : str
        Title.
    aside : str
        Note on how to read the table.
    rows : tuple of Row
        Rows; cells are a name, then numbers, then texts.
    header : tuple of str
        Column headings; empty for none.
    n_numbers : int
        Number of numeric cells after the name.
    noun : str
        What a row stands for, such as "column". With a noun, `shortened` sums rows beyond a limit.
    form : str
        Format of a sum of values.
    sentences : tuple of str
        Sentences below the table.
    """

    id: str
    title: str
    aside: str = ""
    rows: tuple[Row, ...] = ()
    header: tuple[str, ...] = ()
    n_numbers: int = 0
    noun: str = ""
    form: str = "{:z.3f}"
    sentences: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The title with a capital letter, unless the block has no id and its title is a name."""
        return self.title[:1].upper() + self.title[1:] if self.id else self.title

    @property
    def largest(self) -> float:
        """The largest absolute value of a bar; 0 without bars."""
        return max((abs(row.value) for row in self.rows if row.value is not None), default=0.0)

    def escaped(self) -> Block:
        """Return the block with control characters escaped."""
        rows = tuple(replace(row, cells=escaped(row.cells)) for row in self.rows)
        names = ("title", "aside", "header", "sentences")
        return replace(self, rows=rows, **{name: escaped(getattr(self, name)) for name in names})

    def shortened(self, most: int) -> Block:
        """Return the block with at most ``most`` rows, plus one row with the sum of the others."""
        if not self.noun or len(self.rows) <= most:
            return self
        rest = sum(row.value or 0.0 for row in self.rows[most:])
        name = plural(len(self.rows) - most, f"other {self.noun}")
        empty = ("",) * (len(self.rows[0].cells) - 2)
        text = self.form.format(rest).replace("-", "−")
        return replace(self, rows=(*self.rows[:most], Row((name, text, *empty))))


# ---- facts -------------------------------------------------------------------------------------


def versions_here() -> dict[str, str]:
    """Return the versions of discernel, Python and the numerical libraries."""
    first, *others = ("discernel", "numpy", "scipy", "scikit-learn")
    here = {first: version(first), "python": python_version()}
    return here | {package: version(package) for package in others}


@dataclass(frozen=True)
class Origin:
    """Origin of a model or of the results of a comparison: data, command and versions.

    Attributes
    ----------
    source : str
        File or data set; empty if unknown.
    digest : str
        Digest of the file's content; empty without a file.
    command : str
        Command line; empty if there was none.
    created : str
        Time of creation, in UTC.
    target : str
        Target column; empty without a file.
    versions : dict of str to str
        Versions of discernel, Python and the numerical libraries.
    class_counts : dict of str to int
        Number of rows per class.
    columns : dict of str to str
        How each column of the file was used.
    identifiers : tuple of str
        Columns that were dropped because they identify rows.
    notes : tuple of str
        Notes on how the file was read, and on changed or dropped columns.
    """

    source: str = ""
    digest: str = ""
    command: str = ""
    created: str = ""
    target: str = ""
    versions: Mapping[str, str] = field(default_factory=versions_here)
    class_counts: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    identifiers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Total number of rows."""
        return sum(self.class_counts.values())

    @property
    def versions_text(self) -> str:
        """The versions in one line."""
        return ", ".join(f"{name} {number}" for name, number in self.versions.items())

    def blocks(self) -> list[Block]:
        """Return tables of the origin and of how each column was used; none without a source."""
        if not self.source:
            return []
        digest = self.digest and f"{self.digest} (first 16 digits of SHA-256)"
        facts = [
            ("data", self.source),
            ("digest of the file", digest),
            ("target column", self.target),
            ("command", self.command),
            ("written", self.created),
            ("versions", self.versions_text),
        ]
        found = [Block("origin", "origin", rows=_pairs(facts))]
        if self.columns:
            header, rows = ("column", "use"), _pairs(list(self.columns.items()))
            found.append(Block("columns", "how each column was used", "", rows, header))
        return [block.escaped() for block in found]


@dataclass(frozen=True)
class ImportanceFacts:
    """The importance of a column, as a share of all importances, and its standard error.

    For a column that is encoded as several features, both are sums over the features; the sum of
    standard errors is an upper bound.
    """

    column: str
    importance: float
    std: float
    n_features: int = 1


@dataclass(frozen=True)
class SourceFacts:
    """The total kernel weight of a source, and its importance for held-out rows."""

    source: str
    weight: float
    importance: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class CandidateFacts:
    """A candidate of the default: λ, and log-loss or squared error on held-out rows."""

    name: str
    regularization: float
    n_kernels: int
    log_loss: float | None = None
    accuracy: float | None = None
    squared_error: float | None = None
    pull: float | None = None


@dataclass(frozen=True)
class ExpectedFacts:
    """Expected performance on new rows: accuracy and log-loss, or R² and error of a regression."""

    n_rows: int
    where: str
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    log_loss: float | None = None
    r2: float | None = None
    r2_low: float | None = None
    r2_high: float | None = None
    rmse: float | None = None
    rmse_low: float | None = None
    rmse_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class LearnedFacts:
    """Facts about a learned kernel.

    Attributes
    ----------
    kernels : dict of str to float
        Weight of each kernel.
    candidates : tuple of CandidateFacts
        Candidates of ``"auto"``, the chosen one first.
    why_chosen : str
        Reason for the choice.
    criterion, solver, status : str
        Criterion, solver, and status of the solver.
    n_iter : int
        Number of iterations.
    regularization : float
        λ.
    regularization_note : str
        Advice if λ is at the limit of the values tried.
    gap : float or None
        Certified relative gap.
    certificate : str
        Sentence on what is certified.
    """

    kernels: Mapping[str, float]
    candidates: tuple[CandidateFacts, ...] = ()
    why_chosen: str = ""
    criterion: str
    solver: str
    status: str
    n_iter: int
    regularization: float
    regularization_note: str = ""
    gap: float | None = None
    certificate: str

    @property
    def _is_regression(self) -> bool:
        """Whether the model is a regression; False if unknown."""
        return False

    def blocks(self) -> list[Block]:
        """Return all tables, in order."""
        return [block.escaped() for block in self._blocks()]

    def _blocks(self) -> list[Block]:
        return [*self._tried(), self._kernels(), self._learning()]

    def _tried(self) -> list[Block]:
        if not self.candidates:
            return []
        by_folds = self.candidates[0].pull is None
        aside, sentences = "leave-one-out predictions", [self.why_chosen]
        if by_folds:
            aside = (
                "on held-out rows; scaled: more important columns count more; quantiles: the ranks "
                "of values count, not how far apart values are"
            )
        elif self._is_regression:
            sentences.append("R² on held-out rows: 0 for predicting the mean.")
        else:
            sentences.append("Squared error of the class scores: 1 for a constant prediction.")
        return [
            Block(
                "candidates",
                "what was tried",
                aside,
                tuple(self._candidate(each) for each in self.candidates),
                ("candidate", *self._measures(self.candidates[0]), "λ", ""),
                1 + len(self._measures(self.candidates[0])),
                sentences=tuple(filter(None, sentences)),
            )
        ]

    def _measures(self, candidate: CandidateFacts) -> dict[str, str]:
        """Return the measures of a candidate, by heading, as text."""
        error = candidate.squared_error
        found = {
            "log-loss": candidate.log_loss is not None and f"{candidate.log_loss:z.3f}",
            "accuracy %": candidate.accuracy is not None and percent(candidate.accuracy),
            "squared error": error is not None and not self._is_regression and f"{error:z.3f}",
            "R²": error is not None and self._is_regression and f"{1.0 - error:z.3f}",
            "pull to equal weights": candidate.pull is not None and f"{candidate.pull:z.3f}",
        }
        return {name: text for name, text in found.items() if text}

    def _candidate(self, candidate: CandidateFacts) -> Row:
        is_chosen = candidate is self.candidates[0]
        numbers = (*self._measures(candidate).values(), format_number(candidate.regularization))
        mark = "← chosen" if is_chosen else ""
        return Row((candidate.name, *numbers, mark), is_highlighted=is_chosen)

    def _kernels(self) -> Block:
        ranked = sorted(self.kernels.items(), key=lambda pair: -pair[1])
        rows = [Row((name, f"{weight:z.3f}"), weight) for name, weight in ranked]
        aside = _WEIGHTS
        if len(ranked) > _FEW_KERNELS and ranked[0][1] - ranked[-1][1] <= 1e-12:
            families = Counter(name.partition("(")[0] for name in self.kernels)
            named = ", ".join(f"{number} {family}" for family, number in families.items())
            rows = [Row((f"each of {len(ranked)}: {named}", f"{ranked[0][1]:z.3f}"))]
            aside = "all with the same weight"
        header = ("kernel", "weight")
        return Block("kernels", "kernels", aside, tuple(rows), header, 1, noun="kernel")

    def _learning(self) -> Block:
        rows = [
            ("criterion", self.criterion),
            ("solver", f"{self.solver}, {plural(self.n_iter, 'iteration')}: {self.status}"),
            ("regularization λ", f"{self.regularization:.3g}"),
            ("note on λ", self.regularization_note),
            ("certified relative gap", "" if self.gap is None else format_number(self.gap)),
            ("certificate", self.certificate),
            *self._computed(),
        ]
        return Block("learning", "how it was learned", rows=_pairs(rows))

    def _computed(self) -> list[tuple[str, str]]:
        return []


@dataclass(frozen=True, kw_only=True)
class ModelFacts(LearnedFacts):
    """Facts about a fitted model, as plain data; `as_plain` converts them for JSON.

    Attributes
    ----------
    format : int
        Version of the JSON format, increased with every incompatible change.
    name, target : str
        Names of the data and of the target.
    estimator : str
        Class name of the estimator.
    n_rows : int or None
        Number of training rows, if known.
    n_columns : int or None
        Number of columns; None for precomputed kernels.
    classes : dict of str to int
        Number of rows per class; empty for a regression.
    expected : ExpectedFacts or None
        Expected performance on new rows.
    links : dict of str to float
        Weights of the links in the mixture that gives probabilities.
    majority : dict
        The largest class, its share, and the log-loss of predicting class shares.
    importances : tuple of ImportanceFacts
        Columns, most important first.
    sources : tuple of SourceFacts
        Sources, if there are several.
    confusion : dict of str to tuple of float
        Confusion matrix of held-out rows: counts per predicted class, by true class.
    plan : tuple of str
        Stages of the fit.
    sample : str
        Description of the sample the kernel was learned on, if rows were read in chunks.
    origin : Origin
        Origin of the model: data, versions, and how each column was used.
    """

    format: int = 1
    name: str
    target: str = ""
    estimator: str
    n_rows: int | None
    n_columns: int | None
    classes: Mapping[str, int] = field(default_factory=dict)
    expected: ExpectedFacts | None = None
    links: Mapping[str, float] = field(default_factory=dict)
    majority: Mapping[str, Any] = field(default_factory=dict)
    importances: tuple[ImportanceFacts, ...] = ()
    sources: tuple[SourceFacts, ...] = ()
    confusion: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    sample: str = ""
    origin: Origin = field(default_factory=Origin)

    def as_plain(self) -> dict[str, Any]:
        """Return the facts as JSON types; `facts_schema` returns their schema."""
        return asdict(self)

    @property
    def _is_regression(self) -> bool:
        return not self.classes

    def _blocks(self) -> list[Block]:
        found = [self._data(), *self._expected(), *self._matters(), *self._confusion()]
        found += self._mixture()
        return [*found, *super()._blocks(), *self.origin.blocks(), self._next()]

    def _matters(self) -> list[Block]:
        """Return tables of column and source importances, if known."""
        found = []
        if self.importances:
            aside = "share of the loss increase when a column is shuffled, ± standard error"
            block = importance_block("columns that matter", self.importances, aside)
            found.append(replace(block, id="importances"))
        if self.sources:
            known = self.sources[0].importance is not None
            rows = tuple(_source_row(each, known) for each in self.sources)
            aside = "weight: how much of the kernels of each is used"
            if known:
                aside = "worth: share in the prediction of held-out rows, ± standard error"
            names = ("source", *(["worth"] if known else []), "weight")
            found.append(Block("sources", "sources", aside, rows, names, 1 + known))
        return found

    def _data(self) -> Block:
        chunks = " in chunks" if self.sample else ""
        size = [
            "" if self.n_rows is None else f"{plural(self.n_rows, 'row')}{chunks}",
            "" if self.n_columns is None else plural(self.n_columns, "column"),
            plural(len(self.classes), "class", "classes") if self.classes else "",
        ]
        total = sum(self.classes.values())
        ranked = sorted(self.classes.items(), key=lambda pair: -pair[1])
        named = [f"{name}: {n:,} ({100 * n / total:.0f} %)" for name, n in ranked]
        rest = len(named) - _MOST_CLASSES
        counts = ", ".join(named[:_MOST_CLASSES]) + (f" and {rest} more" if rest > 0 else "")
        said = [*self.origin.notes, f"rows per class of {self.target or 'y'}: {counts}"]
        return Block(
            "data",
            self.name,
            ", ".join(filter(None, size)),
            sentences=tuple(filter(None, [*(said if counts else said[:-1]), self.sample])),
        )

    def _expected(self) -> list[Block]:
        found, majority = self.expected, self.majority
        if found is None:
            return []
        rows: list[tuple[str, ...]] = []
        if found.accuracy is not None and found.low is not None and found.high is not None:
            detail = f"95 % interval {percent(found.low)} to {percent(found.high)}"
            rows.append(("accuracy", f"{percent(found.accuracy)} %", detail))
        if majority:
            detail = f"accuracy of always predicting {majority['class']!r}"
            rows.append(("baseline", f"{percent(majority['share'])} %", detail))
        if found.log_loss is not None:
            known = f"; class shares: {majority['log_loss']:z.3f}" if majority else ""
            rows.append(("log-loss", f"{found.log_loss:z.3f}", f"smaller is better{known}"))
        rows += _errors(found)
        aside = f"on {found.n_rows:,} rows, {found.where}"
        made = tuple(Row(each) for each in rows)
        return [Block("expected", "expected on new rows", aside, made, n_numbers=1)]

    def _mixture(self) -> list[Block]:
        """Return the mixture of links behind probabilities, if there are several."""
        total = sum(self.links.values())
        if len(self.links) < 2 or not total:
            return []
        shares = [
            f"{_LINKS.get(name, name)} ({percent(weight / total)} %)"
            for name, weight in self.links.items()
        ]
        return [Block("links", "probabilities", f"a mixture of {join(shares)}")]

    def _confusion(self) -> list[Block]:
        if not 0 < len(self.confusion) <= _MOST_CONFUSED:
            return []
        rows = []
        for i, (name, counts) in enumerate(self.confusion.items()):
            right = percent(counts[i] / sum(counts)) if sum(counts) else "–"
            rows.append(Row((name, *(f"{number:,.6g}" for number in counts), right)))
        aside = "held-out rows by true class (down) and predicted class (across)"
        header = ("true class", *self.confusion, "recall %")
        return [Block("confusion", "confusion matrix", aside, tuple(rows), header, len(rows) + 1)]

    def _next(self) -> Block:
        """Return advice that depends on the model's performance."""
        found, share, steps = self.expected, self.majority.get("share", 0.0), []
        if found is not None and found.low is not None and found.low <= share:
            steps.append("It may be no better than the class shares: look for other columns.")
        if found is not None and found.r2 is not None and found.r2 <= 0.05:
            steps.append("It is little better than predicting the mean: look for other columns.")
        if self.regularization_note:
            steps.append(self.regularization_note)
        steps += self._removable()
        steps.append("Compare it with other methods on the same rows: discernel compare.")
        steps.append("See why a row has its prediction: discernel explain.")
        return Block("next", "what to do next", sentences=tuple(steps))

    def _removable(self) -> list[str]:
        """Return advice on sources, or else columns, without importance.

        A column may have none because other columns of its source replace it.
        """
        sources = [
            each.importance <= each.std
            for each in self.sources
            if each.importance is not None and each.std is not None
        ]
        is_weak = sources or [each.importance <= each.std for each in self.importances]
        n_weak, noun = sum(is_weak), "source" if sources else "column"
        if not 0 < n_weak < len(is_weak):
            return []
        number = plural(n_weak, f"{noun} has", f"{noun}s have")
        others = "it" if n_weak == 1 else "them"
        fit = f"try a fit without {others}."
        return [f"{number} no importance beyond the standard error: {fit}"]

    def _computed(self) -> list[tuple[str, str]]:
        stages = [(f"stage {i}", stage) for i, stage in enumerate(self.plan, start=1)]
        versions = (
            "" if self.origin.source else self.origin.versions_text
        )  # the origin table has them
        return [*stages, ("versions", versions)]


def importance_block(
    title: str, columns: Sequence[ImportanceFacts], aside: str = "", spread: str = "error"
) -> Block:
    """Return a table of column importances, with bars.

    Parameters
    ----------
    title, aside : str
        Title and note of the table.
    columns : sequence of ImportanceFacts
        Columns, most important first.
    spread : str, default="error"
        Name of the number after ±, for the heading.
    """
    rows = []
    for each in columns:
        bound = "≤ " if each.n_features > 1 else ""
        spread_text = "" if math.isnan(each.std) else f" ± {bound}{percent(each.std)}"
        text = f"{percent(each.importance)}{spread_text} %"
        rows.append(Row((each.column, text), 100.0 * each.importance))
    header = ("column", f"share ± {spread}")
    return Block("", title, aside, tuple(rows), header, 1, "column", "{:z.1f} %")


def _errors(found: ExpectedFacts) -> list[tuple[str, ...]]:
    """Return R² and root mean squared error with their intervals; empty for classes."""
    if found.r2 is None or found.rmse is None:
        return []
    interval = f"95 % interval {found.r2_low:z.3f} to {found.r2_high:z.3f}"
    rows: list[tuple[str, ...]] = []
    rows.append(("R²", f"{found.r2:z.3f}", f"{interval}; 1 is perfect, 0 is predicting the mean"))
    interval = f"95 % interval {found.rmse_low:.4g} to {found.rmse_high:.4g}"
    detail = f"{interval}; root mean squared error, in units of the target"
    rows.append(("typical error", f"{found.rmse:.4g}", detail))
    if found.r2 < 1.0:
        mean = found.rmse / math.sqrt(1.0 - found.r2)
        rows.append(("baseline", f"{mean:.4g}", "typical error of predicting the mean"))
    return rows


def _source_row(each: SourceFacts, known: bool) -> Row:
    weight = f"{each.weight:z.3f}"
    if not known or each.importance is None or each.std is None:
        return Row((each.source, weight), each.weight)
    worth = f"{percent(each.importance)} ± {percent(each.std)} %"
    return Row((each.source, worth, weight), each.importance)


def _pairs(pairs: Sequence[tuple[str, str]]) -> tuple[Row, ...]:
    return tuple(Row(pair) for pair in pairs if pair[1])


def facts_schema() -> dict[str, Any]:
    """Return the JSON schema of `ModelFacts.as_plain`."""
    text = files("discernel.show").joinpath("model_facts.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = loads(text)
    return found
