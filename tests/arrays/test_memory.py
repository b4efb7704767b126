"""The memory that a process may take: that of the machine, of its container, or its own limit."""

import subprocess
import sys
import textwrap

import pytest

from discernel.arrays import machine

resource = pytest.importorskip("resource")


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "1000\n"}, [1000]),
        ("0::/a/b\n", {"a/memory.max": "2000", "a/b/memory.max": "max\n"}, [2000]),
        ("4:memory:/x\n1:cpu:/y\n", {"memory/x/memory.limit_in_bytes": "3000"}, [3000]),
        ("4:memory:/outside\n", {"memory/memory.limit_in_bytes": "4000"}, [4000]),
        ("1:cpu:/y\n", {"memory.max": "1"}, []),
    ],
)
def test_limits_of_containers_of_both_versions(tmp_path, groups, files, expected):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert machine._container_limits(tmp_path) == expected


def test_no_limits_where_there_are_no_groups(tmp_path):
    assert machine._container_limits(tmp_path) == []


def test_the_smaller_limit_counts(monkeypatch):
    alone = machine.memory_limit()
    monkeypatch.setattr(machine, "_container_limits", lambda: [12345, 2**62])
    assert machine.memory_limit() == 12345
    monkeypatch.setattr(machine, "_container_limits", lambda: [2**62])
    assert machine.memory_limit() is not None
    assert alone is None or machine.memory_limit() >= alone


def test_what_is_left_of_the_address_space(monkeypatch, tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/statm").write_text("100 50 20 1 0 30 0\n")
    page = resource.getpagesize()
    for limit, expected in [
        (resource.RLIM_INFINITY, []),
        (1000 * page, [900 * page]),
        (10 * page, [0]),
    ]:
        monkeypatch.setattr(machine.resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert machine._address_space_left(tmp_path) == expected
    assert machine._address_space_left(tmp_path / "nothing") == [10 * page]


def test_systems_without_such_limits(monkeypatch):
    monkeypatch.setattr(machine, "resource", None)
    assert machine._address_space_left() == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is used")
def test_a_fit_beyond_the_address_space_is_refused_before_any_work():
    """The matrices of 8,000 rows are 512 MB each, and the process may take 600 MB more."""
    code = """
        import resource
        import numpy as np
        from discernel import MultipleKernelDiscriminant
        from discernel.kernels import RBF

        X = np.random.default_rng(0).standard_normal((8000, 2))
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 600 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        kernels = [RBF(width=1.0), RBF(width=2.0)]
        try:
            MultipleKernelDiscriminant(kernels, bank="tiled").fit(X, X[:, 0] > 0)
        except Exception as error:
            print(type(error).__name__, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("InvalidInputError Two matrices"), done.stdout
    assert "This process may use 0." in done.stdout
