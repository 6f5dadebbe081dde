"""Section text of the settings: from raw text to sentences and tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

from elmo_zh.config.checks import at_least, free, is_encoding, one_of, within

SEGMENTERS = ("jieba", "rjieba", "whitespace", "character")
CORPUS_FORMATS = ("auto", "text", "csv", "tsv", "json", "jsonl", "wikidump", "wikiextractor", "html", "markdown")
BAD_BYTES = ("strict", "skip-line", "replace")
DOCUMENTS = ("file", "paragraph", "line")
# Of section text: how a corpus is read and cleaned, of no concern to a model that is made from it.
READING = ("format", "field", "encoding", "bad_bytes", "document", "shard_bytes")
CLEANING = (
    "remove_markup", "repair_mojibake", "min_han_share", "max_line_characters",
    "drop_duplicates", "duplicate_min_characters", "boilerplate_copies",
)  # fmt: skip
CORPUS = (*READING, *CLEANING)
# Of section text: what came after the first bundles and records, which are as if it stood there with its default.
LATER = ("script",)
UNICODE_FORMS = ("none", "NFC", "NFD", "NFKC", "NFKD")
SCRIPTS = ("none", "simplified", "traditional")


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """From raw text to sentences and tokens; recorded in the bundle, so that embedding does the same."""

    segmenter: str = "jieba"
    """How sentences become tokens: jieba, rjieba (the same, faster; an extra), whitespace (as given) or character."""
    jieba_hmm: bool = True
    """Let the hidden Markov model of jieba and rjieba find words that are not in their dictionary."""
    user_dictionary: str = ""
    """A jieba user dictionary (word, optional count, optional tag a line); it is copied into the run. Empty: none."""
    split_sentences: bool = True
    """Split lines into sentences after the characters 。！？!?… ; false takes each line as one sentence."""
    unicode_form: str = "NFC"
    """Unicode normalisation form, or none. NFKC and NFKD turn ， into an ASCII comma and … into three dots."""
    fold_fullwidth: bool = True
    """Turn full-width Latin letters and digits (Ａ, １) into ASCII; punctuation stays Chinese."""
    remove_control: bool = True
    """Remove control, zero-width and direction characters (Unicode categories Cc and Cf, white space excepted)."""
    script: str = "none"
    """Convert all text to simplified or traditional characters (OpenCC's t2s and s2t; an extra), or none."""
    collapse_whitespace: bool = True
    """Turn every run of Unicode white space (U+3000, U+00A0, tabs, ...) into one space; trim the ends."""
    heldout_share: float = 0.01
    """Share of the paragraphs, chosen by a hash of their text, that is held out and never trained on."""
    heldout_min_sentences: int = 200
    """Hold out at least this many sentences (at most a tenth of them all)."""
    heldout_max_tokens: int = 200_000
    """Hold out at most this many tokens."""
    num_workers: int = free(0)
    """Processes that segment, count and encode at the same time; 0 means one for each processor core."""
    format: str = "auto"
    """Format of files: auto (name, content), text, csv, tsv, json, jsonl, wikidump, wikiextractor, html or markdown."""
    field: str = ""
    """Where CSV and JSON have the text: columns (by name or number), keys or paths such as data.text. Empty: found."""
    encoding: str = "auto"
    """Encoding of files: auto (found for each: UTF-8, 16 and 32, GB18030, Big5), or a name, such as gb18030."""
    bad_bytes: str = "skip-line"
    """Lines with bytes that do not decode: skip-line (left out, counted), replace (by U+FFFD) or strict (an error)."""
    document: str = "file"
    """What is one document of plain text, as counted: file, paragraph (between empty lines) or line."""
    remove_markup: bool = True
    """Take remnants of HTML, wikitext and BBCode out of a corpus: known tags and pairs only, so a<b and 《》 stay."""
    repair_mojibake: bool = False
    """Repair text of a corpus that was decoded wrongly, by ftfy (an extra); false only counts lines that look so."""
    min_han_share: float = 0.0
    """Drop lines with a smaller share of Han characters among their letters and digits, such as 0.3; 0 keeps all."""
    max_line_characters: int = 0
    """Drop lines longer than this, such as 20000; 0 keeps all: a book may be one line, split into sentences."""
    drop_duplicates: bool = True
    """Leave out lines that stood before, in whatever file: copies teach nothing new and are learned by heart."""
    duplicate_min_characters: int = 20
    """Lines shorter than this are never duplicates: people do say the same short thing again."""
    boilerplate_copies: int = 0
    """Leave out every line, short or long, that stands more often than this in the whole corpus; 0: none."""
    shard_bytes: int = 0
    """Bytes of text in one shard of the work; 0 chooses by the size of the corpus (1 to 16 MiB)."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from one_of("text.segmenter", self.segmenter, SEGMENTERS)
        if self.user_dictionary and self.segmenter in ("whitespace", "character"):
            yield (
                f"text.user_dictionary = {self.user_dictionary} is for jieba and rjieba; text.segmenter ="
                f" {self.segmenter} has no dictionary. Leave one of them out"
            )
        yield from one_of("text.unicode_form", self.unicode_form, UNICODE_FORMS)
        yield from one_of("text.script", self.script, SCRIPTS)
        yield from within("text.heldout_share", self.heldout_share, 0.0, 0.5)
        yield from at_least("text.heldout_min_sentences", self.heldout_min_sentences, 0)
        yield from at_least("text.heldout_max_tokens", self.heldout_max_tokens, 0)
        yield from at_least("text.num_workers", self.num_workers, 0)
        yield from one_of("text.format", self.format, CORPUS_FORMATS)
        yield from one_of("text.bad_bytes", self.bad_bytes, BAD_BYTES)
        yield from one_of("text.document", self.document, DOCUMENTS)
        yield from within("text.min_han_share", self.min_han_share, 0.0, 1.0)
        yield from at_least("text.max_line_characters", self.max_line_characters, 0)
        yield from at_least("text.duplicate_min_characters", self.duplicate_min_characters, 1)
        yield from at_least("text.boilerplate_copies", self.boilerplate_copies, 0)
        if self.shard_bytes != 0:
            yield from within("text.shard_bytes", self.shard_bytes, 2**16, 2**30)
        if self.encoding != "auto" and not is_encoding(self.encoding):
            yield f"text.encoding = {self.encoding!r} is no encoding that Python knows, such as utf-8, gb18030 or big5"
