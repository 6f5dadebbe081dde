"""Options that a dataclass declares: one declaration makes the option, its help, its checks and the default."""

from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from elmo_zh.cli.options import takes
from elmo_zh.config.fields import option, problems_of_fields


@dataclass(frozen=True, kw_only=True)
class _Choice:
    output: Path = option(..., path={"dir_okay": False}, metavar="FILE")
    """File to write, which
    is not a folder."""
    head: str = option("bilstm", choices=("bilstm", "linear"))
    """Network."""
    num_seeds: int = option(1, least=1, most=100, names=("--seeds",))
    """Trainings."""
    rate: float = option(0.5, above=0, most=1)
    """Learning rate."""
    limit: int | None = option(None, least=1)
    """Examples. Default: all."""
    columns: tuple[str, ...] = option((), names=("--column",))
    """Column."""
    quick: bool = option(False)
    """Do less."""
    computed: int = option(2, help=f"At least {1 + 1}.")
    name: str = "not an option"


@click.command()
@takes(_Choice, "choice")
@click.option("--other", default="x")
def _show(choice: _Choice, other: str) -> None:
    click.echo(f"{choice} {other}")


def _run(*words: str) -> str:
    return CliRunner().invoke(_show, words).output


def test_the_command_gets_the_dataclass_with_its_defaults_or_the_values_given() -> None:
    assert _run("--output", "a").strip() == f"{_Choice(output=Path('a'))} x"
    given = ("--seeds", "3", "--rate", "1", "--column", "a", "--column", "b", "--quick", "--head", "linear")
    expected = _Choice(output=Path("a"), num_seeds=3, rate=1.0, columns=("a", "b"), quick=True, head="linear")
    assert _run("--output", "a", *given).strip() == f"{expected} x"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--output'"),
        (("--output", "a", "--seeds", "0"), "0 is not in the range 1<=x<=100"),
        (("--output", "a", "--rate", "0"), "0.0 is not in the range 0<x<=1"),
        (("--output", "a", "--limit", "0"), "0 is not in the range x>=1"),
        (("--output", "a", "--head", "crf"), "'crf' is not one of 'bilstm', 'linear'"),
    ],
)
def test_the_command_refuses_what_the_fields_do_not_allow(words: tuple[str, ...], message: str) -> None:
    assert message in _run(*words)


def test_the_help_shows_text_default_and_range() -> None:
    help_text = " ".join(_run("--help").split())
    assert "--output FILE File to write, which is not a folder. [required]" in help_text
    assert "--seeds INTEGER RANGE Trainings. [default: 1; 1<=x<=100]" in help_text
    assert "--quick Do less. --computed INTEGER At least 2. [default: 2] --other" in help_text


def test_the_same_limits_hold_in_python() -> None:
    wrong = _Choice(output=Path("a"), head="crf", num_seeds=0, rate=0.0)
    assert list(problems_of_fields(wrong)) == [
        "head = 'crf' is not one of bilstm, linear",
        "num_seeds = 0 must be between 1 and 100",
        "rate = 0.0 must be above 0 and at most 1",
    ]
    assert list(problems_of_fields(_Choice(output=Path("a")))) == []
