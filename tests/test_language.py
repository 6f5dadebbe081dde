"""Messages in Chinese: templates, the catalogue, and what the command line says."""

import importlib.util
import re
from functools import partial
from pathlib import Path
from string import Formatter

import pytest
from contract.command_line import run_python
from test_pages import load_script

from elmo_zh.language import DOMAIN, LOCALES, chosen_language
from elmo_zh.old_translation import Translator, read_catalogue
from elmo_zh.run.reporter import display_width, wrapped

CATALOGUE = LOCALES / "zh" / "LC_MESSAGES" / f"{DOMAIN}.mo"
needs_babel = pytest.mark.skipif(
    not importlib.util.find_spec("babel"), reason="Babel is not installed: make set-up-dev"
)


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


def test_a_line_is_translated_by_the_template_that_it_was_made_from() -> None:
    translator = Translator({
        "Error: {message}": "错误：{message}",
        "{path} is not there.": "找不到 {path}。",
        "{path} is not there. Write {command}.": "找不到 {path}，请输入 {command}。",
        "Give another name.": "请换一个名字。",
        "{number} lines": "{number} 行",
        "read": "读",
        "Columns: {columns}": "列：{columns}",
        "added {new} ({new2})": "新增 {new}（{new2}）",
        "removed {gone} ({gone2})": "减少 {gone}（{gone2}）",
        "{number} file": "{number} 个",
        "{number} files": "{number} 个",
        "{name} or --{name}": "{name} 或 --{name}",
        "read {counted} of {path}": "从 {path} 读取 {counted}",
        "{points} points above {other} ({interval})": "比 {other} 高 {points} 分（{interval}）",
    })  # fmt: skip
    assert translator.translate("a b.txt is not there.") == "找不到 a b.txt。"
    assert translator.translate("x is not there. Write y.") == "找不到 x，请输入 y。"
    assert translator.translate("Error: x is not there. Give another name.") == "错误：找不到 x。请换一个名字。"
    assert translator.translate("  read 1,000 lines of x") == "  从 x 读取 1,000 行"
    assert translator.translate("x is not there. Nobody knows why.") == "找不到 x。Nobody knows why."
    assert translator.translate("blank lines") == "blank lines"
    assert translator.translate("a.txt: 3 lines, id, read") == "a.txt：3 行，id, read"
    twice = translator.translate("2 points above x (1); 3 points above y (2).")
    assert twice == "比 x 高 2 分（1）；比 y 高 3 分（2）。"
    assert translator.translate("x or --x") == "x 或 --x"
    assert translator.translate("Columns: source, 年份, 类型") == "列：source, 年份, 类型"
    assert translator.translate("added 1 file (a); removed 2 files (b, c)") == "新增 1 个（a）；减少 2 个（b, c）"
    assert translator.translate("| 2 lines | y |") == "| 2 行 | y |"
    assert translator.translate("{braces} stay") == "{braces} stay"


def test_chinese_is_wrapped_by_its_width() -> None:
    lines = list(wrapped("训练语言模型，或者继续训练。参数 --run 指定运行文件夹，之后的命令会沿用同样的设置。", 20))
    assert all(display_width(line) <= 22 for line in lines)
    assert not [line for line in lines if line[0] in "，。"]
    assert "".join(lines).replace(" ", "").startswith("训练语言模型，或者继续训练。参数--run指定运行文件夹")


@needs_babel
def test_the_catalogue_has_the_messages_of_the_code_and_is_compiled() -> None:
    """If this fails: make messages, then translate what `docs/messages.py --missing` lists."""
    script = load_script("messages")
    messages = script.catalogue()
    assert script.written(messages) == script.PO.read_bytes()
    assert script.compiled(messages) == CATALOGUE.read_bytes()


def gaps(message: str) -> list[str]:
    return sorted({name for _, name, _, _ in Formatter().parse(message) if name})


def test_translations_keep_the_gaps_options_and_paths_of_their_messages() -> None:
    for message, translation in read_catalogue(CATALOGUE).items():
        if message:
            assert gaps(translation) == gaps(message), message
            names = re.findall(r"(?<![\w-])--[a-z][a-z-]+|\b(?:docs|configs)/[\w./-]+\b", message)
            assert [name for name in names if name not in translation] == [], message


def test_every_line_has_one_template() -> None:
    """A line made from a template is translated by this template, not by another that fits too."""
    messages = read_catalogue(CATALOGUE)
    translator = Translator(messages)
    for message, translation in messages.items():
        if message and "!r" not in message and "%(" not in message:
            values = {name: "7" if name in ("number", "low", "high") else f"<{name}>" for name in gaps(message)}
            assert translator.translate(message.format(**values)) == translation.format(**values), message


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
        (("embed", "--modle"), "没有选项 '--modle'。您要找的是 --model, --pool 吗？"),
        (("ebmed",), "没有命令 'ebmed'。您要找的是 'embed' 吗？"),
        (("score", "x", "--keep-share", "80%"), "'--keep-share' 的值无效：'80%' 不是有效的浮点数。"),
    ):
        assert run(*arguments).stderr.splitlines()[-1].startswith(f"错误：{told}")
    no_data = run("task", "score", "test.csv", "--task", "x")
    assert (no_data.status, "文件 'test.csv' 不存在" in no_data.stderr) == (2, True)
    help_text = run("embed", "--help").stdout
    assert help_text.startswith("用法：")
    assert re.search(r"[\u4e00-\u9fff]", help_text)
    assert all(display_width(line) <= 100 for line in help_text.splitlines())
