"""The published numbers: well formed, plausible, consistent with each other, and as printed."""

import re

import pytest

from discernel.datasets import names, private_names
from discernel.exceptions import InvalidInputError
from discernel_reproduction.published import papers, published

TABLES = [table for paper in papers() for table in published(paper).values()]
CELLS = [(table, cell) for table in TABLES for cell in table.cells]

RANGES = {
    "accuracy_percent": (50, 100),
    "error_percent": (0, 50),
    "percent": (0, 100),
    "seconds": (0.1, 3600),
    "weight": (0, 10),
    "regularization": (1e-10, 1e8),
    "count": (0, 600),
    "p_value": (0, 1),
    "alignment": (0, 1),
    "auc": (0.5, 1),
}

#: The programs of Ye 2008, whose weights are scaled to sum to 1.
SCALED = ("SDP_θ", "SDP_θ,λ", "QCQP_θ", "QCQP_θ,λ", "SILP_θ", "SILP_θ,λ", "SDP_Kim")


def table(name):
    return published(name.split("-")[0])[name]


def test_all_tables_are_there():
    expected = {
        "fung2004": ["section5.2", "table1", "table2"],
        "kim2006": ["figure1", "table1"],
        "pothin2006": ["figure2", "table2", "table3"],
        "ye2008": ["section5.3", *(f"table{number}" for number in range(2, 18))],
        "yeung2006": ["section3.3", *(f"table{number}" for number in range(1, 6))],
    }
    for paper, places in expected.items():
        assert sorted(published(paper)) == sorted(f"{paper}-{place}" for place in places)
    assert papers() == sorted(expected)


def test_ids_are_unique_and_name_paper_and_place():
    for paper in papers():
        for name in published(paper):
            assert re.fullmatch(rf"{paper}-(table\d+|figure\d+|section\d\.\d)", name)
    assert len({table.id for table in TABLES}) == len(TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_cells_are_distinct_and_protocols_are_stated(table):
    assert table.title
    assert table.cells
    assert table.protocol["kernels"]
    assert {"train_share", "samples"} & set(table.protocol)
    places = [(cell.row, cell.column) for cell in table.cells]
    assert len(set(places)) == len(places)


def test_data_sets_have_names():
    for table, cell in CELLS:
        assert cell.dataset in (names() if table.public else private_names()), table.id


def test_values_are_plausible():
    for table, cell in CELLS:
        low, high = RANGES[cell.unit]
        assert low <= cell.value <= high, (table.id, cell)
        assert cell.error is None or 0 < cell.error < 10, (table.id, cell)
        assert not cell.uncertain or cell.note, (table.id, cell)


# ---- numbers that must agree -----------------------------------------------------------------


def ye_rows():
    for number in range(2, 16):
        cells = table(f"ye2008-table{number}").cells
        for row in dict.fromkeys(cell.row for cell in cells):
            yield number, row, {cell.column: cell for cell in cells if cell.row == row}


def test_weights_sum_to_one_with_a_learned_lambda_counted_in():
    checked = 0
    for number, row, cells in ye_rows():
        if row not in SCALED:
            continue
        total = sum(cells[f"θ{index}"].value for index in range(1, 11))
        if row.endswith(",λ") and not cells["λ"].uncertain:
            total += cells["λ"].value
        assert total == pytest.approx(1, abs=0.013 if row.endswith(",λ") else 0.006) or (
            cells["λ"].uncertain
        ), (number, row)
        checked += 1
    assert checked == 4 * 7 + 10 * 6


def test_cross_validation_chose_thirty_times():
    counts = [
        sum(cells[f"θ{index}"].value for index in range(1, 11))
        for _, row, cells in ye_rows()
        if row in ("RKDA_K,λ", "SVM_K,C")
    ]
    assert counts == [30] * 28


def test_soft_margin_weights_sum_to_the_number_of_kernels():
    for number, row, cells in ye_rows():
        if row in ("SM1", "SM2"):
            total = sum(cells[f"θ{index}"].value for index in range(1, 11))
            assert total == pytest.approx(10, abs=0.02), (number, row)


def test_support_vectors_and_their_shares():
    cells = table("ye2008-table17")
    for row in ("sonar", "heart", "ionosphere", "cancer"):
        size = cells.cell(row, "training size").value
        for method in ("SM1", "SM2", "SM2_C"):
            share = 100 * cells.cell(row, f"SVs, {method}").value / size
            assert share == pytest.approx(cells.cell(row, f"PCT, {method}").value, abs=0.03)


def test_the_end_of_the_gradient_steps_is_the_alignment_of_the_classifiers():
    end = table("pothin2006-figure2").cell("greedy + gradient", "training").value
    for norm in (1, 2):
        row = f"ℓ{norm}-SVM, κ_μ (greedy)"
        assert table("pothin2006-table3").cell(row, "alignment").value == end


def test_akfd_was_up_to_6_3_times_faster():
    times = table("fung2004-table2")
    rows = dict.fromkeys(cell.row for cell in times.cells)
    ratios = [
        times.cell(row, "KFD + kernel tuning").value / times.cell(row, "A-KFD").value
        for row in rows
    ]
    assert max(ratios) == pytest.approx(6.3, abs=0.05)


# ---- as printed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "row", "column", "value", "error"),
    [
        ("fung2004-table1", "Ionosphere (351 × 34)", "A-KFD", 94.7, None),
        ("fung2004-table1", "BUPA (345 × 6)", "p-value", 0.75, None),
        ("fung2004-table2", "Pima (768 × 8)", "KFD + kernel tuning", 598.4, None),
        ("fung2004-section5.2", "A-KFD", "seconds", 41.21, None),
        ("kim2006-table1", "Heart (297, 13)", "K_cv", 82.0, None),
        ("kim2006-figure1", "Sonar (208, 60)", "K*", 0.91, None),
        ("pothin2006-table2", "alignment (greedy)", "test", 0.6039, None),
        ("pothin2006-table3", "ℓ2-SVM, κ_μ (greedy)", "error", 2.79, None),
        ("yeung2006-table1", "Ours", "20%, k-NN k=1", 88.36, 0.08),
        ("yeung2006-table3", "Alignment", "20%, k-NN k=3", 88.77, 1.87),
        ("yeung2006-table5", "Ours", "40%, SVM C=1000", 83.84, 0.22),
        ("ye2008-table2", "SM2_C", "TSA", 89.84, 4.80),
        ("ye2008-table3", "SVM_K,C", "θ10", 17, None),
        ("ye2008-table4", "SDP_Kim", "TSA", 89.43, 3.98),
        ("ye2008-table5", "SVM_C", "θ1", 92.21, None),
        ("ye2008-table8", "SILP_θ,λ", "λ", 7.8e-9, None),
        ("ye2008-table15", "SDP_θ", "θ9", 0.415, None),
        ("ye2008-table16", "SDP_θ,λ", "USPS(8)", 1642.17, None),
        ("ye2008-table17", "cancer", "SVs, SM2_C", 212.5, None),
        ("ye2008-section5.3", "SILP_θ", "accuracy", 88.28, None),
    ],
)
def test_spot_checks(name, row, column, value, error):
    cell = table(name).cell(row, column)
    assert (cell.value, cell.error) == (value, error)


def test_unknown_papers_and_cells():
    with pytest.raises(InvalidInputError, match="paper must be one of 'fung2004'"):
        published("fung2005")
    with pytest.raises(InvalidInputError, match=r"cell of kim2006-table1 must be .* Got 'a \| b'"):
        table("kim2006-table1").cell("a", "b")
