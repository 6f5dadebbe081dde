"""Messages in Chinese: the catalogue, and what the command line says."""

import ast
import re
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import run_python
from test_pages import load_script

from elmo_zh.language import LOCALES, chosen_language
from elmo_zh.run.reporter import display_width

PAGES = Path(__file__).parents[1] / "docs" / "zh"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "ELMO_ZH_LANG": "en"}, "en"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh_TW:en"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": "de_DE"}, "en"),
    ],
)
def test_the_first_variable_that_is_set_decides(environment: dict[str, str], language: str) -> None:
    assert chosen_language(environment) == language


@pytest.fixture(scope="module")
def script() -> Any:
    pytest.importorskip("babel", reason="Babel is not installed: make set-up-dev")
    return load_script("messages")


@pytest.fixture(scope="module")
def catalogue(script: Any) -> Any:
    return script.read_po(BytesIO(script.PO.read_bytes()), locale="zh")


def test_the_catalogue_has_the_messages_of_the_code_in_chinese(script: Any, catalogue: Any) -> None:
    """If this fails: make messages, then write the Chinese that it lists as untranslated, and check what is fuzzy."""
    known = {message.id for message in catalogue}
    assert {message.id for message in script.messages_of_code(catalogue)} == known
    assert [message.id for message in catalogue if message.id and not script.forms(message)[1]] == []
    assert [message.id for message in catalogue if message.id and message.fuzzy] == []


def test_no_message_hides_within_an_f_string(catalogue: Any) -> None:
    """Babel does not look there, so that it would never be translated."""
    known = {message.id for message in catalogue}
    for path in LOCALES.parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("_", "N_"):
                assert not isinstance(call.args[0], ast.Constant) or call.args[0].value in known, (path, call.lineno)


def test_translations_keep_the_gaps_options_and_paths_of_their_messages(script: Any, catalogue: Any) -> None:
    for message in catalogue:
        english, chinese = script.forms(message)
        if message.id:
            assert script.gaps_of(chinese) == script.gaps_of(english[-1]), english
            names = re.findall(r"(?<![\w-])--[a-z][a-z-]+|\b(?:docs|configs)/[\w./-]+\b", english[0])
            assert [name for name in names if name not in chinese.replace("docs/zh/", "docs/")] == [], english
            # A page that exists in Chinese is named in Chinese.
            pages = re.findall(r"\bdocs/[\w./-]+\.md\b", chinese)
            assert [page for page in pages if (PAGES / page.removeprefix("docs/")).is_file()] == [], english


def test_the_command_line_speaks_chinese_where_the_environment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_ZH_LANG", "zh")
    run = partial(run_python, "-m", "elmo_zh", cwd=tmp_path)
    missing = run("info", "model")
    assert (missing.status, missing.stderr.startswith("错误：")) == (1, True)
    wrong = run("embed", "--nonsense")
    assert (wrong.status, "没有选项 '--nonsense'" in wrong.stderr) == (2, True)
    for arguments, told in (
        (("embed", "--modle"), "没有选项 '--modle'。您要找的是 '--model', '--pool' 吗？"),
        (("ebmed",), "没有命令 'ebmed'。您要找的是 'embed' 吗？"),
        (("score", "x", "--keep-share", "80%"), "'--keep-share' 的值无效：80%，应为 数字 (0<=x<=1)。"),
    ):
        assert run(*arguments).stderr.splitlines()[-1].startswith(f"错误：{told}")
    no_data = run("task", "score", "test.csv", "--task", "x")
    assert (no_data.status, "文件 'test.csv' 不存在" in no_data.stderr) == (2, True)
    help_text = run("embed", "--help").stdout
    assert help_text.startswith("用法：")
    assert re.search(r"[\u4e00-\u9fff]", help_text)
    assert all(display_width(line) <= 100 for line in help_text.splitlines())
