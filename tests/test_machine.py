"""The memory that a process may take: that of the machine, or of its container."""

import pytest

from discernel import machine


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
