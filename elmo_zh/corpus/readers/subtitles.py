"""Read subtitles (SRT, WebVTT, ASS) and lyrics (LRC) without their time codes."""

import re
from collections.abc import Iterator

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.language import N_

_LONGEST_LINE = 2**20
_TIME_CODES = "subtitles: time codes and styles"
_CUE = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}\s*-->.*")
_LYRIC = re.compile(r"(?:\[\d{1,3}:\d{2}(?:[.:]\d{1,3})?\])+|\[[a-z]{2,7}:[^\]]*\]")
_STYLE = re.compile(r"\{\\[^{}]*\}|</?(?:[ibuc]|font|ruby|rt|v|lang)\b[^<>]*>|<\d[\d:.]*>")
_DIALOGUE = re.compile(r"Dialogue:(?:[^,]*,){9}(.*)")
_ASS = re.compile(r"\s*\[Script Info\]", re.IGNORECASE)


def _read(text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the file as one document, with a line for each line that is shown."""
    yield _lines(text, tally)


def _lines(text: DecodedText, tally: Tally) -> Iterator[str]:
    is_ass = bool(_ASS.match(text.head(2**10)))
    is_text = is_ass
    for line in text.whole_lines(_LONGEST_LINE):
        shown: list[str] = []
        if is_ass:
            match = _DIALOGUE.match(line)
            shown = re.split(r"\\[Nn]", match[1]) if match else []
        elif _CUE.fullmatch(line):
            is_text = True
        elif not line.strip():
            is_text = False
        elif _LYRIC.match(line):
            shown = [_LYRIC.sub("", line)]
        elif is_text:
            shown = [line]
        shown = [kept for each in shown if (kept := _STYLE.sub("", each).strip())]
        tally.drop(_TIME_CODES, max(0, len(line) - sum(map(len, shown))), items=0)
        yield from shown


def _starts(head: str) -> bool:
    """Return whether the first lines have a cue's times, the head of ASS, or the times of lyrics."""
    lines = [line.strip("\r\ufeff") for line in head.split("\n")[:40] if line.strip()]
    num_lyrics = sum(1 for line in lines if _LYRIC.match(line))
    return (
        bool(_ASS.match(head))
        or any(_CUE.fullmatch(line) for line in lines[:6])
        or (len(lines) > 2 and num_lyrics >= 0.8 * len(lines))
    )


FORMAT = CorpusFormat(
    read=_read,
    title=N_("subtitles"),
    has_fields=False,
    suffixes=(".srt", ".vtt", ".ass", ".ssa", ".lrc"),
    starts=_starts,
    is_in_text_files=True,
)
