"""The listed changes of the core are changes of its present text."""

import tomllib
from pathlib import Path

import discernel

CHANGES = Path(__file__).parents[2] / "benchmarks" / "mutations.toml"
SOURCE = Path(discernel.__file__).parent


def test_every_listed_change_is_of_one_place():
    changes = tomllib.loads(CHANGES.read_text(encoding="utf-8"))["change"]
    assert len(changes) > 100
    texts = {
        name: (SOURCE / name).read_text("utf-8") for name in {each["file"] for each in changes}
    }
    found = {each["name"]: texts[each["file"]].count(each["old"]) for each in changes}
    assert {name: n for name, n in found.items() if n != 1} == {}
