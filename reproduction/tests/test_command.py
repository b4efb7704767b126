"""`discernel reproduce`, as users meet it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import discernel
import discernel_reproduction
from discernel.cli import shared
from discernel_reproduction.command import reproduce_command

APP = typer.Typer()
APP.command("reproduce")(reproduce_command)
PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shared.out, "width", 100)


def invoke(*words, code=0):
    result = CliRunner().invoke(APP, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_what_can_be_reproduced_is_listed():
    shown = invoke("--list").output
    assert "kim2006-table1" in shown
    assert invoke().output == shown


def test_the_command_line_finds_it_where_the_package_is_installed(tmp_path):
    """With the entry points of the project file, as an installation writes them."""
    points = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    package = tmp_path / "discernel_reproduction-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 0\n")
    lines = [f"[{group}]\n{n} = {v}" for group, all_ in points.items() for n, v in all_.items()]
    (package / "entry_points.txt").write_text("\n".join(lines))
    sources = (Path(each.__file__).parent.parent for each in (discernel, discernel_reproduction))
    path = os.pathsep.join(map(str, (tmp_path, *sources)))
    found = subprocess.run(
        [sys.executable, "-m", "discernel", "reproduce", "--list"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "kim2006-table1" in found.stdout, found.stderr


@pytest.mark.data
@pytest.mark.usefixtures("paper_data")
def test_numbers_stand_beside_the_published_ones():
    shown = invoke("kim2006-figure1", "--splits", "2", "-j", "1").output
    assert re.search(r"K\* +0\.91 +0\.\d\d ± \S+ +(agrees|better|differs)", shown)
    assert re.search(r"\d of 2 cells agree or are better", shown)
    assert "at most 2 splits" in shown


def test_a_figure_is_saved():
    shown = invoke("yeung2006-figure1", "-j", "1").output
    page = Path("discernel-results/yeung2006-figure1.png")
    assert f"figure: {page.resolve()}" in shown
    assert page.read_bytes().startswith(b"\x89PNG")


def test_what_a_user_can_mend_is_one_line():
    assert "must be one of" in invoke("kim2007", code=1).stderr
    Path("f").touch()
    found = invoke("yeung2006-figure1", "--store", "f/s.sqlite", code=1)
    assert "The folder f could not be created: File exists" in found.stderr
