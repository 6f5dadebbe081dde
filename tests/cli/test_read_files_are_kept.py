"""No command writes over what it is given to read, not even with --force."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
from contract.command_line import elmo_zh

from elmo_zh.cli import cli
from elmo_zh.cli.options import _given_paths
from elmo_zh.run.files import file_digest

# The last words of each command, and the file at stake.
ENDANGERED = (
    ("task predict t.txt --task task --output", "task/task.json"),
    ("senses 果 --index index --picture", "index/words.npy"),
    ("explore index --word 果 --labels w.txt --output", "w.txt"),
    ("drift index index --output", "index/index.json"),
    ("score t.txt --model model --config c.toml --output", "c.toml"),
    ("score t.txt --model model --against other --output", "other/options.json"),
    ("embed t.txt --model model --layers mix --mix-weights mix.json --output", "mix.json"),
    ("embed t.txt --model model --output", "t.txt"),
    ("index t.txt --model model --words w.txt --output", "model"),
    ("task fit classify t.tsv --model model --output", "model"),
    ("concordance 苹果 *.tsv --output", "t.tsv"),
    ("convert other --warm-on t.txt --output", "other"),
)


def iter_commands(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        yield from iter_commands(command) if isinstance(command, click.Group) else [command]


def test_every_path_of_a_command_is_read_or_written() -> None:
    written = {"common_output", "common_picture", "common_run_path"}
    for command in iter_commands(cli):
        context = click.Context(command)
        paths = {param.name or "" for param in command.params if isinstance(param.type, click.Path)}
        context.params = {each: Path(each) for each in paths}
        assert {*map(str, _given_paths(context))} == paths - written, command.name


def test_what_is_read_is_kept(used: Path) -> None:
    def content() -> dict[Path, str]:
        return {path: file_digest(path) for path in used.rglob("*") if path.is_file()}

    before = content()
    for words, output in ENDANGERED:
        told = elmo_zh(*words.split(), output, "--force").only_error()
        assert told.startswith(f"{output} would replace "), words
        assert f"which this command reads. Choose another {words.split()[-1]}." in told, words
        assert content() == before, words


def test_a_text_in_a_folder_that_is_read_is_kept(used: Path) -> None:
    text = used / "texts" / "a.tsv"
    text.parent.mkdir()
    text.write_text("text\tyear\n今天很热\t2001\n", encoding="utf-8")
    before = text.read_bytes()
    shutil.copytree("texts", "new/segmented")
    for words in ("frequencies texts", "score texts --model model"):
        told = elmo_zh(*words.split(), "--output", "texts/a.tsv", "--force").only_error()
        assert told.startswith("texts/a.tsv would replace texts"), words
        assert text.read_bytes() == before, words
    told = elmo_zh("segment", "new/segmented", "--run", "new", "--force").only_error()
    assert told.startswith("new/segmented is inside new, and a run cannot")


def test_names_that_are_not_utf_8_are_printed(used: Path) -> None:
    output = os.fsdecode(b"\xffs.tsv")
    assert elmo_zh("score", "t.txt", "--model", "model", "--output", output).stdout.count(" \\udcffs.tsv\n") == 1
