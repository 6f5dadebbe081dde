"""Messages in Chinese: the catalogue, and what the command line says."""

import re
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import run_python
from test_pages import load_script

from elmo_zh.language import chosen_language
from elmo_zh.run.reporter import display_width, wrapped


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


def test_chinese_is_wrapped_by_its_width() -> None:
    lines = list(wrapped("训练语言模型，或者继续训练。参数 --run 指定运行文件夹，之后的命令会沿用同样的设置。", 20))
    assert all(display_width(line) <= 22 for line in lines)
    assert not [line for line in lines if line[0] in "，。"]
    assert "".join(lines).replace(" ", "").startswith("训练语言模型，或者继续训练。参数--run指定运行文件夹")


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
    assert {message.id for message in script.messages_of_code()} == known
    assert [message.id for message in catalogue if message.id and not script.forms(message)[1]] == []
    assert [message.id for message in catalogue if message.id and message.fuzzy] == []


def test_translations_keep_the_gaps_options_and_paths_of_their_messages(script: Any, catalogue: Any) -> None:
    for message in catalogue:
        english, chinese = script.forms(message)
        if message.id:
            assert script.gaps_of(chinese) == script.gaps_of(english[-1]), english
            names = re.findall(r"(?<![\w-])--[a-z][a-z-]+|\b(?:docs|configs)/[\w./-]+\b", english[0])
            assert [name for name in names if name not in chinese] == [], english


def test_a_changed_word_keeps_the_translation_as_fuzzy(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = "Print the result as one JSON object on stdout.", "Print the results as one JSON object on stdout."
    old, new, other = script.Catalog(locale="zh"), script.Catalog(), "{path} is not there. Check {path}."
    old.add(before, "将结果打印为一个 JSON 对象。")
    old.add("{path} is not there. Check {name}.", "找不到 {path}，请检查 {name}。")
    new.add(after)
    new.add(other)
    monkeypatch.setattr(script, "messages_of_code", lambda: new)
    updated = script.updated(old)
    assert (updated[after].string, updated[after].fuzzy) == ("将结果打印为一个 JSON 对象。", True)
    assert not updated[other].string, "a translation with other gaps cannot be filled"


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
        (("score", "x", "--keep-share", "80%"), "'--keep-share' 的值无效：80%，应为 0 至 1 的数。"),
    ):
        assert run(*arguments).stderr.splitlines()[-1].startswith(f"错误：{told}")
    no_data = run("task", "score", "test.csv", "--task", "x")
    assert (no_data.status, "文件 'test.csv' 不存在" in no_data.stderr) == (2, True)
    help_text = run("embed", "--help").stdout
    assert help_text.startswith("用法：")
    assert re.search(r"[\u4e00-\u9fff]", help_text)
    assert all(display_width(line) <= 100 for line in help_text.splitlines())
