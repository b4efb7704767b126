"""Do the tests notice? Deliberate changes to the library, and which of them a test fails on.

Claim: at least 85 % of the changes listed in `mutations.toml` are caught. Each one breaks what a
docstring promises: a term of an equation left out, a sign turned, a fallback gone. Every change is
made in a copy of the tree; first the tests of its file are run, then, if they pass, wider ones. A
test that fails is run once more without the change: if it fails again, it says nothing, and the
outcome is "broken". Tests that take too long are "late", which is neither caught nor survived.

    python benchmarks/mutations.py                    # all listed changes; writes the record
    python benchmarks/mutations.py --list             # their names, and which are stale
    python benchmarks/mutations.py --only rkda-error  # those whose names begin like this
    python benchmarks/mutations.py --quick            # with the tests of the changed file alone
    python benchmarks/mutations.py --only w4- --quick --jobs 16 --seconds 120 --out w4.jsonl
    python benchmarks/mutations.py --random 40 --seed 1   # made by rule, not by hand

A change is stale if its old text is not found exactly once: mend the text in `mutations.toml`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from common import write_record

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/discernel")
LEAST_SHARE = 0.85
SECONDS = 300
OUTCOMES = ("caught", "survived", "late", "broken", "stale")

#: Which tests should notice a change of a file, those first that say it soonest; the longest prefix
#: counts, and a listed change may name others. Files that do not exist are left out.
TESTS = {
    "programs/": ["tests/programs"],
    "programs/rkda.py": [
        "tests/programs/test_rkda*.py",
        "tests/programs/test_rounding.py",
        "tests/programs/test_criteria.py",
        "tests/programs/test_loo.py",
        "tests/programs/test_galerkin*.py",
        "tests/test_certificates.py",
    ],
    "programs/fdr.py": [
        "tests/programs/test_fdr*.py",
        "tests/programs/test_rounding.py",
        "tests/programs/test_criteria.py",
        "tests/test_certificates.py",
    ],
    "programs/loo.py": [
        "tests/programs/test_loo*.py",
        "tests/programs/test_*choices.py",
        "tests/programs/test_auto*.py",
    ],
    "programs/least_squares.py": [
        "tests/programs/test_details.py",
        "tests/programs/test_least_squares.py",
    ],
    "programs/uniform.py": ["tests/programs/test_given_weights.py", "tests/programs/test_[ao]*.py"],
    "papers/alignment/criterion.py": ["tests/papers/test_alignment*.py"],
    "papers/akfd/criterion.py": ["tests/programs/test_details.py", "tests/papers/test_akfd*.py"],
    "papers/separability/criterion.py": [
        "tests/programs/test_details.py",
        "tests/papers/test_separability*.py",
    ],
    "papers/margin/criterion.py": ["tests/papers/test_margin*.py"],
    "arrays/sample_weights.py": ["tests/bank/test_sample_weights.py", "tests/programs"],
    "arrays/": ["tests/arrays", "tests/bank/test_parts.py", "tests/test_deadline.py"],
    "arrays/rows.py": ["tests/estimators/test_containers.py", "tests/kernels/test_kernels.py"],
    "arrays/pairs.py": ["tests/kernels/test_city*.py", "tests/kernels/test_kernels.py"],
    "kernels/": ["tests/kernels"],
    "rows/": ["tests/tables", "tests/views/test_views.py", "tests/test_datasets.py"],
    "rows/cells.py": ["tests/tables/test_cells.py", "tests/streams/test_survey.py", "tests/tables"],
    "rows/sources.py": ["tests/streams/test_sources.py"],
    "rows/chunks.py": ["tests/streams/test_sources.py"],
    "rows/delimited.py": ["tests/test_cli_files.py", "tests/compare/test_files.py"],
    "rows/formats.py": ["tests/test_cli_files.py", "tests/compare/test_files.py"],
    "rows/labelled.py": ["tests/compare/test_files.py", "tests/test_cli_tables.py"],
    "rows/columns.py": ["tests/test_cli_tables.py", "tests/compare/test_files.py"],
    "plan/": ["tests/plan", "tests/devices/test_forecast.py", "tests/estimators/test_[sp]*ed.py"],
    "discriminant/links.py": [
        "tests/test_links.py",
        "tests/test_discriminant*.py",
        "tests/test_expectation.py",
    ],
    "model/": ["tests/inspection/test_[cfis]*.py", "tests/test_persistence.py"],
    "inspection/": ["tests/inspection", "tests/test_facts.py"],
    "learn/": ["tests/programs/test_l*.py", "tests/estimators/test_[abcm]*.py", "tests/streams"],
    "model/training.py": ["tests/estimators/test_bad*.py", "tests/estimators/test_s*.py"],
    "learn/chunks.py": ["tests/streams/test_[prsf]*.py"],
    "learn/summed.py": ["tests/streams/test_[prsf]*.py"],
    "learn/survey.py": ["tests/streams/test_survey.py", "tests/streams/test_[prf]*.py"],
    "learn/labels.py": ["tests/streams/test_survey.py", "tests/streams/test_[npf]*.py"],
    "learn/refine.py": ["tests/streams/test_refine.py"],
    "learn/low_rank.py": ["tests/programs/test_low_rank.py", "tests/bank/test_lowrank.py"],
    "learn/stages.py": ["tests/estimators/test_staged.py", "tests/test_deadline.py"],
    "papers/": ["tests/papers"],
    "export/": ["tests/export", "tests/test_cli_export.py"],
    "show/": ["tests/test_notebook.py", "tests/test_facts.py", "tests/test_report.py"],
    "rows/writing.py": ["tests/test_writing.py", "tests/test_cli_files.py"],
    "displays/": ["tests/test_displays.py", "tests/inspection/test_display.py", "tests/views"],
    "compare/": ["tests/compare/test_[mpst]*.py", "tests/compare/test_compare.py"],
    "compare/report/": ["tests/test_report.py", "tests/test_cli_compare.py"],
    "report/": ["tests/test_model_report.py", "tests/test_report.py"],
    "cli/": ["tests/test_cli*.py"],
    "cli/exporting.py": ["tests/test_cli_export.py"],
    "cli/explaining.py": ["tests/test_cli_explain.py"],
    "cli/predictions.py": [
        "tests/test_cli_files.py",
        "tests/test_cli_many.py",
        "tests/test_cli.py",
    ],
    "cli/many.py": ["tests/test_cli_many.py"],
    "persistence.py": ["tests/test_persistence.py"],
    "progress/": ["tests/test_progress.py", "tests/test_deadline.py"],
    "testing.py": ["tests/test_testing.py"],
    "estimators/": ["tests/estimators/test_[abckmoprtw]*.py"],
    "estimators/multilabel.py": ["tests/estimators/test_multilabel.py"],
    "estimators/ridge.py": ["tests/estimators/test_ridge.py", "tests/test_facts.py"],
    "estimators/transformer.py": ["tests/estimators/test_transformer.py"],
    "estimators/discriminant.py": [
        "tests/estimators/test_bad_input.py",
        "tests/test_discriminant*.py",
        "tests/streams/test_partial_fit.py",
    ],
    "bank/": ["tests/bank/test_parts.py", "tests/bank"],
    "bank/grams.py": ["tests/papers/test_alignment*.py", "tests/bank"],
    "bank/tiled.py": [
        "tests/bank/test_rough*.py",
        "tests/bank/test_tiled*.py",
        "tests/bank/test_parts.py",
    ],
    "bank/features.py": ["tests/bank/test_factored*.py", "tests/bank/test_lowrank*.py"],
    "bank/ranks.py": ["tests/bank/test_factored*.py", "tests/bank/test_lowrank*.py"],
    "bank/combined.py": ["tests/bank/test_combined*.py", "tests/bank/test_lowrank*.py"],
    "programs/galerkin.py": ["tests/programs/test_galerkin*.py"],
    "programs/columns.py": [
        "tests/programs/test_columns*.py",
        "tests/programs/test_screening*.py",
    ],
    "programs/newton.py": ["tests/programs/test_newton*.py", "tests/programs/test_l*.py"],
    "programs/simplex.py": ["tests/programs/test_simplex*.py", "tests/programs/test_newton*.py"],
    "programs/silp.py": ["tests/programs/test_newton*.py", "tests/programs/test_l*.py"],
    "learn/learn.py": ["tests/programs/test_*choices.py", "tests/programs/test_l*.py"],
    "learn/matrices.py": ["tests/programs/test_*choices.py", "tests/programs/test_l*.py"],
    "papers/margin/solver.py": ["tests/programs/test_*choices.py", "tests/papers/test_margin*.py"],
    "papers/akfd/solver.py": [
        "tests/programs/test_*choices.py",
        "tests/papers/test_alternating*.py",
    ],
    "papers/alignment/solvers.py": ["tests/papers/test_alignment*.py"],
    "papers/separability/solvers.py": ["tests/papers/test_separability*.py"],
    "papers/separability/spectrum.py": ["tests/papers/test_separability*.py"],
    "papers/separability/spectrum_choice.py": [
        "tests/programs/test_*choices.py",
        "tests/papers/test_separability*.py",
    ],
    "programs/lambdas.py": ["tests/programs/test_lambdas.py"],
    "programs/search.py": ["tests/programs/test_*choices.py", "tests/programs/test_auto*.py"],
    "default/": ["tests/default"],
    "default/metric.py": ["tests/default/test_metric.py"],
    "default/choose.py": ["tests/default/test_choose.py", "tests/default/test_[ldps]*.py"],
    "default/cross_fit.py": ["tests/default/test_choose.py", "tests/default/test_[ldps]*.py"],
    "default/sample.py": ["tests/default/test_choose.py", "tests/default/test_[ldps]*.py"],
    "default/comparison.py": ["tests/default/test_choose.py", "tests/default/test_[ldps]*.py"],
    "default/ridge.py": ["tests/default/test_ridge.py", "tests/default/test_choose.py"],
    "learn/held_out.py": ["tests/test_promises.py", "tests/test_expectation.py", "tests/default"],
    "discriminant/": [
        "tests/test_discriminant*.py",
        "tests/test_expectation.py",
        "tests/test_links.py",
        "tests/default/test_losses.py",
    ],
    "discriminant/numbers.py": ["tests/estimators/test_intervals.py"],
    "targets.py": [
        "tests/test_targets*.py",
        "tests/programs/test_part.py",
        "tests/test_discriminant*.py",
    ],
}
#: What is run besides where those tests pass.
WIDER = [
    "tests/programs",
    "tests/bank",
    "tests/test_discriminant*.py",
    "tests/test_targets*.py",
    "tests/estimators/test_ridge.py",
    "tests/estimators/test_multilabel.py",
]
#: Tests that a busy machine can fail, and that say nothing about numbers.
NOT = "not interrupt and not ctrl_c and not memory"


@dataclass(frozen=True)
class Change:
    """A text of a file and what takes its place."""

    name: str
    file: str
    old: str
    new: str
    why: str = ""
    tests: tuple[str, ...] = ()
    offset: int = -1  # of the old text in bytes; -1 where it is to occur once

    def apply(self, source: bytes) -> bytes | None:
        """Return the file with the change made; None where it is stale."""
        old, new = self.old.encode(), self.new.encode()
        offset = self.offset
        if offset < 0:
            if source.count(old) != 1:
                return None
            offset = source.index(old)
        return source[:offset] + new + source[offset + len(old) :]


@dataclass(frozen=True)
class Result:
    """Outcome of a change (caught, survived, broken, late or stale), and the test that failed."""

    name: str
    file: str
    outcome: str
    by: str
    seconds: float
    why: str


def listed() -> list[Change]:
    """Return the changes of `mutations.toml`."""
    path = Path(__file__).with_suffix(".toml")
    entries = tomllib.loads(path.read_text())["change"]
    changes = [Change(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        sys.exit(
            "Two changes have the same name: " + repr({n for n in names if names.count(n) > 1})
        )
    return changes


def tests_of(change: Change) -> Sequence[str]:
    """Return the patterns of the test files that should notice a change."""
    prefix = max((p for p in TESTS if change.file.startswith(p)), key=len)
    return change.tests or TESTS[prefix]


def expanded(root: Path, patterns: Sequence[str]) -> list[str]:
    """Return the files and folders of tests that there are."""
    found = [str(path.relative_to(root)) for p in patterns for path in sorted(root.glob(p))]
    return list(dict.fromkeys(found))


# ---- running ---------------------------------------------------------------------------------


class Copies:
    """Copies of the tree, one a job, in which changes are made; the tree itself is never."""

    def __init__(self, folder: Path, n: int, wider: Sequence[str], limit: float) -> None:
        self._wider, self._limit = wider, limit
        self._free: SimpleQueue[Path] = SimpleQueue()
        for i in range(n):
            copy = folder / str(i)
            for name in ("src", "tests", "benchmarks", "reproduction", "docs", "examples"):
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, copy / name, ignore=ignore)
            for path in (path for path in ROOT.iterdir() if path.is_file()):
                shutil.copy(path, copy)
            self._free.put(copy)

    def try_change(self, change: Change) -> Result:
        """Make a change, run its tests and, if these pass, the wider ones; undo it."""
        copy, start = self._free.get(), time.perf_counter()
        path = copy / SOURCE / change.file
        before = path.read_bytes()
        try:
            after = change.apply(before)
            if after is None or after == before:
                return Result(change.name, change.file, "stale", "", 0.0, change.why)
            _write(path, after)
            first = expanded(copy, tests_of(change))
            outcome, by = run_tests(copy, first, self._limit)
            rest = [path for path in expanded(copy, self._wider) if path not in first]
            if outcome == "survived" and rest:
                outcome, by = run_tests(copy, rest, self._limit)
            _write(path, before)
            if outcome == "caught" and run_tests(copy, [by], self._limit)[0] != "survived":
                outcome = "broken"
            seconds = round(time.perf_counter() - start, 1)
            return Result(change.name, change.file, outcome, by, seconds, change.why)
        finally:
            _write(path, before)
            self._free.put(copy)


def _write(path: Path, content: bytes) -> None:
    """Write a file of a copy, and forget what was compiled of it: times may be equal."""
    path.write_bytes(content)
    for compiled in (path.parent / "__pycache__").glob(path.stem + ".*.pyc"):
        compiled.unlink()


def run_tests(copy: Path, tests: Sequence[str], limit: float = SECONDS) -> tuple[str, str]:
    """Return caught, survived or late, and the first test that failed."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    folders = [copy / "src", copy / "reproduction" / "src", copy / "benchmarks", copy]
    environment = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    # With its own name for temporary folders, so that parallel runs do not remove each other's.
    environment["PYTEST_DEBUG_TEMPROOT"] = str(copy)
    options = ["-x", "-q", "-p", "no:cacheprovider", *([] if "::" in tests[0] else ["-k", NOT])]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.communicate()
        return "late", f"no end within {limit:.0f} s"
    if process.returncode == 0:
        return "survived", ""
    if process.returncode in (4, 5):  # wrong names of tests, or none: a fault of ours
        return "broken", f"pytest could not run {' '.join(tests)}"
    lines = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "caught", lines[0].split(" - ")[0].split(" ", 1)[1] if lines else tests[0]


# ---- changes made by rule --------------------------------------------------------------------

_OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "**": "*"}
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NAMES = {
    **{"min": "max", "max": "min", "argmin": "argmax", "argmax": "argmin"},
    **{"minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"},
}


class _Maker(ast.NodeVisitor):
    """Collects all changes that the rules allow in one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self._file, self._source = file, source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Change] = []

    def _start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _add(self, start: int, end: int, new: str, rule: str) -> None:
        line = self._source.count(b"\n", 0, start) + 1
        old, name = self._source[start:end].decode(), f"{self._file}:{line}"
        why = f"{rule}: {_short(old)} → {_short(new)}"
        self.found.append(Change(f"{name}:{len(self.found)}", self._file, old, new, why, (), start))

    def _between(self, left: ast.AST, right: ast.AST, old: str, new: str, rule: str) -> None:
        """Replace an operator, which stands between two operands."""
        start, end = self._end(left), self._start(right)
        at = self._source.find(old.encode(), start, end)
        if at >= 0:
            self._add(at, at + len(old.encode()), new, rule)

    def visit_BinOp(self, node: ast.BinOp) -> None:  # noqa: N802
        symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
        symbol = symbols.get(type(node.op))
        if symbol is not None:
            new = _OPERATORS[symbol]
            self._between(node.left, node.right, symbol, new, "another operator")
        if isinstance(node.op, (ast.Add, ast.Sub)):
            self._add(self._start(node), self._end(node), self._text(node.left), "a term dropped")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:  # noqa: N802
        symbols = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
        symbol = symbols.get(type(node.ops[0]))
        if len(node.ops) == 1 and symbol is not None:
            for table, rule in ((_COMPARISONS, "equality"), (_TURNED, "a comparison turned")):
                if symbol in table:
                    right = node.comparators[0]
                    self._between(node.left, right, symbol, table[symbol], rule)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:  # noqa: N802
        if isinstance(node.value, bool):
            new = str(not node.value)
        elif isinstance(node.value, int):
            new = str(node.value + 1)
        elif isinstance(node.value, float):
            new = repr(2.0 * node.value if node.value else 1.0)
        else:
            return
        self._add(self._start(node), self._end(node), new, "another constant")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:  # noqa: N802
        if isinstance(node.op, (ast.USub, ast.Not)):
            self._add(
                self._start(node), self._end(node), self._text(node.operand), "a sign dropped"
            )
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name in _NAMES:
            end = self._end(func)
            self._add(end - len(name), end, _NAMES[name], "another name")
        elif len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
            first, second = node.args[:2]
            between = self._source[self._end(first) : self._start(second)].decode()
            swapped = self._text(second) + between + self._text(first)
            if swapped != self._text(first) + between + self._text(second):
                self._add(self._start(first), self._end(second), swapped, "arguments swapped")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        self._add(self._start(node), self._end(node), "pass", "a statement deleted")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if isinstance(node.value, ast.Call):
            self._add(self._start(node), self._end(node), "pass", "a statement deleted")
            self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:  # noqa: N802
        for value in ("True", "False"):
            self._add(self._start(node.test), self._end(node.test), value, "a condition fixed")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    def visit_Raise(self, node: ast.Raise) -> None:  # noqa: N802
        """Leave the words of errors alone."""

    def visit_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        """Nor what is never false."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:  # noqa: N802
        """Nor any other words."""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 48 else text[:45] + "..."


def drawn(n: int, seed: int) -> list[Change]:
    """Return changes made by rule, drawn with equal chances for every one in the core."""
    rooms = ("programs", "papers", "learn", "bank", "discriminant")
    files = [*(p for room in rooms for p in _modules(room)), Path("targets.py")]
    found: list[Change] = []
    for file in files:
        source = (ROOT / SOURCE / file).read_bytes()
        maker = _Maker(str(file), source)
        maker.visit(ast.parse(source))
        found += maker.found
    return random.Random(seed).sample(found, min(n, len(found)))


def _modules(room: str) -> Iterator[Path]:
    for path in sorted((ROOT / SOURCE / room).rglob("*.py")):
        if path.name != "__init__.py":
            yield path.relative_to(ROOT / SOURCE)


# ---- what is told ----------------------------------------------------------------------------


def show_list(changes: Sequence[Change]) -> None:
    for change in changes:
        source = (ROOT / SOURCE / change.file).read_bytes()
        stale = "  STALE" if change.apply(source) is None else ""
        print(f"{change.name:44}{change.file:30}{change.why}{stale}")


def run_all(
    changes: Sequence[Change], jobs: int, wider: Sequence[str], limit: float, out: Path | None
) -> list[Result]:
    """Return the outcomes of all changes; print each, and append it to a file, as it comes."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copies = Copies(Path(folder), jobs, wider, limit)
        results = []
        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(copies.try_change, c) for c in changes]):
                results.append(result := done.result())
                told = f"{result.outcome:9}{result.seconds:6.1f} s  {result.name:44}"
                print(told + (result.by or result.why), flush=True)
                if out is not None:
                    with out.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
    order = [change.name for change in changes]
    results.sort(key=lambda result: order.index(result.name))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the changes and do nothing")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="names, or how they begin")
    parser.add_argument("--random", metavar="N", type=int, default=0, help="changes made by rule")
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    parser.add_argument("--jobs", type=int, default=2, help="copies that are worked on at a time")
    parser.add_argument("--quick", action="store_true", help="no wider tests; writes no record")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of one run of tests")
    parser.add_argument("--out", type=Path, help="file to append results to, as JSON lines")
    options = parser.parse_args()
    changes = drawn(options.random, options.seed) if options.random else listed()
    if options.only:
        changes = [c for c in changes if c.name.startswith(tuple(options.only))]
    if options.list:
        show_list(changes)
        return
    wider = [] if options.quick else WIDER
    results = run_all(changes, options.jobs, wider, options.seconds, options.out)
    counts = {outcome: sum(r.outcome == outcome for r in results) for outcome in OUTCOMES}
    share = counts["caught"] / max(counts["caught"] + counts["survived"], 1)
    print("\n" + ", ".join(f"{n} {outcome}" for outcome, n in counts.items()), end="")
    print(f": {share:.0%} of those caught or survived")
    for result in results:
        if result.outcome != "caught":
            print(f"  {result.outcome}: {result.name}: {result.why}")
    if not options.only and not options.quick:
        name = "mutations_random" if options.random else "mutations"
        drawing = {"n": options.random, "seed": options.seed} if options.random else {}
        record = [asdict(result) for result in results]
        write_record(name, record, share=round(share, 3), **counts, **drawing)
    if not options.random and (share < LEAST_SHARE or counts["stale"]):
        sys.exit(f"At least {LEAST_SHARE:.0%} must be caught, and none may be stale.")


if __name__ == "__main__":
    main()
