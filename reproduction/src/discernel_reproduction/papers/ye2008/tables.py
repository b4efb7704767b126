"""Tables 2 to 17 of Ye, Ji and Chen (2008)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from discernel.compare.plan import Method, Plan
from discernel.compare.store import Record
from discernel_reproduction.papers.common import accuracy, metric, seconds
from discernel_reproduction.papers.ye2008 import setup as ye
from discernel_reproduction.papers.ye2008.figures import time_ratios
from discernel_reproduction.papers.ye2008.setup import TableData
from discernel_reproduction.published import published
from discernel_reproduction.reproduce import Link, Reproduction

# Each reason is a short name, a colon and what was found: the page counts cells by the name.
_SAME_OPTIMUM = (
    "Several solvers of one program: Ours is the optimum by Newton's method, certified to a "
    "relative gap of 1e-6."
)
_ONE_PROGRAM = (
    "Weights of SDP and QCQP rows are not judged: printed rows of one program differ from solver "
    "to solver, and neighbouring kernels are nearly the same."
)
_KIM = (
    "Weights of SDP_Kim are not judged: with λ = 1e-8 the paper's solver seems to have failed, as "
    "its accuracies on ionosphere and cancer are far below the other rows. Ours is certified."
)
_APPROXIMATE = (
    "SDP rows of several classes are of the approximate program (32). Beyond wine it takes far too "
    "long here; ours is the exact program then, shown and not judged."
)
_FEW_SPLITS = (
    "Weights of the approximate program: Three splits here, and where our certified optimum has "
    "0 the printed weights, means over 30, are about 0.01."
)
_SILP_WEIGHTS = (
    "Weights of SILP: It stops at a gap of 5e-4, where neighbouring kernels still share weight as "
    "they like. Printed rows of one program differ as much: θ5 of sonar is 0.550 by SDP, 0.444 by "
    "QCQP and 0.459 by SILP."
)
_MARGIN_WEIGHTS = (
    "Weights of margin programs: They sum to 10 or 11, and most that differ are printed as a few "
    "thousandths to hundredths where our certified optimum has 0; the others are of neighbouring "
    "kernels, which share weight as the solver likes."
)
_GIVEN = "λ and C that were given are no result, and not judged."
_LEARNT = "A learned λ or C is a mean over many orders of magnitude, and not judged."
_COUNTS = "How often cross-validation chose a kernel is not judged; ours is scaled to 30 splits."
_NARROW = (
    "Narrow kernels, threshold not printed: A kernel near the identity puts test rows between the "
    "classes, so that the threshold decides, and the paper does not say which one RKDA has. Ours "
    "are then as the paper's own SVM: θ2 of ionosphere is printed as 76.47 for RKDA and 66.57 for "
    "the SVM, ours is 66.7."
)
_SONAR = (
    "Sonar, not known: Baselines are below print as much as learned kernels. Splits explain a "
    "part at most: on 60 others the exact program has 88.2 ± 0.7 instead of 87.5 ± 0.9, SM1 88.0 ± "
    "0.7 instead of 87.2 ± 0.9, and an SVM with θ5 and C = 100, scaled by training rows, 83.3 ± "
    "0.7 instead of 81.1 ± 1.1."
)
_SINGLE = (
    "Single kernels, not known: λ and C are chosen by cross-validation from a grid that is not "
    "printed."
)
_ROWS = (
    "Which rows: The paper took one set of a hundred rows a class and does not say which. Which "
    "ones matters by up to ten points, to all methods alike."
)
_DIGITS = (
    "Another copy of the digits: The paper's digits are those of Hull (1994), ours those of the "
    "zip.train and zip.test files. Both baselines are below their printed numbers by as much."
)
_CHOSEN = (
    "SVM_K,C is not judged: of the first, the last and evenly spaced hundred rows of each class "
    "and of rows drawn anew for every split, those were taken with which this baseline came "
    "nearest to its printed numbers, one choice a data set. Accuracies of the exact program on the "
    "same rows had been seen before. Levels are therefore fitted; what the other rows tell is how "
    "methods stand to one another."
)
_ROWS_WEIGHTS = "Weights are not judged where the rows are others than the paper's."
_SUBSET = (
    "Only for USPS are 100 rows a class printed. Printed accuracies of satimage, segment and "
    "waveform are whole numbers of right test rows over 30 splits if a hundred rows per class are "
    "split 60 to 40, too."
)
_SATIMAGE = (
    "Of each class the last hundred rows in the file are taken. Over six splits SVM_K,C was "
    "0.5 points from the printed numbers with them in the mean of the three tables, 3.4 with the "
    "first hundred, 2.8 with evenly spaced ones, 2.3 with rows drawn anew; drawn anew, 12 of 18 "
    "cells differed over ten splits, all of them below print."
)
_USPS = (
    "Of each class the first hundred rows in the file are taken. Over three splits SVM_K,C was "
    "0.9 points from the printed numbers with them in the mean of the three tables, 4.2 with the "
    "last hundred, 2.2 with evenly spaced ones; drawn anew, 17 of 18 cells differed over ten "
    "splits, up to 3.4 points below print.",
    "USPS is scaled to [0, 1]: with [-1, 1] the widest kernel had nearly all the weight. With "
    "exp(-d²/2σ) and [-1, 1] weights were much closer to the printed ones, with the same "
    "accuracies. The first classes are taken to be 0, 1, 2, ...",
)
_SEGMENT = (
    "The first classes of segment are taken in Statlog's order: brickface, sky, foliage, ... A "
    "hundred rows of each are drawn anew for every split. Over 30 splits SVM_K,C is 0.4 "
    "points from the printed numbers in the mean of the two tables; over six it was 1.1 with the "
    "first hundred or evenly spaced ones, 1.3 with the last."
)
_WAVEFORM = (
    "A hundred rows of each class are drawn anew for every split. Waveform is not scaled: of "
    "the scalings tried, the weights of QCQP_θ come closest so, and not very close."
)
_WINE = (
    "Printed accuracies of wine are whole numbers of right rows among 71 over 30 splits: 107 "
    "trained, each class rounded. Ours are 106, scaled by themselves; with 107 and scaling by all "
    "rows the weights of the exact program come a little closer, and the approximate one would "
    "have to be run again."
)
_SV_THRESHOLD = (
    "Threshold of a support vector: That of SM2 is the default of the toolbox the paper adapted, a "
    "multiplier of 0.01; for SM2_C none that was tried fits, so that all above 0 count."
)
_SV_COUNT = "Support vectors of SM1, not known: Ours are those of the certified program, by libsvm."
_TIMES = "Seconds of another machine and other software are not judged."

_COLUMNS = tuple(f"θ{i + 1}" for i in range(ye.N_KERNELS))
_SDP_ROWS, _QCQP_ROWS = ("SDP_θ", "SDP_θ,λ"), ("QCQP_θ", "QCQP_θ,λ")
_SILP_ROWS, _NEWTON = ("SILP_θ", "SILP_θ,λ"), (ye.EXACT, ye.EXACT_JOINT)
#: Kernels with so small widths that their matrices are near the identity.
_N_NARROW = 2


# ---- links of one row ----------------------------------------------------------------------------


def _learned(
    task: TableData,
    row: str,
    method: Method,
    *,
    why: str = "",
    weights: str = "",
    judged: bool = True,
) -> Iterator[Link]:
    """Yield the links of a row; ``weights`` says why these are not judged, if they are not."""
    name, n_train = task.data.name, task.n_train if row.endswith(",λ") else None
    for i, column in enumerate(_COLUMNS):
        share = ye.share_of(i, n_train)
        reason = weights or (_SILP_WEIGHTS if row in _SILP_ROWS else _FEW_SPLITS)
        yield Link(row, column, name, method.name, share, reason, judged=not weights)
    if n_train is None:
        yield Link(row, "λ", name, method.name, _given, _GIVEN, judged=False)
    else:
        found = ye.learned_lambda(n_train)
        yield Link(row, "λ", name, method.name, found, _LEARNT, judged=False)
    reason = (_why(task) or why) if judged else why
    yield Link(row, "TSA", name, method.name, accuracy, reason, judged=judged)


def _margin(task: TableData, method: Method) -> Iterator[Link]:
    name, row = task.data.name, method.name
    for i, column in enumerate(_COLUMNS):
        yield Link(row, column, name, row, ye.margin_weight(i), _MARGIN_WEIGHTS)
    reason = _LEARNT if row == "SM2_C" else _GIVEN
    yield Link(row, "C", name, row, ye.margin_cost, reason, judged=False)
    yield Link(row, "TSA", name, row, accuracy, _why(task))


def _validated(task: TableData, method: Method) -> Iterator[Link]:
    name, row = task.data.name, method.name
    for i, column in enumerate(_COLUMNS):
        yield Link(row, column, name, row, ye.chosen(i), _COUNTS, judged=False)
    calibrates = _is_subset(task) and method is ye.SVM_CV
    reason = _CHOSEN if calibrates else _why(task)
    yield Link(row, "TSA", name, row, accuracy, reason, judged=not calibrates)


def _alone(task: TableData) -> Iterator[Link]:
    for row, methods in ye.ALONE.items():
        for i, (column, method) in enumerate(zip(_COLUMNS, methods, strict=True)):
            is_narrow = row == "RKDA_λ" and i < _N_NARROW
            reason = _NARROW if is_narrow else (_why(task) or _SINGLE)
            yield Link(row, column, task.data.name, method.name, accuracy, reason)


def _given(record: Record) -> float:
    value = record.result.regularization
    return np.nan if value is None else float(value)


def _why(task: TableData) -> str:
    """Return why accuracies of any method may differ."""
    if _is_subset(task):
        return _DIGITS if task.data.name == "usps" else _ROWS
    return _SONAR if task.data.name == "sonar" else ""


def _is_subset(task: TableData) -> bool:
    return "per_class" in task.data.options


# ---- Tables 2 to 15 ------------------------------------------------------------------------------


def _plan(task: TableData, methods: Iterable[Method], **splits: int) -> Plan:
    name = f"Ye 2008, {task.label}"
    return Plan(name, (task.data,), tuple(methods), task.splits(**splits))


def _rows(
    task: TableData, names: tuple[str, str], methods: tuple[Method, Method], **how: Any
) -> list[Link]:
    """Return the links of two rows, λ given and learned."""
    return [
        link
        for row, method in zip(names, methods, strict=True)
        for link in _learned(task, row, method, **how)
    ]


def _exact(task: TableData, names: tuple[str, str]) -> list[Link]:
    return _rows(task, names, _NEWTON, why=_SAME_OPTIMUM, weights=_ONE_PROGRAM)


def _silp(task: TableData) -> list[Link]:
    weights = _ROWS_WEIGHTS if _is_subset(task) else ""
    return _rows(task, _SILP_ROWS, (ye.SILP, ye.SILP_JOINT), weights=weights)


def _sdp(task: TableData) -> list[Link]:
    """Return the links of the approximate program, or of the exact one where it takes too long."""
    if _is_subset(task):
        how = {"why": _APPROXIMATE, "weights": _APPROXIMATE, "judged": False}
        return _rows(task, _SDP_ROWS, _NEWTON, **how)
    return _rows(task, _SDP_ROWS, (ye.SDP, ye.SDP_JOINT))


def _binary_table(task: TableData) -> Reproduction:
    learners = (ye.EXACT, ye.EXACT_JOINT, ye.SILP, ye.SILP_JOINT, ye.KIM, *ye.MARGINS)
    alone = [method for methods in ye.ALONE.values() for method in methods]
    links = [
        *_exact(task, _SDP_ROWS),
        *_exact(task, _QCQP_ROWS),
        *_silp(task),
        *_learned(task, "SDP_Kim", ye.KIM, weights=_KIM),
        *(link for method in ye.MARGINS for link in _margin(task, method)),
        *(link for method in (ye.RKDA_CV, ye.SVM_CV) for link in _validated(task, method)),
        *_alone(task),
    ]
    return Reproduction(
        f"ye2008-table{task.table}",
        (_plan(task, [*learners, ye.RKDA_CV, ye.SVM_CV, *alone]),),
        tuple(links),
        ye.OPEN,
    )


def _multi_table(task: TableData) -> Reproduction:
    methods = [ye.EXACT, ye.EXACT_JOINT, ye.SILP, ye.SILP_JOINT, ye.RKDA_CV, ye.SVM_CV]
    plans = [_plan(task, methods)]
    if not _is_subset(task):
        plans.append(_plan(task, [ye.SDP, ye.SDP_JOINT], n=ye.FEW))
    links = [
        *_sdp(task),
        *_exact(task, _QCQP_ROWS),
        *_silp(task),
        *(link for method in (ye.RKDA_CV, ye.SVM_CV) for link in _validated(task, method)),
    ]
    return Reproduction(f"ye2008-table{task.table}", tuple(plans), tuple(links), _notes(task))


def _notes(task: TableData) -> tuple[str, ...]:
    """Return what is to be known about the rows of several classes."""
    if not _is_subset(task):
        few = f"The approximate program is run on the first {ye.FEW} splits."
        return (*ye.OPEN, few, _WINE)
    special = {
        "usps": _USPS,
        "satimage": (_SATIMAGE,),
        "segment": (_SEGMENT,),
        "waveform": (_WAVEFORM,),
    }
    return (*ye.OPEN, _SUBSET, *special[task.data.name])


# ---- Tables 16 and 17, Section 5.3 ---------------------------------------------------------------

#: With more training rows, and the classes that come with them, the QCQP takes minutes a fit.
_MOST_QCQP_ROWS = 240


def _named(task: TableData, method: Method) -> Method:
    """Return a method under a name of its own, as several tables have rows of one data set."""
    return replace(method, name=f"{task.label}: {method.name}")


def _times() -> Reproduction:
    plans, links = [], []
    for task in ye.MULTI:
        quick = [ye.SILP, ye.SILP_JOINT, ye.RKDA_CV, ye.SVM_CV]
        slow = []
        if task.n_train <= _MOST_QCQP_ROWS:
            slow += [ye.QCQP, ye.QCQP_JOINT]
        if not _is_subset(task):
            slow += [ye.SDP, ye.SDP_JOINT]
        plans.append(_plan(task, [_named(task, method) for method in quick]))
        if slow:
            plans.append(_plan(task, [_named(task, method) for method in slow], n=ye.FEW))
        for method in [*quick, *slow]:
            name = _named(task, method).name
            links.append(
                Link(method.name, task.label, task.data.name, name, seconds, _TIMES, judged=False)
            )
    notes = (
        *ye.OPEN,
        f"SDP is run on wine only and QCQP on the smaller data sets, {ye.FEW} splits each: the "
        "others take minutes to hours a fit. Newton's method, our default, is in Figure 1.",
    )
    return Reproduction("ye2008-table16", tuple(plans), tuple(links), notes, time_ratios)


def _support_vectors() -> Reproduction:
    def percent(record: Record) -> float:
        metrics = record.result.metrics
        return 100.0 * metrics["support_vectors"] / metrics["training_rows"]

    links = []
    for task in ye.BINARY:
        row, name = task.label, task.data.name
        rows = metric("training_rows")
        reason = "The training size is that of the split, and not judged."
        links.append(Link(row, "training size", name, "SM1", rows, reason, judged=False))
        for method in ye.MARGINS:
            kind, why = method.name, _SV_COUNT if method.name == "SM1" else _SV_THRESHOLD
            reason = _LEARNT if kind == "SM2_C" else _GIVEN
            links += [
                Link(row, f"C, {kind}", name, kind, ye.margin_cost, reason, judged=False),
                Link(row, f"SVs, {kind}", name, kind, metric("support_vectors"), why),
                Link(row, f"PCT, {kind}", name, kind, percent, why),
            ]
    plans = tuple(_plan(task, ye.MARGINS) for task in ye.BINARY)
    return Reproduction("ye2008-table17", plans, tuple(links), ye.OPEN)


_PRIVATE = Reproduction(
    "ye2008-section5.3",
    notes=(
        f"The {len(published('ye2008')['ye2008-section5.3'].cells)} numbers are of FlyExpress "
        "images, which are not public. Public data of several sources are mfeat, six views of "
        "digits, and protein_fold, twelve of proteins.",
    ),
)

TABLES = (
    *(_binary_table(task) for task in ye.BINARY),
    *(_multi_table(task) for task in ye.MULTI),
    _times(),
    _support_vectors(),
    _PRIVATE,
)
