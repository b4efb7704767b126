"""Learn kernels on three bundled data sets, next to a plain average and a grid-searched SVC.

Run ``make demo``, or ``pip install '.[app]'`` and ``python examples/demo.py``. Every number
it shows is computed in the run. Four methods see the same 75 % of the rows, standardised:

* discernel learns which columns matter, the weights of twelve kernels and λ, in one fit;
* the convex program of Ye, Ji and Chen (2008) learns weights of these kernels with a certificate;
* the plain average gives the same kernels equal weights, and chooses λ in the same way;
* the SVC grid tries 10 widths, over the same range, with 4 values of C by 5-fold cross-validation.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import cpu_count
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as LiveDisplay
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import discernel
from discernel.kernels import RBF
from discernel.learners import Progress

DATA_SETS = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
LONGEST_BAR = 36


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """A data set, divided once into training rows and held-out rows."""

    name: str
    train_rows: np.ndarray
    test_rows: np.ndarray
    train_labels: np.ndarray
    test_labels: np.ndarray
    median_distance: float

    @property
    def summary(self) -> str:
        """The size of the task, in words."""
        return (
            f"{len(self.train_rows):,} training rows, {len(self.test_rows)} held out, "
            f"{self.train_rows.shape[1]} features, {len(np.unique(self.train_labels))} classes"
        )


def load_split(name: str) -> Split:
    rows, labels = DATA_SETS[name](return_X_y=True)
    train_rows, test_rows, train_labels, test_labels = train_test_split(
        rows, labels, test_size=0.25, stratify=labels, random_state=0
    )
    standardised = StandardScaler().fit_transform(train_rows)
    median_distance = RBF(width="median").resolve(standardised).parameters["width"]
    return Split(name, train_rows, test_rows, train_labels, test_labels, median_distance)


# ---- what is shown while it works ----------------------------------------------------------------


class MethodBar:
    """The bar of one method in the live display; it pulses until `show` says how far it is."""

    def __init__(self, display: LiveDisplay, method: str) -> None:
        self._display = display
        self._task = display.add_task(method, total=None, note="")

    def show(self, completed: float, total: float, note: str) -> None:
        """Move the bar and say why."""
        self._display.update(self._task, completed=completed, total=total, note=note)

    def fill(self) -> None:
        """Show that the method is done, and stop its clock."""
        self.show(1, 1, "done")


def make_live_display(console: Console) -> LiveDisplay:
    return LiveDisplay(
        TextColumn("{task.description:<13}"),
        BarColumn(bar_width=16, style="dim", complete_style="cyan", pulse_style="cyan"),
        TextColumn("{task.fields[note]:<22}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=not is_live(console),
    )


def is_live(console: Console) -> bool:
    """Whether lines can be redrawn; in a file or the log of a CI job they cannot."""
    return console.is_interactive and sys.stdout.isatty()


# ---- the four methods ----------------------------------------------------------------------------


def fit_discernel(split: Split, bar: MethodBar) -> Pipeline:
    def show_evaluation(step: Progress) -> None:
        # Descent has no known end: half of what is left, each ten evaluations.
        bar.show(1 - 0.5 ** (step.iteration / 10), 1, f"score {step.objective:.4f}")

    learner = discernel.MultipleKernelDiscriminant(callback=show_evaluation)
    return make_pipeline(StandardScaler(), learner).fit(split.train_rows, split.train_labels)


def fit_convex(split: Split, bar: MethodBar) -> Pipeline:
    def show_iteration(step: Progress) -> None:
        share_of_stage = step.iteration / (step.iteration + 1)
        note = f"λ {step.stage + 1} of {step.n_stages}, gap {step.gap:.0e}"
        bar.show(step.stage + share_of_stage, step.n_stages, note)

    learner = discernel.MultipleKernelDiscriminant(criterion="rkda", callback=show_iteration)
    return make_pipeline(StandardScaler(), learner).fit(split.train_rows, split.train_labels)


def fit_plain_average(split: Split, bar: MethodBar) -> Pipeline:
    average = discernel.MultipleKernelDiscriminant(criterion="uniform")
    return make_pipeline(StandardScaler(), average).fit(split.train_rows, split.train_labels)


def fit_svc_grid(split: Split, bar: MethodBar) -> GridSearchCV:
    with TemporaryDirectory() as folder:
        scorer = TallyingScorer(Path(folder) / "scored_fits")
        search = make_svc_grid(split.median_distance, scorer)
        n_fits = len(ParameterGrid(search.param_grid)) * search.cv

        def show_fits() -> None:
            bar.show(scorer.count(), n_fits, f"{scorer.count()} of {n_fits} fits")

        with repeating(show_fits):
            return search.fit(split.train_rows, split.train_labels)


def make_svc_grid(median_distance: float, scorer: TallyingScorer) -> GridSearchCV:
    widths = median_distance * 2 ** np.linspace(-4, 4, 10)
    candidates = {"svc__gamma": 1 / widths**2, "svc__C": [0.1, 1, 10, 100]}
    pipeline = make_pipeline(StandardScaler(), SVC())
    return GridSearchCV(pipeline, candidates, cv=5, scoring=scorer, n_jobs=-1)


class TallyingScorer:
    """Accuracy, and a byte per fit in a file: the grid's worker processes share nothing else.

    So the grid stays one ordinary call of `GridSearchCV.fit`, as fast as without a bar.
    """

    def __init__(self, tally: Path) -> None:
        self.tally = tally
        self.tally.touch()

    def __call__(self, estimator: Pipeline, rows: np.ndarray, labels: np.ndarray) -> float:
        with self.tally.open("ab") as file:
            file.write(b".")
        return float(estimator.score(rows, labels))

    def count(self) -> int:
        """Return how many fits have been scored so far."""
        return self.tally.stat().st_size


@contextmanager
def repeating(action: Callable[[], None], every_seconds: float = 0.2) -> Iterator[None]:
    """Repeat an action in the background for as long as the block runs."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(every_seconds):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


METHODS: dict[str, Callable[[Split, MethodBar], Any]] = {
    "discernel": fit_discernel,
    "convex, rkda": fit_convex,
    "plain average": fit_plain_average,
    "SVC grid": fit_svc_grid,
}


# ---- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A fitted method, what it is worth on the held-out rows, and what it took."""

    model: Any
    accuracy: float
    log_loss: float | None
    seconds: float


def start_workers() -> None:
    """Start the grid's worker processes, so that no clock counts it."""
    rows, labels = load_wine(return_X_y=True)
    cross_val_score(make_pipeline(StandardScaler(), SVC()), rows, labels, n_jobs=-1)


def run_methods(split: Split, console: Console) -> dict[str, Outcome]:
    outcomes = {}
    with make_live_display(console) as display:
        for method, fit in METHODS.items():
            if not is_live(console):
                console.print(f"Fitting {method} ...", end=" ")
            bar = MethodBar(display, method)
            start = time.perf_counter()
            model = fit(split, bar)
            seconds = time.perf_counter() - start
            bar.fill()
            outcomes[method] = evaluate(model, split, seconds)
            if not is_live(console):
                console.print(f"{seconds:.2f} s")
    return outcomes


def evaluate(model: Any, split: Split, seconds: float) -> Outcome:
    accuracy = accuracy_score(split.test_labels, model.predict(split.test_rows))
    loss = None
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(split.test_rows)
        loss = log_loss(split.test_labels, probabilities, labels=model.classes_)
    return Outcome(model, accuracy, loss, seconds)


# ---- what is shown afterwards --------------------------------------------------------------------


def make_outcome_table(outcomes: dict[str, Outcome]) -> Table:
    table = Table(header_style="bold")
    table.add_column("method")
    for heading in ("held-out accuracy", "log-loss", "seconds", "vs SVC grid"):
        table.add_column(heading, justify="right")
    grid_seconds = outcomes["SVC grid"].seconds
    for method, outcome in outcomes.items():
        table.add_row(
            method,
            f"{outcome.accuracy:.1%}",
            "-" if outcome.log_loss is None else f"{outcome.log_loss:.4f}",
            f"{outcome.seconds:.2f}",
            "" if method == "SVC grid" else compare_speed(outcome.seconds, grid_seconds),
            style="bold" if method == "discernel" else "",
        )
    return table


def compare_speed(seconds: float, reference: float) -> str:
    times = max(seconds, reference) / min(seconds, reference)
    if round(times, 1) == 1:
        return "as fast"
    return f"{times:.1f} x {'faster' if seconds < reference else 'slower'}"


def draw_bar(share: float, console: Console) -> str:
    if console.options.ascii_only:
        return "#" * max(1, round(LONGEST_BAR * share))
    whole, half = divmod(max(1, round(2 * LONGEST_BAR * share)), 2)
    return "━" * whole + "╸" * half


def print_weights(learner: discernel.MultipleKernelDiscriminant, console: Console) -> None:
    names, weights = learner.kernel_names_, learner.kernel_weights_
    name_width = max(len(name) for name in names)
    console.print("Weights that discernel learned by default:")
    for name, weight in zip(names, weights, strict=True):
        if weight > 0:
            bar = draw_bar(weight / weights.max(), console)
            console.print(Text(f"  {name:<{name_width}}  {weight:>5.1%}  ").append(bar, "cyan"))
    n_zero = int(np.sum(weights == 0))
    if n_zero:
        noun = "kernel" if n_zero == 1 else "kernels"
        console.print(f"  and {n_zero} {noun} with weight 0", style="dim")


def print_choice(learner: discernel.MultipleKernelDiscriminant, console: Console) -> None:
    considered = learner.learned_kernel_.considered
    errors = ", ".join(f"{candidate.name} {candidate.error:.3f}" for candidate in considered)
    console.print(
        f"λ = {learner.regularization_:.2g}. Log-losses of left-out rows of what was considered, "
        f"the chosen first: {errors}."
    )


def print_certificate(learner: discernel.MultipleKernelDiscriminant, console: Console) -> None:
    console.print(
        f"The convex program, λ = {learner.regularization_:.2g}, has a certified relative duality "
        f"gap of {learner.gap_:.1e}: no other weights of these {len(learner.kernel_names_)} "
        "kernels can improve its criterion by more than that share of its value."
    )


def print_introduction(console: Console) -> None:
    console.print(f"discernel {discernel.__version__}", style="bold")
    console.print(
        "Which mixture of kernels separates the classes best? Three data sets, each with a "
        "quarter of the rows held out; four methods, fitted to the same standardised rows."
    )
    console.print(f"Starting {cpu_count()} worker processes for the SVC grid, off the clock ...")


def print_next_steps(seconds: float, console: Console) -> None:
    console.print()
    console.print(
        f"[bold]Done in {seconds:.0f} s.[/bold] Next: fit your own X and y with the example in "
        "README.md; docs/ explains the kernels and criteria to choose from."
    )


def main() -> None:
    start = time.perf_counter()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an old code page without λ is no reason to stop
    console = Console(highlight=False)
    print_introduction(console)
    start_workers()
    for name in DATA_SETS:
        split = load_split(name)
        console.print()
        console.print(f"[bold]{name}[/bold]: {split.summary}")
        outcomes = run_methods(split, console)
        console.print(make_outcome_table(outcomes))
        learner = outcomes["discernel"].model[-1]
        print_weights(learner, console)
        print_choice(learner, console)
        print_certificate(outcomes["convex, rkda"].model[-1], console)
    print_next_steps(time.perf_counter() - start, console)


if __name__ == "__main__":
    main()
