"""Options that a dataclass declares: one declaration makes the option, its help, its checks and the default."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from messages import refusal_of

from elmo_zh.checks import check_value
from elmo_zh.cli.declared import takes
from elmo_zh.config import Layers
from elmo_zh.config.declare import declare, values_of


@dataclass(frozen=True, kw_only=True)
class _Choice:
    output: Path = declare(..., "File to write, which is not a folder.", path={"dir_okay": False}, metavar="FILE")
    head: str = declare("bilstm", "Network.", choices=("bilstm", "linear"))
    num_seeds: int = declare(1, "Trainings.", least=1, most=100, names=("--seeds",))
    rate: float = declare(0.5, "Learning rate.", above=0, most=1)
    size: int = declare(0, "Size.", least=4, also=0)
    limit: int | None = declare(None, "Examples. Default: all.", least=1)
    columns: tuple[str, ...] = declare((), "Column.", names=("--column",))
    layers: Layers = declare(Layers(), "Layers.")
    quick: bool = declare(False, "Do less.")
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
    given += ("--size", "5e3", "--layers", "2, 1")
    expected = _Choice(
        output=Path("a"), num_seeds=3, rate=1.0, columns=("a", "b"), quick=True, head="linear", size=5000,
        layers=Layers("2,1"),
    )  # fmt: skip
    assert _run("--output", "a", *given).strip() == f"{expected} x"


WRONG: list[tuple[str, Any, str]] = [
    ("head", "crf", "bilstm, linear"),
    ("num_seeds", 0, "a whole number (1<=x<=100)"),
    ("num_seeds", 1.5, "a whole number (1<=x<=100)"),
    ("num_seeds", 10**30, "a whole number (1<=x<=100)"),
    ("limit", 2**63, "a whole number (x>=1)"),
    ("rate", 0.0, "a number (0<x<=1)"),
    ("rate", "nan", "a number (0<x<=1)"),
    ("size", 3, "a whole number (0, x>=4)"),
    ("layers", "1,1", "all, average, top, mix, the number of a layer (0, 1, ...), or numbers such as 1,2"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_the_same_values_are_refused_on_the_command_line_and_in_python(name: str, value: Any, allowed: str) -> None:
    declared = values_of(_Choice)[name]
    option = declared.option.get("names", (f"--{name}",))[0]
    answer = _run("--output", "a", option, str(value))
    assert answer.splitlines()[-1] == f"Error: Invalid value for '{option}': {value}; expected {allowed}."
    given = float("nan") if value == "nan" else value
    told = refusal_of(ValueError, lambda: check_value(declared, given, "call"))
    assert told.startswith(f"call: {name} is ")
    assert told.endswith(f"; expected {allowed}")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("num_seeds", np.int64(3), 3), ("num_seeds", 3.0, 3), ("rate", np.float32(0.5), 0.5), ("rate", 1, 1.0),
     ("limit", None, None), ("size", 0, 0), ("layers", [2, 1], "2,1")],
)  # fmt: skip
def test_values_become_the_declared_type(name: str, value: Any, expected: Any) -> None:
    found = values_of(_Choice)[name].convert(value)
    assert found == expected
    assert isinstance(found, type(expected))


def test_the_help_shows_text_default_and_range() -> None:
    help_text = " ".join(_run("--help").split())
    assert "--output FILE File to write, which is not a folder. [required]" in help_text
    assert "--head [bilstm|linear] Network. [default: bilstm]" in help_text
    assert "--seeds NUMBER Trainings. [default: 1; 1<=x<=100]" in help_text
    assert "--rate NUMBER Learning rate. [default: 0.5; 0<x<=1]" in help_text
    assert "--quick Do less. --other" in help_text
