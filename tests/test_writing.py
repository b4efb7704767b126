"""Files are written whole or not at all, and never one over another."""

import errno
import os
import stat

import pytest

from discernel.exceptions import FileWriteError, InvalidInputError
from discernel.rows.writing import check_writable_path, csv_text, refuse_same_file, write_file


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def only(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_made_or_replaced(tmp_path, old):
    assert write_file(old, b"new") == old
    write_file(tmp_path / "other", b"")
    assert old.read_bytes() == b"new"
    assert only(tmp_path) == ["file", "other"]


@pytest.mark.parametrize("step", ["fsync", "open", "replace"])
def test_what_cannot_be_written_leaves_the_old_file(tmp_path, old, monkeypatch, step):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if step == "open":
        monkeypatch.setattr("discernel.rows.writing.Path.open", full)
    elif step == "replace":
        monkeypatch.setattr("discernel.rows.writing.Path.replace", full)
    else:
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileWriteError, match="could not be written: No space left on device"):
        write_file(old, b"new")
    monkeypatch.undo()
    assert old.read_bytes() == b"old"
    assert only(tmp_path) == ["file"]


def test_an_interruption_leaves_the_old_file(tmp_path, old, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(old, b"new")
    assert old.read_bytes() == b"old"
    assert only(tmp_path) == ["file"]


def test_rights_and_links_stay(tmp_path, old):
    old.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(old)
    write_file(link, b"new")
    assert link.is_symlink()
    assert old.read_bytes() == b"new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "fresh", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_a_file_that_may_not_be_written_is_not_replaced(old, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # who is root may write anything
    with pytest.raises(FileWriteError, match="Permission denied"):
        write_file(old, b"new")
    assert old.read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there are no device files")
def test_what_is_no_file_is_written_to():
    write_file("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_places_without_a_folder_are_refused(tmp_path):
    check_writable_path("page", tmp_path / "page.html")
    for path in (tmp_path, tmp_path / "none" / "page.html"):
        with pytest.raises(
            InvalidInputError, match="The page must be a file in an existing folder"
        ):
            check_writable_path("page", path)


def test_two_names_of_one_file_are_refused(tmp_path, old):
    (tmp_path / "soft").symlink_to(old)
    os.link(old, tmp_path / "hard")
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    refuse_same_file(data=old, store=tmp_path / "other", report=None)
    for one, other in (
        ("file", "file"),
        ("file", "soft"),
        ("file", "hard"),
        ("soft", "hard"),
        ("new", "dangling"),
        ("new", "../" + tmp_path.name + "/new"),
    ):
        with pytest.raises(InvalidInputError, match="The store and the report must be different"):
            refuse_same_file(store=tmp_path / one, report=tmp_path / other)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("'=x", "''=x"),
        ("'tis", "'tis"),
        ("-", "'-"),
        ("-1+cmd", "'-1+cmd"),
        ("-1.5e3", "-1.5e3"),
        (-2, "-2"),
        ("a=b", "a=b"),
    ],
)
def test_no_cell_is_a_formula_and_every_text_comes_back(cell, written):
    assert csv_text(["x"], [[cell]]) == f"x\n{written}\n"
    assert csv_text([cell], []) == f"{written}\n"


def test_ends_of_lines_are_quoted():
    assert csv_text(["x"], [["\rx"], ["a\nb"]]) == 'x\n"\'\rx"\n"a\nb"\n'
