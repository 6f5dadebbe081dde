"""Side files against the text: what is changed like it matches, what can never occur is named with its reason."""

from pathlib import Path
from typing import Any

import pytest
from messages import Heard

from elmo_zh.config import TextConfig
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_words, prepare_vocabulary


def report_of(path: Path, **settings: Any) -> tuple[TextPreparation, str]:
    heard, preparation = Heard(), TextPreparation.build(TextConfig(**settings), path)
    preparation.report_dictionary(path, heard)
    return preparation, "".join(heard.warnings)


@pytest.mark.parametrize("segmenter", ["jieba", "rjieba"])
@pytest.mark.parametrize(
    ("entry", "settings", "text", "token"),
    [
        ("ＸＹ试剂 9000 n", {}, "买ＸＹ试剂吧", "XY试剂"),
        ("１２号院子", {}, "去１２号院子", "12号院子"),
        ("鐵皮石斛", {"script": "simplified"}, "買鐵皮石斛", "铁皮石斛"),
        ("cafe\u0301店 99999", {"unicode_form": "NFD", "fold_fullwidth": False}, "", ""),
        ("石\u200b斛枫斗", {}, "石斛枫斗好", "石斛枫斗"),
        ("  石斛枫斗\u3000", {}, "石斛枫斗好", "石斛枫斗"),
        ("石斛枫斗  7000", {}, "石斛枫斗好", "石斛枫斗"),
    ],
)
def test_words_of_a_dictionary_are_changed_as_the_text_is(
    segmenter: str, entry: str, settings: dict[str, Any], text: str, token: str, tmp_path: Path
) -> None:
    path = tmp_path / "words.txt"
    path.write_text(f"{entry}\n", encoding="utf-8")
    preparation, warning = report_of(path, segmenter=segmenter, **settings)
    if token:
        assert token in preparation.tokens(text)
        assert not warning
    else:  # jieba divides at signs that are not Latin, so this entry cannot match
        assert "line 1" in warning


@pytest.mark.parametrize("segmenter", ["jieba", "rjieba"])
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("(笑哭)", "is divided into ( 笑 哭 )"),
        ("α粒子 5000", "is divided into α 粒子"),
        ("《活着》 3000 nz", "is divided into 《 活着 》"),
        ("e\u0301tude", "is divided"),
        ("㐂寿司 900", "is divided"),
        ("我们大家 1", "is divided into 我们 大家"),
        *(
            (entry, "is not one word")
            for entry in ("New Balance 2000 n", "leap motion", "石斛枫斗\t3000", "石斛枫斗 3000 NZ", "石斛枫斗 n 3000")
        ),
        ("石斛　枫斗", "is not one word"),
        ("\u200b\ufe0f", "is not one word"),
    ],
)
def test_words_of_a_dictionary_that_can_never_occur_are_named(
    segmenter: str, entry: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "words.txt"
    path.write_text(f"量子鸽子\n\n{entry}\n", encoding="utf-8")
    _, warning = report_of(path, segmenter=segmenter)
    assert warning.startswith(f"{path}: entries without effect: 1. line 3: ")
    assert reason in warning


def test_the_first_five_are_named_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("今天\n[一]\na B\n[二]\nc D\n[三]\ne F\n[四]\n好鸽子\niphone eng\n", encoding="utf-8")
    _, warning = report_of(path)
    assert warning.startswith(f"{path}: entries without effect: 7. line 2: [一] ")
    assert [f"line {number}:" in warning for number in range(1, 9)] == [False, *[True] * 5, False, False]
    assert warning.endswith(" ...")


def test_a_list_of_words_is_changed_as_the_text_is(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes("\ufeffＡＰＰ\r\n\r\n好 \r\n<UNK>\r\nNew York\r\nAPP\r\n頭髮\r\n好\t12\r\n".encode())
    entries, heard = Entries(path, build_normaliser(TextConfig(script="simplified"))), Heard()
    assert load_words(path, entries) == {"APP": 1, "好": 3, "头发": 7}
    entries.report(heard)
    assert "entries without effect: 2. line 5: New York is not one word; line 8: " in heard.warnings[0]


def test_the_rows_of_another_program_keep_their_places(tmp_path: Path) -> None:
    vocabulary = Vocabulary((*SPECIALS, "天气 ", "ＡＢ", "好", "好\u200b", "a b", "\u3000"))
    heard, entries = Heard(), Entries(tmp_path, build_normaliser(TextConfig()))
    prepared = prepare_vocabulary(vocabulary, entries)
    assert prepared.tokens == (*SPECIALS, "天气", "AB", "好", "好\u200b", "a b", "\u3000")
    assert prepared.encode(["天气", "AB", "好"]) == [3, 4, 5]
    entries.report(heard)
    assert "entries without effect: 3." in heard.warnings[0]
    assert "line 7: " in heard.warnings[0]
    assert "becomes 好" in heard.warnings[0]
    # Without text settings only white space at the ends goes, as in bilm-tf.
    assert prepare_vocabulary(vocabulary, Entries(tmp_path, str)).tokens[3:5] == ("天气", "ＡＢ")
