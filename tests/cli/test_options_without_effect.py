"""Options and settings that would silently have no effect are refused in one line."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.formats import OutputForm, require_matching_suffix
from elmo_zh.errors import CorpusError, OutputError

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture
def text(empty_folder: Path) -> Path:
    path = empty_folder / "a.txt"
    path.write_text("今天天气很好。\n" * 30, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            ("embed", "a.txt", "--segmented", "--input-format", "csv"),
            "--segmented text is always plain text. Leave out --input-format or --segmented.",
        ),
        (
            ("evaluate", "a.txt", "--segmented", "--field", "review"),
            "--segmented text is always plain text. Leave out --field or --segmented.",
        ),
        (
            ("embed", "a.txt", "--set", "text.segmenter=character"),
            "--set text.segmenter has no effect on embed: the model determines how text is segmented. Leave out this"
            " setting.",
        ),
        (
            ("evaluate", "a.txt", "--set", "text.bad_bytes=replace"),
            "--set text.bad_bytes has no effect on evaluate: it never skips lines; a line that cannot be decoded is"
            " an error. Leave out this setting.",
        ),
        (
            ("embed", "a.txt", "--set", "train.epochs=2"),
            "--set train.epochs has no effect on embed. Leave out this setting.",
        ),
        (
            ("vocab", "--run", "x", "--init", "y", "--set", "vocab.words=words.txt"),
            "--init and vocab.words both determine the words of the vocabulary. Give only one of them.",
        ),
        (
            ("vocab", "--run", "x", "--init", "y", "--from", "words.txt"),
            "--init and --from both determine the words of the vocabulary. Give only one of them.",
        ),
        (
            ("pipeline", "a.txt", "--run", "x", "--init", "y", "--set", "vocab.words=words.txt"),
            "--init and vocab.words both determine the words of the vocabulary. Give only one of them.",
        ),
    ],
)
def test_what_is_refused(typed: tuple[str, ...], told: str) -> None:
    answer = elmo_zh(*typed)
    assert (answer.status, answer.stderr.splitlines()[-1]) == (2, f"Error: {told}")


def test_settings_with_an_effect_are_not_refused(text: Path) -> None:
    settings = ("--set", "text.encoding=utf-8", "--set", "embed.dtype=float16")
    assert "no effect" not in elmo_zh("embed", text, "--model", "missing", *settings).stderr


def test_fields_of_plain_text(text: Path) -> None:
    [source] = find_sources([str(text)]).sources
    told = message_of(CorpusError, lambda: list(input_text(source, TextConfig(field="review")).lines()))
    assert told == (
        f"--field review has no effect on {text}, which is read as plain text. Leave out --field, or specify the"
        " format, such as --input-format csv"
    )
    assert elmo_zh("segment", text, "--run", "x", "--field", "review").only_error() == (
        f"{text}: --field review has no effect, because text files have no fields. Leave out --field, or specify"
        " the format, such as --format csv"
    )


def test_fields_of_one_file_among_others(text: Path) -> None:
    text.with_name("a.csv").write_text("id,review\n1,太吵了\n2,服务很好\n", encoding="utf-8")
    assert elmo_zh("segment", text, "a.csv", "--run", "x", "--field", "review").status == 0


def test_the_suffix_of_another_format() -> None:
    told = message_of(OutputError, lambda: require_matching_suffix(Path("x.npy"), OutputForm()))
    assert told.startswith("--output x.npy has the suffix of the format npy, but the format is hdf5. Add --format npy")
    for name in ("x", "x.h5", "x.hdf5", "x.dat"):
        require_matching_suffix(Path(name), OutputForm())
    require_matching_suffix(Path("x.vec"), OutputForm(format="word2vec"))
