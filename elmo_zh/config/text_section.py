"""Section text of the settings: how raw text becomes sentences and tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

from elmo_zh.choices import BAD_BYTES, CORPUS_FORMATS, DOCUMENTS, SCRIPTS, SEGMENTERS, UNICODE_FORMS
from elmo_zh.config.fields import choice, free, is_encoding, later, named_file, number, problems_of_fields, within

# Settings of section text that say how a corpus is read and cleaned; a model made from it does not need them.
READING = ("format", "field", "encoding", "bad_bytes", "document", "shard_bytes")
CLEANING = (
    "remove_markup", "repair_mojibake", "min_han_share", "max_line_characters",
    "drop_duplicates", "duplicate_min_characters", "boilerplate_copies",
)  # fmt: skip
CORPUS = (*READING, *CLEANING)


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How raw text becomes sentences and tokens; bundles record this, so that embedding prepares text the same way."""

    segmenter: str = choice("jieba", SEGMENTERS)
    """Segmenter: jieba, rjieba (faster; needs an extra), whitespace, character, or the name of a plug-in."""
    jieba_hmm: bool = True
    """Let the hidden Markov model of jieba and rjieba find words that are not in the dictionary."""
    user_dictionary: str = named_file()
    """User dictionary in jieba's format: one word per line, with an optional count and tag. Empty: none."""
    split_unknown: bool = later(False)
    """Split each word with Han characters that is outside the vocabulary into known words and single characters."""
    split_sentences: bool = True
    """Split lines into sentences after the characters 。！？!?… ; false treats each line as one sentence."""
    unicode_form: str = choice("NFC", UNICODE_FORMS)
    """Unicode normalisation: none, NFC, NFD, NFKC or NFKD; the last two turn ， into an ASCII comma and … into dots."""
    fold_fullwidth: bool = True
    """Turn full-width Latin letters and digits (Ａ, １) into ASCII; punctuation stays full-width."""
    remove_control: bool = True
    """Remove control, zero-width and direction characters (Unicode categories Cc and Cf, except white space)."""
    script: str = later(choice("none", SCRIPTS))
    """Convert text to simplified or traditional characters with OpenCC (needs an extra); none leaves it as it is."""
    collapse_whitespace: bool = True
    """Replace each run of Unicode white space (U+3000, U+00A0, tabs, ...) with one space; strip both ends of a line."""
    heldout_share: float = number(0.01, 0.0, 0.5)
    """Fraction of the paragraphs to hold out from training; they are chosen by a hash of their text."""
    heldout_min_sentences: int = number(200, 0)
    """Hold out at least this many sentences, or a tenth of all sentences if that is less."""
    heldout_max_tokens: int = number(200_000, 0)
    """Hold out at most this many tokens."""
    num_workers: int = free(0, least=0)
    """Number of parallel processes for segmenting, counting and encoding; 0 means one per CPU core."""
    format: str = later(choice("auto", CORPUS_FORMATS))
    """Format of files: auto (detected), text, csv, tsv, json, jsonl, wikidump, wikiextractor, html or markdown."""
    field: str = later("")
    """Fields to read, separated by commas: column names (numbers without a header) or JSON paths. Empty: detected."""
    encoding: str = later("auto")
    """File encoding: auto (detects UTF-8, GB18030, Big5, and UTF-16 or UTF-32 with a BOM) or a name such as gb18030."""
    bad_bytes: str = later(choice("skip-line", BAD_BYTES))
    """How to treat undecodable bytes: skip-line (skip and count the line), replace (with U+FFFD) or strict (error)."""
    document: str = later(choice("file", DOCUMENTS))
    """Unit that counts as one document in plain text: file, paragraph (text between empty lines) or line."""
    remove_markup: bool = later(True)
    """Remove remnants of HTML, wikitext and BBCode, but only known tags and paired marks: a<b and 《》 stay."""
    repair_mojibake: bool = later(False)
    """Use ftfy (an optional extra) to repair text decoded with the wrong encoding; false only counts suspect lines."""
    min_han_share: float = later(number(0.0, 0.0, 1.0))
    """Drop lines in which less than this fraction of all letters and digits are Han characters; 0 keeps all lines."""
    max_line_characters: int = later(number(0, 0))
    """Drop lines with more characters than this; 0 keeps all lines, even one that contains an entire book."""
    drop_duplicates: bool = later(True)
    """Keep only the first copy of a repeated line, even across files: the model would just memorise further copies."""
    duplicate_min_characters: int = later(number(20, 1))
    """Lines with fewer characters than this never count as duplicates: short sentences recur naturally."""
    boilerplate_copies: int = later(number(0, 0))
    """Drop all copies of any line, short or long, that occurs more than this many times in the corpus; 0 drops none."""
    shard_bytes: int = later(0)
    """Bytes of text per shard; 0 sets a size from 1 to 16 MiB, depending on the size of the corpus."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "text")
        if self.user_dictionary and self.segmenter in SEGMENTERS and not self._takes_user_dictionary():
            yield (
                f"text.user_dictionary = {self.user_dictionary} has no effect with text.segmenter = {self.segmenter},"
                " which does not use a dictionary. Leave out the dictionary, or choose jieba or rjieba"
            )
        if self.shard_bytes != 0:
            yield from within("text.shard_bytes", self.shard_bytes, 2**16, 2**30)
        if self.encoding != "auto" and not is_encoding(self.encoding):
            yield f"text.encoding = {self.encoding!r} is unknown to Python; expected auto or a name such as gb18030"

    def _takes_user_dictionary(self) -> bool:
        return bool(getattr(SEGMENTERS.load(self.segmenter), "TAKES_USER_DICTIONARY", False))
