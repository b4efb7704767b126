"""The layers point one way, and the package imports nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import discernel

ROOT = Path(discernel.__file__).parent
ORDER = (
    "exceptions",
    "progress",
    "arrays",
    "kernels",
    "rows",
    "show",
    "bank",
    "targets",
    "programs",
    "discriminant",
    "default",
    "plan",
    "model",
    "inspection",
    "papers",
    "criteria",
    "solvers",
    "learn",
    "estimators",
    "estimators of papers",
    "persistence",
    "export",
    "displays",
    "testing",
    "compare",
    "report",
    "cli",
    "tables",
    "views",
    "datasets",
    "streams",
    "__main__",
)


def layer_of(parts):
    """Return the layer of a module, given as the parts of its name after ``discernel``.

    Criteria of papers come before the estimators, which use them by name. The estimator of a paper
    comes after the estimators, whose base it has.
    """
    if parts[0] == "papers" and "estimator" in parts[2:3]:
        return "estimators of papers"
    return parts[0]


MODULES = [path.relative_to(ROOT).with_suffix("").parts for path in ROOT.rglob("*.py")]
ROOMS = {layer_of(parts) for parts in MODULES}
#: The public names of the package, which come from rooms up to the estimators.
TOP = "the top"
MAY_USE_TOP = {"testing", "report", "cli", "__main__"}


# ---- what a file imports -----------------------------------------------------------------------


def modules_of(node, package):
    """Yield the full names that an import statement, or a call of import_module, asks for.

    Parameters
    ----------
    node : ast.AST
        Any part of the source.
    package : tuple of str
        The package that the source belongs to, which relative imports start from.
    """
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
            if alias.asname is None:  # binds the package itself, and so all that it has
                yield alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) + 1 - node.level] if node.level else ()
        stem = [*base, *([node.module] if node.module else [])]
        yield from (".".join([*stem, alias.name]) for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        said = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
        if name in ("import_module", "__import__") and isinstance(said, ast.Constant):
            yield str(said.value).lstrip(".")


def rooms_used(source, package=("discernel",)):
    """Yield the line and the room of every import of the package's own parts, at any depth."""
    for node in ast.walk(ast.parse(source)):
        for module in modules_of(node, package):
            first, *rest = module.split(".")
            if first == "discernel":
                yield node.lineno, layer_of(rest) if rest and rest[0] in {*ORDER, *ROOMS} else TOP


def is_backwards(here, used):
    return here not in MAY_USE_TOP if used == TOP else ORDER.index(used) > ORDER.index(here)


# ---- the tests ---------------------------------------------------------------------------------


def test_every_room_is_in_the_order():
    assert {"kernels", "programs", "cli"} < ROOMS
    assert ROOMS - {"__init__"} <= set(ORDER)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_points_backwards(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts == ("__init__",):
        return
    used = list(rooms_used(path.read_text(), ("discernel", *parts[:-1])))
    assert not [(line, room) for line, room in used if is_backwards(layer_of(parts), room)]


@pytest.mark.parametrize(
    "statement",
    [
        "import discernel.cli",
        "import discernel.cli.app as app",
        "import numpy, discernel.cli.app as app",
        "from discernel.cli import app",
        "from discernel.cli.app import main",
        "from discernel import cli",
        "from discernel import cli as above",
        "from .. import cli",
        "from ..cli import app",
        "from ..cli.app import main",
        "def late():\n    from discernel.cli import app",
        "if TYPE_CHECKING:\n    from discernel.cli import app",
        "try:\n    from discernel.cli import app\nexcept ImportError:\n    app = None",
        "import_module('discernel.cli.app')",
        "importlib.import_module(f'discernel.cli.{name}')",
        "__import__('discernel.cli')",
    ],
)
def test_a_planted_import_of_a_higher_room_is_noticed(statement):
    used = [room for _, room in rooms_used(statement, ("discernel", "kernels"))]
    assert "cli" in used
    assert is_backwards("kernels", "cli")
    assert not is_backwards("cli", "kernels")


@pytest.mark.parametrize(
    "statement",
    [
        "import discernel.papers.akfd.estimator",
        "from discernel.papers.akfd import estimator",
        "from discernel.papers.akfd.estimator import AKFDClassifier",
        "from .estimator import AKFDClassifier",
    ],
)
def test_a_planted_import_of_the_estimator_of_a_paper_is_noticed(statement):
    used = [room for _, room in rooms_used(statement, ("discernel", "papers", "akfd"))]
    assert "estimators of papers" in used
    for room in ("papers", "criteria", "estimators"):
        assert is_backwards(room, "estimators of papers")
    assert not is_backwards("estimators of papers", "estimators")


@pytest.mark.parametrize(
    "statement",
    [
        "import discernel",
        "import discernel as d",
        "import discernel.exceptions",  # then discernel.learn_kernel is at hand
        "from discernel import learn_kernel",
        "from discernel import exceptions, learn_kernel as learn",
        "from discernel import *",
        "from .. import learn_kernel",
        "def late():\n    import discernel",
        "import_module('discernel')",
    ],
)
@pytest.mark.parametrize(("room", "may"), [("kernels", False), ("displays", False), ("cli", True)])
def test_a_planted_import_of_the_top_is_noticed(statement, room, may):
    used = [used for _, used in rooms_used(statement, ("discernel", room))]
    assert TOP in used
    assert any(is_backwards(room, each) for each in used) is not may


@pytest.mark.parametrize(
    "statement",
    [
        "import numpy",
        "import discernel_other.cli",
        "from os import path",
        "from . import base",
        "from .base import Kernel",
        "from discernel.arrays import cli",
        "from discernel import arrays",
        "import discernel.arrays as backend",
        "print('discernel.cli')",
    ],
)
def test_an_import_that_points_down_passes(statement):
    used = rooms_used(statement, ("discernel", "kernels"))
    assert not [room for _, room in used if is_backwards("kernels", room)]


def test_the_name_of_a_class_means_one_thing():
    places = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 50
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_optional_packages_are_not_imported_with_the_package():
    code = (
        "import sys, discernel;"
        "heavy = ('cvxpy', 'clarabel', 'matplotlib', 'onnx', 'skl2onnx');"
        "print([n for n in heavy if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_what_most_programs_do_not_need_is_imported_on_first_use():
    late = ["bank.distributed", "learn.chunks", "papers.akfd.estimator", "persistence", "rows.open"]
    code = f"""
import sys, discernel
late = ["discernel." + name for name in {late}]
assert not [name for name in late if name in sys.modules]
discernel.AKFDClassifier, discernel.open_rows
assert [name for name in late if name in sys.modules] == [late[2], late[4]]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_listed_sorted_and_there():
    names = discernel.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(discernel, name) for name in names)


# ---- attributes --------------------------------------------------------------------------------

#: Objects of other libraries, which are set up by their attributes, and the data of a thread.
FOREIGN = {"_THREAD", "element", "entry", "operator", "table", "tags", "torch", "warnings", "work"}


#: What makes an object of one's own class.
MAKERS = {"cls", "cls.__new__", "object.__new__", "type(self)", "_select", "_without_workspace"}


def attributes_set(source):
    """Yield line and text of attributes that are set on neither oneself nor a copy just made."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, (ast.FunctionDef, ast.Module)):
            continue
        own, targets = {"self", "cls"}, []
        for node in own_nodes(function):
            if isinstance(node, ast.Assign):
                targets += node.targets
                if isinstance(node.value, ast.Call) and makes_own(node.value):
                    own |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
                targets.append(node.target)
        for target in targets:
            for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(each, ast.Attribute):
                    owner = ast.unparse(each.value).split(".")[0].split("[")[0]
                    is_deeper = owner == "self" and not isinstance(each.value, ast.Name)
                    if owner not in own | FOREIGN or is_deeper:
                        yield each.lineno, ast.unparse(each)


def own_nodes(function):
    """Yield the nodes of a function without those of functions in it."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node
            waiting += ast.iter_child_nodes(node)


def makes_own(call):
    """Whether a call makes an object of one's own class: copy(self), cls(...), type(self)(...)."""
    name = ast.unparse(call.func).removeprefix("self.")
    return name in MAKERS or (name in ("copy", "copy.copy") and "self" in ast.unparse(call))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_nobody_sets_attributes_of_others(path):
    assert list(attributes_set(path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "is_refused"),
    [
        ("def f(bank):\n    bank.last = 1", True),
        ("def f(self):\n    self.workspace.last = 1", True),
        ("def f(a, b):\n    a.x, b = 1, 2", True),
        ("import room\nroom.hook = print", True),
        ("def f(self):\n    self.last = 1", False),
        ("def f(self):\n    made = copy(self)\n    made.last = 1", False),
        ("def f(cls):\n    made = cls()\n    made.last = 1", False),
    ],
)
def test_a_planted_attribute_is_noticed(source, is_refused):
    assert bool(list(attributes_set(source))) is is_refused
