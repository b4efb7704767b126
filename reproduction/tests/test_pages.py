"""What the pages say of the published tables is what was found."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import discernel_reproduction
from discernel_reproduction.reproduce import names, reproduction

ROOT = Path(__file__).parent.parent
TABLES = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(
        discernel_reproduction.__path__, prefix="discernel_reproduction."
    )
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", names())
def test_the_page_of_published_tables_has_the_notes_of_the_plans(name):
    section = TABLES.partition(f"### {name}: ")[2].partition("\n### ")[0]
    assert section
    for note in reproduction(name).notes:
        assert f"\n- {note}\n" in section


def test_the_page_of_the_library_has_the_counts_of_the_tables():
    page = (ROOT.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")
    counts = re.findall(r"^\| (?:accuracy and error|weights|other) \|.*$", TABLES, flags=re.M)
    assert len(counts) == 3
    assert all(line in page for line in counts)
