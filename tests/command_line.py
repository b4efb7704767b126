"""Run commands in tests; see also the fixture `own_folder`."""

from typer.testing import CliRunner

from discernel.cli import app as commands


def invoke(*words, code=0, given=None):
    """Run a command, check its exit code, and return its outputs.

    ``given`` is the standard input.
    """
    result = CliRunner().invoke(commands.app, [str(word) for word in words], given)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
