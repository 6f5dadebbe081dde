"""Settings that were given and that nothing reads are named by one mechanism; files without fields refuse --field."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from messages import message_of

from elmo_zh.embed.formats import require_matching_suffix
from elmo_zh.errors import OptionError


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("今天天气很好。\n" * 30, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("embed a.txt --segmented --input-format csv", "text.format has no effect with embed --segmented."),
        (
            "embed a.txt --segmented --user-dictionary a.txt",
            "text.user_dictionary has no effect with embed",
        ),
        ("embed a.txt --set text.segmenter=character", "text.segmenter has no effect with embed."),
        ("evaluate a.txt --set text.bad_bytes=replace", "text.bad_bytes has no effect with evaluate."),
        ("frequencies --index x --set text.jieba_hmm=false", "text.jieba_hmm has no effect with frequencies."),
        ("words a.txt --segmented --set text.script=none", "text.script has no effect with words --segmented."),
        ("task fit tag a.txt --output o --set text.segmenter=jieba", "text.segmenter has no effect with task fit."),
        ("segment a.txt --run x --set embed.layers=top", "embed.layers has no effect"),
        ("segment a.txt --run x --set word2vec.epochs=3 --set word2vec.enabled=false", "word2vec.epochs has no effect"),
        (
            "segment a.txt --run x --set model.highway_layers=3",
            "model.highway_layers has no effect with model.mode = token.",
        ),
        (
            "segment a.txt --run x --set text.user_dictionary=a.txt --set text.segmenter=whitespace",
            "text.user_dictionary has no effect with text.segmenter = whitespace.",
        ),
        (
            "frequencies a.txt --user-dictionary a.txt --set text.segmenter=whitespace",
            "text.user_dictionary has no effect with text.segmenter = whitespace.",
        ),
    ],
)
def test_a_setting_that_nothing_reads_is_named(typed: str, told: str) -> None:
    Path("a.txt").write_text("今天 天气 很好\n", encoding="utf-8")
    model = ["--model", "missing"] if typed.startswith(("embed", "evaluate", "task")) else []
    assert told in elmo_zh(*typed.split(), *model).stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("vocab --run x --init y --from words.txt", " needs vocab.init ="),
        ("pipeline a.txt --run x --init y --set vocab.words=w.txt", " needs vocab.init ="),
    ],
)
def test_two_sources_of_words_are_refused(typed: str, told: str) -> None:
    answer = elmo_zh(*typed.split())
    assert (answer.status, told in answer.stderr.splitlines()[-1]) == (2, True)


def test_settings_with_an_effect_are_not_named(text: Path) -> None:
    settings = ("--set", "text.encoding=utf-8", "--set", "embed.dtype=float16")
    assert "no effect" not in elmo_zh("embed", text, "--model", "missing", *settings).stderr
    # Without a model, texts are normalised and segmented as the settings say.
    for command in ("frequencies", "concordance 天气", "collocates 天气", "words"):
        settings = ("--set", "text.jieba_hmm=false", "--set", "text.fold_fullwidth=false")
        assert "no effect" not in elmo_zh(*command.split(), text, *settings).stderr
    settings = ("--set", "train.epochs=3", "--set", "word2vec.window=3", "--config", "small")
    assert "no effect" not in elmo_zh("segment", text, "--run", "x", *settings).stderr


def test_a_user_dictionary_is_the_same_as_option_and_as_setting(text: Path) -> None:
    Path("words.txt").write_text("天气很好 900000\n", encoding="utf-8")
    ways = ("--user-dictionary", "words.txt"), ("--set", "text.user_dictionary=words.txt")
    told = [elmo_zh("frequencies", text, *way).stdout for way in ways]
    assert told[0] == told[1]
    assert "天气很好" in told[0]
    error = elmo_zh("frequencies", text, "--set", "text.user_dictionary=none.txt").errors[-1]
    assert error.startswith("Error: none.txt is missing.")


def test_the_suffix_of_another_format() -> None:
    told = message_of(OptionError, lambda: require_matching_suffix(Path("x.npy"), "hdf5"))
    assert told.startswith("--output x.npy and --format hdf5 cannot be combined.")
    for name in ("x", "x.h5", "x.dat"):
        require_matching_suffix(Path(name), "hdf5")
