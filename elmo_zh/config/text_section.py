"""Section text of the settings: how raw text becomes sentences and tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

from elmo_zh.choices import BAD_BYTES, CORPUS_FORMATS, DOCUMENTS, SCRIPTS, SEGMENTERS, UNICODE_FORMS
from elmo_zh.config.fields import choice, free, is_encoding, number, problems_of_fields, within

# Settings of section text that say how a corpus is read and cleaned; a model made from it does not need them.
READING = ("format", "field", "encoding", "bad_bytes", "document", "shard_bytes")
CLEANING = (
    "remove_markup", "repair_mojibake", "min_han_share", "max_line_characters",
    "drop_duplicates", "duplicate_min_characters", "boilerplate_copies",
)  # fmt: skip
CORPUS = (*READING, *CLEANING)
# Settings that were added later; bundles and records without them are read as if they held the default.
LATER = ("script",)


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How raw text becomes sentences and tokens; bundles record this, so that embedding prepares text the same way."""

    segmenter: str = choice("jieba", SEGMENTERS)
    """Segmenter: jieba, rjieba (the same, faster; an extra), whitespace (as given), character, or a plug-in's name."""
    jieba_hmm: bool = True
    """Let the hidden Markov model of jieba and rjieba find words that are not in the dictionary."""
    user_dictionary: str = ""
    """A user dictionary in jieba's format (word, optional count and tag per line), copied into the run. Empty: none."""
    split_sentences: bool = True
    """Split lines into sentences after the characters 。！？!?… ; false makes each line one sentence."""
    unicode_form: str = choice("NFC", UNICODE_FORMS)
    """Unicode normalisation: none, NFC, NFD, NFKC or NFKD; the last two turn ， into an ASCII comma and … into dots."""
    fold_fullwidth: bool = True
    """Turn full-width Latin letters and digits (Ａ, １) into ASCII; punctuation stays full-width."""
    remove_control: bool = True
    """Remove control, zero-width and direction characters (Unicode categories Cc and Cf, except white space)."""
    script: str = choice("none", SCRIPTS)
    """Convert all text to simplified or traditional characters (OpenCC's t2s or s2t; an extra), or none."""
    collapse_whitespace: bool = True
    """Turn every run of Unicode white space (U+3000, U+00A0, tabs, ...) into one space, and strip both ends."""
    heldout_share: float = number(0.01, 0.0, 0.5)
    """Fraction of the paragraphs, chosen by a hash of their text, that is held out and never trained on."""
    heldout_min_sentences: int = number(200, 0)
    """Hold out at least this many sentences (but at most a tenth of all)."""
    heldout_max_tokens: int = number(200_000, 0)
    """Hold out at most this many tokens."""
    num_workers: int = free(0, least=0)
    """Number of parallel processes for segmenting, counting and encoding; 0 means one per CPU core."""
    private: bool = free(False)
    """Keep tokens and lines of the text out of messages, reports and pictures (docs/security.md)."""
    format: str = choice("auto", CORPUS_FORMATS)
    """Format of files: auto (detected), text, csv, tsv, json, jsonl, wikidump, wikiextractor, html or markdown."""
    field: str = ""
    """Text fields of CSV and JSON: columns (by name or number), keys, or paths such as data.text. Empty: detected."""
    encoding: str = "auto"
    """Encoding of files: auto (detected per file: UTF-8, UTF-16, UTF-32, GB18030, Big5), or a name such as gb18030."""
    bad_bytes: str = choice("skip-line", BAD_BYTES)
    """Lines with undecodable bytes: skip-line (leave out and count), replace (with U+FFFD) or strict (an error)."""
    document: str = choice("file", DOCUMENTS)
    """Unit of plain text that counts as one document: file, paragraph (between empty lines) or line."""
    remove_markup: bool = True
    """Remove remnants of HTML, wikitext and BBCode: known tags and pairs only, so a<b and 《》 stay."""
    repair_mojibake: bool = False
    """Use ftfy (an optional extra) to repair text decoded with the wrong encoding; false only counts suspect lines."""
    min_han_share: float = number(0.0, 0.0, 1.0)
    """Drop lines whose share of Han characters among letters and digits is below this, such as 0.3; 0 keeps all."""
    max_line_characters: int = number(0, 0)
    """Drop lines with more characters than this, such as 20000; 0 keeps all: a line may be an entire book."""
    drop_duplicates: bool = True
    """Drop repeated lines, also across files: copies teach the model nothing new and are memorised."""
    duplicate_min_characters: int = number(20, 1)
    """Lines with fewer characters than this never count as duplicates: short sentences recur naturally."""
    boilerplate_copies: int = number(0, 0)
    """Drop every line, short or long, that occurs more often than this in the whole corpus; 0 drops none."""
    shard_bytes: int = 0
    """Bytes of text per shard; 0 chooses by the size of the corpus (1 to 16 MiB)."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "text")
        if self.user_dictionary and self.segmenter in SEGMENTERS and not self._takes_user_dictionary():
            yield (
                f"text.user_dictionary = {self.user_dictionary} is for jieba and rjieba; text.segmenter ="
                f" {self.segmenter} has no dictionary. Leave out one of these settings"
            )
        if self.shard_bytes != 0:
            yield from within("text.shard_bytes", self.shard_bytes, 2**16, 2**30)
        if self.encoding != "auto" and not is_encoding(self.encoding):
            yield f"text.encoding = {self.encoding!r} is not an encoding that Python knows, such as utf-8 or gb18030"

    def _takes_user_dictionary(self) -> bool:
        return bool(getattr(SEGMENTERS.load(self.segmenter), "TAKES_USER_DICTIONARY", False))
