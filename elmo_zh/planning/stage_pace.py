"""How fast this machine does the stages before training: they are run on part of the sample, in their own folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh.config import Config, TextConfig
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec

# Tokens that the stages are tried on: some seconds of work.
TRIED_TOKENS = 400_000
# Of vocab and encode, how long they take for next to nothing is tried too.
_FEW_TOKENS = 5_000
# Text that is segmented and normalised already stays as it is.
_AS_IT_IS = TextConfig(
    segmenter="whitespace",
    split_sentences=False,
    unicode_form="none",
    fold_fullwidth=False,
    remove_control=False,
    collapse_whitespace=False,
    remove_markup=False,
    drop_duplicates=False,
    num_workers=1,
)


@dataclass(frozen=True, kw_only=True)
class StagePace:
    """Seconds and bytes for each token or row.

    Attributes:
        starting_seconds: Of vocab and of encode, whatever the number of tokens.
        vocab_seconds: For each token, in one process.
        encode_seconds: For each token, in one process.
        word2vec_token_seconds: For each token and epoch; 0 where word2vec is switched off.
        word2vec_row_seconds: For each word with a vector.
        segmented_bytes: For each token.
        id_bytes: For each token.
        word2vec_bytes: For each word with a vector.
    """

    starting_seconds: float
    vocab_seconds: float
    encode_seconds: float
    word2vec_token_seconds: float = 0.0
    word2vec_row_seconds: float = 0.0
    segmented_bytes: float
    id_bytes: float
    word2vec_bytes: float = 0.0


def folder_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 if there is none."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.exists() else 0


def measure_stages(sentences: Iterable[Sequence[str]], config: Config) -> StagePace:
    """Run the stages on the first of the sentences, and return what they took."""
    some = _first(sentences, TRIED_TOKENS)
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        short = _try(RunDir(Path(folder, "short")), _first(some, _FEW_TOKENS), config)
        return _pace(RunDir(Path(folder, "run")), some, short, config)


def _first(sentences: Iterable[Sequence[str]], num_tokens: int) -> list[Sequence[str]]:
    """Return the first sentences, until they have so many tokens."""
    first = []
    for sentence in sentences:
        first.append(sentence)
        num_tokens -= len(sentence)
        if num_tokens <= 0:
            break
    return first


@dataclass(frozen=True, kw_only=True)
class _Trial:
    settings: Config
    train_tokens: int
    all_tokens: int
    rows: int
    vocab_seconds: float
    encode_seconds: float


def _try(run: RunDir, sentences: Sequence[Sequence[str]], config: Config) -> _Trial:
    text = run.path.with_suffix(".txt")
    text.write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences), encoding="utf-8", newline="\n")
    reading = replace(_AS_IT_IS, heldout_min_sentences=config.text.heldout_min_sentences)
    settings = replace(config, text=reading, vocab=replace(config.vocab, init="", words="", min_count=1))
    silent = SilentReporter()
    segmented = segment(run, settings, [str(text)], force=True, reporter=silent).counts
    rows = vocab(run, settings, force=True, reporter=silent).counts["rows"]
    encode(run, settings, force=True, reporter=silent)
    return _Trial(
        settings=settings,
        train_tokens=max(1, segmented["train_tokens"]),
        all_tokens=max(1, segmented["train_tokens"] + segmented["heldout_tokens"]),
        rows=rows,
        vocab_seconds=_seconds(run, "vocab"),
        encode_seconds=_seconds(run, "encode"),
    )


def _pace(run: RunDir, sentences: Sequence[Sequence[str]], short: _Trial, config: Config) -> StagePace:
    trial = _try(run, sentences, config)
    more_tokens = trial.all_tokens - short.all_tokens

    def each(seconds: float, short_seconds: float) -> float:
        # More tokens take longer, whatever the clock says of so few of them.
        return max(seconds - short_seconds, seconds / 10) / more_tokens if more_tokens else seconds / trial.all_tokens

    vocab_seconds = each(trial.vocab_seconds, short.vocab_seconds)
    pace = StagePace(
        starting_seconds=max(0.0, trial.vocab_seconds - vocab_seconds * trial.all_tokens),
        vocab_seconds=vocab_seconds,
        encode_seconds=each(trial.encode_seconds, short.encode_seconds),
        segmented_bytes=folder_bytes(run.segmented) / trial.all_tokens,
        id_bytes=folder_bytes(run.ids) / trial.all_tokens,
    )
    settings, num_train, rows = trial.settings, trial.train_tokens, trial.rows
    if not config.word2vec.enabled or config.word2vec.vectors:
        return pace
    took = {}
    for epochs in (1, 2):
        once = replace(settings, word2vec=replace(config.word2vec, epochs=epochs))
        word2vec(run, once, force=True, reporter=SilentReporter())
        took[epochs] = _seconds(run, "word2vec")
    # Two epochs take at least as long as one, whatever the clock says of so little text.
    epoch_seconds = max(took[2] - took[1], took[1] / 10)
    return replace(
        pace,
        word2vec_token_seconds=epoch_seconds / num_train,
        word2vec_row_seconds=max(0.0, took[1] - epoch_seconds) / rows,
        word2vec_bytes=folder_bytes(run.word2vec) / rows,
    )


def _seconds(run: RunDir, stage: str) -> float:
    return float(load_record(run.stage_record(stage))["seconds"])
