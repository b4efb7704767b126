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

from discernel.show.words import format_number, percent, plural, written

#: Classes that are listed with their rows, and at most so many that a table of errors has.
_MOST_CLASSES, _MOST_CONFUSED = 8, 20
#: So many kernels have bars even if all have the same weight.
_FEW_KERNELS = 3
_WEIGHTS = "how much of each kernel is used, not how much its columns matter"


# ---- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of a table: its texts, the value of its bar, and whether it stands out."""

    cells: tuple[str, ...]
    value: float | None = None
    stands_out: bool = False


@dataclass(frozen=True)
class Block:
    """A titled table, sentences, or both.

    Attributes
    ----------
    id : str
        A short name, for links.
    title : str
        The subject.
    aside : str
        How to read it.
    rows : tuple of Row
        Names first, then numbers, then words.
    header : tuple of str
        What stands above the cells; empty for none.
    n_numbers : int
        How many cells after the name are numbers.
    noun : str
        What a row is about: a column, a kernel. Rows beyond a limit are summed; empty: never.
    form : str
        How a sum of values is written.
    sentences : tuple of str
        What follows.
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
        """The title as a page has it: with a capital, unless it is a name."""
        return self.title[:1].upper() + self.title[1:] if self.id else self.title

    @property
    def largest(self) -> float:
        """The largest absolute value, which has the longest bar; 0 without bars."""
        return max((abs(row.value) for row in self.rows if row.value is not None), default=0.0)

    def written(self) -> Block:
        """Return the block with control characters written out."""
        rows = tuple(replace(row, cells=written(row.cells)) for row in self.rows)
        names = ("title", "aside", "header", "sentences")
        return replace(self, rows=rows, **{name: written(getattr(self, name)) for name in names})

    def shortened(self, most: int) -> Block:
        """Return the block with at most so many rows, and one for the sum of the others."""
        if not self.noun or len(self.rows) <= most:
            return self
        rest = sum(row.value or 0.0 for row in self.rows[most:])
        name = plural(len(self.rows) - most, f"other {self.noun}")
        empty = ("",) * (len(self.rows[0].cells) - 2)
        return replace(self, rows=(*self.rows[:most], Row((name, self.form.format(rest), *empty))))


# ---- facts -------------------------------------------------------------------------------------


def versions_here() -> dict[str, str]:
    """Return the versions of discernel, Python and the numerical libraries."""
    first, *others = ("discernel", "numpy", "scipy", "scikit-learn")
    here = {first: version(first), "python": python_version()}
    return here | {package: version(package) for package in others}


@dataclass(frozen=True)
class Origin:
    """The origin of a model, or of the results of a comparison: data, command and versions.

    Attributes
    ----------
    source : str
        The file or data set; empty where that is not known.
    digest : str
        The digest of the content of the file; empty where there is none.
    command : str
        The command that was run; empty where there was none.
    created : str
        When, in UTC.
    target : str
        The column with the classes; empty where the data are no file.
    versions : dict of str to str
        Those of discernel, Python and what they compute with.
    class_counts : dict of str to int
        Rows of each class.
    columns : dict of str to str
        How each column of the file was used.
    identifiers : tuple of str
        Columns that were left out because they number or name the rows.
    notes : tuple of str
        How the file was read, what was changed, and what was left out.
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
        """The rows of all classes."""
        return sum(self.class_counts.values())

    @property
    def versions_text(self) -> str:
        """The versions in one line."""
        return ", ".join(f"{name} {number}" for name, number in self.versions.items())

    def blocks(self) -> list[Block]:
        """Return where it comes from and how each column was used; nothing where no source is."""
        if not self.source:
            return []
        digest = self.digest and f"{self.digest} (first 16 digits of SHA-256)"
        facts = [
            ("data", self.source),
            ("digest of the content", digest),
            ("column with the classes", self.target),
            ("command", self.command),
            ("written", self.created),
            ("versions", self.versions_text),
        ]
        found = [Block("origin", "where it comes from", rows=_pairs(facts))]
        if self.columns:
            header, rows = ("column", "use"), _pairs(list(self.columns.items()))
            found.append(Block("columns", "how each column was used", "", rows, header))
        return [block.written() for block in found]


@dataclass(frozen=True)
class ImportanceFacts:
    """The importance of a column, its share in the loss without columns, and the standard error.

    Of a column that became several features, both are sums: the error is at most that.
    """

    column: str
    importance: float
    std: float
    n_features: int = 1


@dataclass(frozen=True)
class SourceFacts:
    """The weight of all kernels of a source, and the importance of the source to held-out rows."""

    source: str
    weight: float
    importance: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class CandidateFacts:
    """A candidate of the default, the log-loss or squared error of held-out rows, and λ."""

    name: str
    regularization: float
    n_kernels: int
    log_loss: float | None = None
    accuracy: float | None = None
    squared_error: float | None = None
    pull: float | None = None


@dataclass(frozen=True)
class ExpectedFacts:
    """Expected scores of new rows: accuracy and log-loss of classes, R² and error of numbers."""

    n_rows: int
    where: str
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    log_loss: float | None = None
    r2: float | None = None
    rmse: float | None = None


@dataclass(frozen=True, kw_only=True)
class LearnedFacts:
    """Facts about a learned kernel.

    Attributes
    ----------
    kernels : dict of str to float
        The weight of each kernel.
    candidates : tuple of CandidateFacts
        What ``"auto"`` chose from, the chosen one first.
    why_chosen : str
        Why it is the first.
    criterion, solver, status : str
        What it was learned by, the algorithm that ran, and how it ended.
    n_iter : int
        Its iterations.
    regularization : float
        λ.
    regularization_note : str
        What to make of a λ at the limit of those considered.
    gap : float or None
        The certified relative gap.
    certificate : str
        What is certified, in a sentence.
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
        """Whether numbers are predicted; False where that is not known."""
        return False

    def blocks(self) -> list[Block]:
        """Return all blocks, in order."""
        return [block.written() for block in self._blocks()]

    def _blocks(self) -> list[Block]:
        return [*self._tried(), self._kernels(), self._learning()]

    def _tried(self) -> list[Block]:
        if not self.candidates:
            return []
        by_folds = self.candidates[0].pull is None
        aside, sentences = "each row predicted without itself", [self.why_chosen]
        if by_folds:
            aside = "on held-out rows; scaled: more important columns count more"
        elif self._is_regression:
            sentences.append("R² is that of held-out rows: 0 is that of knowing nothing.")
        else:
            sentences.append("Squared error of the class scores: 1 is that of knowing nothing.")
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
        """Return the measures of a candidate, with numbers as text."""
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
        return Row((candidate.name, *numbers, mark), stands_out=is_chosen)

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
    """Facts about a fitted model, as plain data; `as_plain` gives them for JSON.

    Attributes
    ----------
    format : int
        Raised with every change that a reader of the JSON would notice.
    name, target : str
        What the model was fitted to, and what it predicts.
    estimator : str
        The name of its class.
    n_rows : int or None
        The rows that it was fitted to, where a model knows.
    n_columns : int or None
        Their columns, where they have any.
    classes : dict of str to int
        Rows of each class; empty where numbers are predicted.
    expected : ExpectedFacts or None
        What to expect of new rows.
    links : dict of str to float
        The weights of the links that probabilities are mixed from.
    majority : dict
        The largest class, its share, and the log-loss of knowing the shares only.
    importances : tuple of ImportanceFacts
        The columns, the most important first.
    sources : tuple of SourceFacts
        The sources, where there are several.
    confusion : dict of str to tuple of float
        Left-out rows of each class by the class that was predicted, in the same order.
    plan : tuple of str
        The stages of the fit.
    sample : str
        What the kernel was learned on, where rows were read in chunks.
    origin : Origin
        Where the model comes from: data, versions, and how each column was used.
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
        """Return dictionaries, lists, texts and numbers, as `facts_schema` describes them."""
        return asdict(self)

    @property
    def _is_regression(self) -> bool:
        return not self.classes

    def _blocks(self) -> list[Block]:
        found = [self._data(), *self._expected(), *self._matters(), *self._confusion()]
        found += self._mixture()
        return [*found, *super()._blocks(), *self.origin.blocks(), self._next()]

    def _matters(self) -> list[Block]:
        """Return the importances of columns and sources, as far as they are known."""
        found = []
        if self.importances:
            aside = "share of what predictions lose without them, ± standard error"
            block = importance_block("columns that matter", self.importances, aside)
            found.append(replace(block, id="importances"))
        if self.sources:
            known = self.sources[0].importance is not None
            rows = tuple(_source_row(each, known) for each in self.sources)
            aside = "weight: how much of the kernels of each is used"
            if known:
                aside = "worth: share of what held-out rows lose without it, ± standard error"
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
        named = [f"{name} {n:,} ({100 * n / total:.0f} %)" for name, n in ranked]
        rest = len(named) - _MOST_CLASSES
        counts = ", ".join(named[:_MOST_CLASSES]) + (f" and {rest} more" if rest > 0 else "")
        said = [*self.origin.notes, f"{self.target or 'classes'}: {counts}"]
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
            detail = f"accuracy of always {majority['class']!r}"
            rows.append(("without a model", f"{percent(majority['share'])} %", detail))
        if found.log_loss is not None:
            known = f"; class sizes alone: {majority['log_loss']:z.3f}" if majority else ""
            rows.append(("log-loss", f"{found.log_loss:z.3f}", f"smaller is better{known}"))
        if found.r2 is not None:
            rows.append(("R²", f"{found.r2:z.3f}", "1 is perfect, 0 is predicting the mean"))
        if found.rmse is not None and found.r2 is not None:
            detail = "root mean squared error, in units of the target"
            rows.append(("typical error", f"{found.rmse:.4g}", detail))
            if found.r2 < 1.0:
                mean = found.rmse / math.sqrt(1.0 - found.r2)
                rows.append(("without a model", f"{mean:.4g}", "typical error of the mean"))
        aside = f"on {found.n_rows:,} rows, {found.where}"
        made = tuple(Row(each) for each in rows)
        return [Block("expected", "expected of new rows", aside, made, n_numbers=1)]

    def _mixture(self) -> list[Block]:
        """Return how probabilities are made, where several links are mixed."""
        total = sum(self.links.values())
        if len(self.links) < 2 or not total:
            return []
        shares = [f"{name} {percent(weight / total)} %" for name, weight in self.links.items()]
        return [Block("links", "probabilities", f"a mixture of {', '.join(shares)}")]

    def _confusion(self) -> list[Block]:
        if not 0 < len(self.confusion) <= _MOST_CONFUSED:
            return []
        rows = []
        for i, (name, counts) in enumerate(self.confusion.items()):
            right = percent(counts[i] / sum(counts)) if sum(counts) else "–"
            rows.append(Row((name, *(f"{number:,.6g}" for number in counts), right)))
        aside = "held-out rows by true class (down) and predicted class (across)"
        header = ("true class", *self.confusion, "right %")
        title = "right and wrong by class"
        return [Block("confusion", title, aside, tuple(rows), header, len(rows) + 1)]

    def _next(self) -> Block:
        """Return advice, which depends on how good the model is."""
        found, share, steps = self.expected, self.majority.get("share", 0.0), []
        if found is not None and found.low is not None and found.low <= share:
            steps.append("It may know no more than the class sizes: look for other columns.")
        if found is not None and found.r2 is not None and found.r2 <= 0.05:
            steps.append("It knows little more than the mean: look for other columns.")
        if self.regularization_note:
            steps.append(self.regularization_note)
        weak = [each.column for each in self.importances if each.importance <= each.std]
        if weak and len(weak) < len(self.importances):
            number = plural(len(weak), "column has", "columns have")
            others = "it" if len(weak) == 1 else "them"
            fit = f"try a fit without {others}."
            steps.append(f"{number} no importance beyond the standard error: {fit}")
        if self.classes:
            steps.append("Compare it with other methods on the same rows: discernel compare.")
        steps.append("See why a row has its prediction: discernel explain.")
        return Block("next", "what to do next", sentences=tuple(steps))

    def _computed(self) -> list[tuple[str, str]]:
        stages = [(f"stage {i}", stage) for i, stage in enumerate(self.plan, start=1)]
        versions = "" if self.origin.source else self.origin.versions_text  # which it says itself
        return [*stages, ("versions", versions)]


def importance_block(
    title: str, columns: Sequence[ImportanceFacts], aside: str = "", spread: str = "error"
) -> Block:
    """Return how much columns matter, as bars.

    Parameters
    ----------
    title, aside : str
        Those of the block.
    columns : sequence of ImportanceFacts
        The most important first.
    spread : str, default="error"
        What follows the ± in a cell.
    """
    rows = []
    for each in columns:
        bound = "≤ " if each.n_features > 1 else ""
        spread_text = "" if math.isnan(each.std) else f" ± {bound}{percent(each.std)}"
        text = f"{percent(each.importance)}{spread_text} %"
        rows.append(Row((each.column, text), 100.0 * each.importance))
    header = ("column", f"share ± {spread}")
    return Block("", title, aside, tuple(rows), header, 1, "column", "{:z.1f} %")


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
