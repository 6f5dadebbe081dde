"""The `text` section of the settings: how raw text becomes sentences and tokens."""

from dataclasses import dataclass

from elmo_zh.choices import CORPUS_FORMATS, SEGMENTERS, UNICODE_FORMS
from elmo_zh.config.declare import Section, declare, is_encoding
from elmo_zh.language import N_

# Settings of section text that say how a corpus is read and cleaned; a model made from it does not need them.
READING = ("format", "field", "encoding", "bad_bytes", "join_lines", "shard_bytes")
CLEANING = (
    "remove_markup", "min_han_share", "max_line_characters", "drop_duplicates", "duplicate_min_characters",
)  # fmt: skip
CORPUS = (*READING, *CLEANING)


@dataclass(frozen=True, kw_only=True)
class TextConfig(Section):
    """How raw text becomes sentences and tokens; bundles record what embedding needs to prepare text the same way."""

    segmenter: str = declare("jieba", "Segmenter: {choices}.", choices=SEGMENTERS)
    jieba_hmm: bool = declare(
        True, "Let the hidden Markov model of jieba and rjieba find words that are not in the dictionary."
    )
    user_dictionary: str = declare(
        "",
        "File of words that the segmenter keeps whole: in jieba's format (one word per line, with an optional count and"
        " tag) or a table that the words command wrote. Default: none.",
        is_file=True,
    )
    split_unknown: bool = declare(
        False,
        "Split out-of-vocabulary words with Han characters into known words and single characters.",
        later=True,
    )
    split_sentences: bool = declare(
        True, "Split lines into sentences after the characters 。！？!?… ; false treats each line as one sentence."
    )
    unicode_form: str = declare(
        "NFC",
        "Unicode normalisation: none, NFC, NFD, NFKC or NFKD; the last two turn ， into an ASCII comma and … into"
        " dots.",
        choices=UNICODE_FORMS,
    )
    fold_fullwidth: bool = declare(
        True, "Turn full-width Latin letters and digits (Ａ, １) into ASCII; punctuation stays full-width."
    )
    remove_control: bool = declare(
        True,
        "Remove invisible characters and enclosing marks (Unicode: Cc, Cf, Me, Default_Ignorable_Code_Point), not white"
        " space.",
    )
    script: str = declare(
        "none",
        "Convert text to simplified or traditional characters with OpenCC (needs an extra); none leaves it as it is.",
        choices=("none", "simplified", "traditional"),
        later=True,
    )
    collapse_whitespace: bool = declare(
        True,
        "Replace each run of Unicode white space (U+3000, U+00A0, tabs, ...) with one space; strip both ends of a"
        " line.",
    )
    heldout_share: float = declare(
        0.01,
        "Fraction of the paragraphs to hold out from training; they are chosen by a hash of their text.",
        least=0.0,
        most=0.5,
    )
    heldout_min_sentences: int = declare(
        200,
        "Hold out at least this many sentences if possible, or a tenth of all if that is less; none if"
        " text.heldout_share is 0.",
        least=0,
    )
    heldout_max_tokens: int = declare(200_000, "Hold out at most this many tokens.", least=0)
    num_workers: int = declare(
        0,
        "Number of parallel processes for segmenting, counting and encoding; 0 means one per CPU core.",
        least=0,
        free=True,
    )
    format: str = declare(
        "auto",
        "Format of the files: {choices}. auto detects the format of each file.",
        choices=CORPUS_FORMATS,
        later=True,
        names=("--input-format",),
        metavar="FORMAT",
    )
    field: str = declare(
        "",
        "Fields to read, separated by commas: column names (numbers without a header) or JSON paths."
        " Default: detected.",
        later=True,
        metavar="NAME,...",
    )
    encoding: str = declare(
        "auto",
        "File encoding: auto (detects UTF-8, GB18030, Big5, and UTF-16 or UTF-32 with a BOM) or a name such as"
        " gb18030.",
        check=is_encoding,
        expects=N_("auto or an encoding that Python knows, such as gb18030"),
        later=True,
        metavar="NAME",
    )
    bad_bytes: str = declare(
        "skip-line",
        "How to treat undecodable bytes: skip-line (skip and count the line), replace (with U+FFFD) or strict (error).",
        choices=("strict", "skip-line", "replace"),
        later=True,
    )
    join_lines: bool = declare(
        False,
        "Join lines of plain text where a sentence continues on the next line, as in text copied from a PDF file.",
        later=True,
    )
    remove_markup: bool = declare(
        True,
        "Remove remnants of HTML, wikitext and BBCode; text such as a<b and 《》 stays.",
        later=True,
    )
    min_han_share: float = declare(
        0.0,
        "Drop lines in which less than this fraction of all letters and digits are Han characters; 0 keeps all lines.",
        least=0.0,
        most=1.0,
        later=True,
    )
    max_line_characters: int = declare(
        0,
        "Drop lines with more characters than this; 0 keeps all lines, even one that contains an entire book.",
        least=0,
        later=True,
    )
    drop_duplicates: bool = declare(
        True,
        "Keep only the first copy of a repeated line, even across files: the model would just memorise further copies.",
        later=True,
    )
    duplicate_min_characters: int = declare(
        20,
        "Lines with fewer characters than this never count as duplicates: short sentences recur naturally.",
        least=1,
        later=True,
    )
    shard_bytes: int = declare(
        0,
        "Bytes of text per shard; 0 sets a size from 1 to 16 MiB, depending on the size of the corpus.",
        least=2**16,
        most=2**30,
        also=0,
        later=True,
    )

    @property
    def dictionary(self) -> str:
        """The user dictionary, or "" if the segmenter does not use one."""
        if not self.user_dictionary or not getattr(SEGMENTERS.load(self.segmenter), "TAKES_USER_DICTIONARY", False):
            return ""
        return self.user_dictionary
