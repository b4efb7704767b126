"""What a long fit says while it runs."""

import io
import time

import pytest

from discernel.progress import in_words, phase, reporting
from discernel.progress import reporter as progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_says_the_share_of_the_forecast_and_what_it_is_at(monkeypatch):
    monkeypatch.setattr(progress, "_TERMINAL", 0.01)
    shown = Terminal()
    with reporting(10.0, verbose=True, stream=shown):
        phase("solving")
        time.sleep(0.2)
    lines = shown.getvalue().split("\r\x1b[K")
    assert any("of about 10 s: solving" in line for line in lines)
    assert lines[-1].startswith("[####################] 100%  done in ")
    assert lines[-1].endswith("\n")


def test_a_forecast_that_was_too_short_is_admitted(monkeypatch):
    monkeypatch.setattr(progress, "_FILE", 0.01)
    shown = io.StringIO()
    with reporting(0.001, verbose=True, stream=shown):
        time.sleep(0.2)
    assert "99%" in shown.getvalue()
    assert "longer than forecast" in shown.getvalue()


def test_ends_with_an_error_too():
    shown = io.StringIO()
    with pytest.raises(KeyError), reporting(1.0, verbose=True, stream=shown):
        raise KeyError
    assert shown.getvalue().startswith("Stopped after")
    phase("nobody listens any more")


def test_nothing_without_verbose(capsys):
    with reporting(1.0, verbose=False):
        phase("working")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.04 s"), (12.3, "12 s"), (119, "2 min"), (3600, "60 min"), (9000, "2.5 h")],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_reporter_ends_with_its_fit():
    with reporting(1.0, verbose=True, stream=io.StringIO()):
        assert progress._ACTIVE.get() is not None
    assert progress._ACTIVE.get() is None
