"""What README and docs say exists: pages, headings, modules, commands, options, settings; translations keep step."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from contract.command_line import COMMANDS, GROUPS, ROOT, run_python

from elmo_zh.cli import cli
from elmo_zh.config import Config, load_config

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("README*.md")), ROOT / "CONTRIBUTING.md", ROOT / "data" / "README.md", *DOCS]
CHINESE = [ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").glob("*.md"))]
# Each translation with its original; the other Chinese pages have none.
ORIGINALS = {page: ROOT / "docs" / page.name for page in CHINESE} | {ROOT / "README.zh.md": ROOT / "README.md"}
TRANSLATIONS = [page for page, original in ORIGINALS.items() if original.exists()]
GENERATED = ("settings.md", "commands.md")
# Options and files that are not ours.
OTHER_OPTIONS = {
    "--master-addr", "--master-port", "--memory-limit", "--max-restarts", "--nnodes", "--node-rank", "--nproc-per-node",
    "--nthreads", "--nworkers", "--rdzv", "--run-path", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--python37",
    "--depth", "--shutdown-timeout", "--speed", "--version", "--help", "--print-schema",
}  # fmt: skip
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def code_blocks(page: Path) -> list[tuple[str, str]]:
    return FENCED.findall(page.read_text(encoding="utf-8"))


def without_blocks(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def code_spans(page: Path) -> list[str]:
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", without_blocks(page))


def headings(page: Path) -> list[tuple[int, str]]:
    return [(len(marks), text) for marks, text in re.findall(r"^(#+) (.+)$", without_blocks(page), re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for _, text in headings(page)}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(linked), f"{target}: the page has no such heading"


def without_comments(language: str, code: str) -> list[str]:
    lines = code.splitlines()
    return [re.sub(r"\s+# .*", "", line) for line in lines] if language in ("python", "console") else lines


def without_words(language: str, code: str) -> list[str | list[str]]:
    """A block whose output may be in another language: what is typed, and the figures of the other lines."""
    lines = without_comments(language, code)
    if language not in ("", "console", "text"):
        return [*lines]
    return [line if line.startswith("$ ") else sorted(re.findall(r"\d+(?:[.,]\d+)*", line)) for line in lines]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=name_of)
def test_a_translation_has_the_headings_and_the_code_of_its_original(page: Path) -> None:
    original = ORIGINALS[page]
    assert [level for level, _ in headings(page)] == [level for level, _ in headings(original)]
    if page.name in GENERATED:
        return  # help is translated
    blocks = [
        [(language, without_words(language, code)) for language, code in code_blocks(version)]
        for version in (page, original)
    ]
    # The page for Chinese readers has an order of its own.
    translated, expected = (sorted(version, key=str) for version in blocks) if page.name == "README.zh.md" else blocks
    assert translated == expected


def load_script(name: str) -> Any:
    path = ROOT / "docs" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("language", "columns"), [("en", ""), ("en", "40"), ("zh", "")])
def test_generated_pages_are_up_to_date(language: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, since the help is translated in place."""
    monkeypatch.setenv("ELMO_ZH_LANG", language)
    monkeypatch.setenv("COLUMNS", columns)
    code = "import generate; generate.speak(generate.cli); print(*(page() for page in generate.PAGES.values()), sep='')"
    answer = run_python("-c", code, cwd=ROOT / "docs")
    folder = ROOT / "docs" / "zh" if language == "zh" else ROOT / "docs"
    written = "".join((folder / name).read_text(encoding="utf-8") for name in GENERATED)
    assert answer.stdout == f"{written}\n", f"{folder} has stale pages. Run: make docs\n{answer.stderr}"


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield what is typed after elmo-zh in each line that has it."""
    for line in text.replace("\\\n", " ").splitlines():
        if not re.search(r"(?:elmo-zh|elmo_zh) [a-z0-9]", line):
            continue
        words = shlex.split(line.removeprefix("$ "), comments=True)
        for index, word in enumerate(words):
            if Path(word).name in ("elmo-zh", "elmo_zh") and words[index + 1 : index + 2]:
                rest = words[index + 1 :]
                yield rest[: rest.index("|")] if "|" in rest else rest


def documented_commands() -> list[tuple[str, list[str]]]:
    found = []
    for page in PAGES:
        for _, block in code_blocks(page):
            lines = "\n".join(line for line in block.splitlines() if not line.startswith(("Usage: ", "用法")))
            found += [
                (name_of(page), words) for words in commands_in(typed_lines(lines)) if words[0] in (*COMMANDS, *GROUPS)
            ]
    return found


def typed_lines(block: str) -> str:
    """The lines of a block that start with a command: in help texts and outputs there are others."""
    typed = re.compile(r"^\s*(\$ .*|\S*elmo-zh .*|torchrun .*|.*\| \S*elmo-zh .*|.*\\|\s+-m -- elmo_zh .*)$")
    return "\n".join(line for line in block.splitlines() if typed.match(line))


@pytest.mark.parametrize(("page", "words"), documented_commands(), ids=lambda value: " ".join(value)[:60])
def test_documented_commands_can_be_parsed(page: str, words: list[str]) -> None:
    """Options exist, have the values that they need, and these are among the choices; settings are known."""
    command, arguments = cli.commands[words[0]], words[1:]
    if isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    context = click.Context(command, info_name=words[0])
    values, _, _ = command.make_parser(context).parse_args(args=[word for word in arguments if word != "..."])
    for parameter in command.params:
        value = values.get(parameter.name or "")
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            parameter.type.convert(value, parameter, context)
    assert load_config(Config(), None, values.get("set") or [])
    if "config" in values and isinstance(values["config"], str):
        assert (ROOT / values["config"]).exists()


def options_of(*names: str) -> set[str]:
    """Return the options of commands, of a group those of all its commands."""
    commands = [cli.commands[name] for name in names]
    groups = [command for command in commands if isinstance(command, click.Group)]
    commands += [command for group in groups for command in group.commands.values()]
    return {option for command in commands for each in command.params for option in each.opts}


@each_page
def test_options_named_in_passing_exist(page: Path) -> None:
    """The log also names options of the past."""
    for span in code_spans(page) if page.name != "log.md" else ():
        words = span.removeprefix(".venv/bin/").removeprefix("elmo-zh ").split()
        known = (*COMMANDS, *GROUPS)
        own = [words[0]] if words and words[0] in known else known
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", span):
            assert option in options_of(*own) | OTHER_OPTIONS or "pip" in span, f"`{span}`: {option}"
