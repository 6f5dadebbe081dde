"""Wrongly decoded text: found, repaired, or left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.corpus.cleaning import build_repair, looks_garbled

TEXT = "今天，天气好。很好，去公园。"
# Of these bytes GB18030 can read all.
OF_GB18030 = "今天，天气好。很好，"


@pytest.mark.parametrize(
    "garbled", [TEXT.encode().decode("cp1252", "ignore").replace("\ufffd", ""), "\xe2\u20ac\u0153好\xe2\u20ac\x9d"]
)
def test_found(garbled: str) -> None:
    assert looks_garbled(garbled)


@pytest.mark.parametrize(
    ("garbled", "repaired"),
    [
        (TEXT.encode().decode("latin-1"), TEXT),
        (OF_GB18030.encode().decode("gb18030"), OF_GB18030),
        (TEXT.encode("gb18030").decode("latin-1"), TEXT),
        (f"他说{'中文'.encode().decode('latin-1')}好", "他说中文好"),
        # Bytes were lost: nothing is guessed.
        ("锟斤拷锟斤拷", "锟斤拷锟斤拷"),
        (OF_GB18030.encode().decode("gb18030") + "\ufffd", OF_GB18030.encode().decode("gb18030") + "\ufffd"),
    ],
)
def test_found_and_repaired(garbled: str, repaired: str) -> None:
    assert looks_garbled(garbled)
    assert build_repair()(garbled) == repaired


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        "café”——好",
        "Beyoncé……",
        "naïve",
        "l’été «à la»",
        "25°～30°",
        "×××××××",
        "史蒂夫·乔布斯",
        "铜锛",
        "ａｂｃ",
        "",
    ],
)
def test_sound_text_is_not_suspected(line: str) -> None:
    assert not looks_garbled(line)


# As GB2312 has them.
COMMON = [bytes([row, cell]).decode("gb2312") for row in range(0xB0, 0xD7) for cell in range(0xA1, 0xFF)]


@settings(deadline=None, max_examples=71)
@given(st.text(st.sampled_from(COMMON), min_size=1, max_size=23))
def test_whatever_is_suspected_comes_back(text: str) -> None:
    line = f"，{text}，"
    repair = build_repair()
    garbled = line.encode().decode("latin-1")
    assert looks_garbled(garbled)
    assert repair(garbled) == line
    garbled = line.encode("gb18030").decode("latin-1")
    if looks_garbled(garbled):
        assert repair(garbled) == line
    if not looks_garbled(line):
        assert repair(line) == line
