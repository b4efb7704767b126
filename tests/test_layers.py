"""The layers point one way, and the package imports nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import discernel

ROOT = Path(discernel.__file__).parent
ORDER = [
    "exceptions",
    "backend",
    "kernels",
    "bank",
    "targets",
    "criteria",
    "learners",
    "solvers",
    "discriminant",
    "estimators",
    "displays",
    "datasets",
    "experiments",
    "bench",
    "report",
    "cli",
    "__main__",
]


def room(module):
    return module.split(".")[1] if module.startswith("discernel.") else None


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_room_is_in_the_order():
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert rooms - {"__init__", "__pycache__"} == set(ORDER)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_points_backwards(path):
    here = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if here == "__init__":
        return
    for module in imports(path):
        target = room(module)
        if target is not None:
            assert ORDER.index(target) <= ORDER.index(here), f"{here} imports {module}"


def test_optional_packages_are_not_imported_with_the_package():
    code = (
        "import sys, discernel;"
        "print([n for n in ('cvxpy', 'clarabel', 'matplotlib') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_are_listed_sorted_and_there():
    names = discernel.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(discernel, name) for name in names)
