"""How fast this machine does the stages before training: they are run on part of the sample, in their own folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh import pipeline
from elmo_zh.config import Config, TextConfig
from elmo_zh.reporter import SilentReporter
from elmo_zh.run_dir import RunDir
from elmo_zh.stages import load_record

# Tokens that the stages are tried on: some seconds of work.
TRIED_TOKENS = 150_000
# Text that is segmented and normalised already stays as it is.
_AS_IT_IS = TextConfig(
    segmenter="whitespace",
    split_sentences=False,
    unicode_form="none",
    fold_fullwidth=False,
    remove_control=False,
    collapse_whitespace=False,
    num_workers=1,
)


@dataclass(frozen=True, kw_only=True)
class StagePace:
    """Seconds and bytes for each token or row.

    Attributes:
        vocab_seconds: For each token.
        encode_seconds: For each token.
        word2vec_token_seconds: For each token and epoch; 0 where word2vec is switched off.
        word2vec_row_seconds: For each word with a vector.
        segmented_bytes: For each token.
        id_bytes: For each token.
        word2vec_bytes: For each word with a vector.
    """

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
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        text = Path(folder, "sample.txt")
        _write(sentences, text)
        return _measure(RunDir(Path(folder, "run")), text, config)


def _write(sentences: Iterable[Sequence[str]], path: Path) -> None:
    num_tokens = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            file.write(" ".join(sentence) + "\n")
            num_tokens += len(sentence)
            if num_tokens >= TRIED_TOKENS:
                return


def _measure(run: RunDir, text: Path, config: Config) -> StagePace:
    reading = replace(_AS_IT_IS, heldout_min_sentences=config.text.heldout_min_sentences)
    settings = replace(config, text=reading, vocab=replace(config.vocab, init="", words="", min_count=1))
    silent = SilentReporter()
    segmented = pipeline.segment(run, settings, [str(text)], force=True, reporter=silent).counts
    rows = pipeline.vocab(run, settings, force=True, reporter=silent).counts["rows"]
    encoded = pipeline.encode(run, settings, force=True, reporter=silent).counts
    num_train = max(1, segmented["train_tokens"])
    num_all = num_train + segmented["heldout_tokens"]
    pace = StagePace(
        vocab_seconds=_seconds(run, "vocab") / num_train,
        encode_seconds=_seconds(run, "encode") / max(1, encoded["train_tokens"] + encoded["heldout_tokens"]),
        segmented_bytes=folder_bytes(run.segmented) / num_all,
        id_bytes=folder_bytes(run.ids) / num_all,
    )
    if not config.word2vec.enabled or config.word2vec.vectors:
        return pace
    took = {}
    for epochs in (1, 2):
        once = replace(settings, word2vec=replace(config.word2vec, epochs=epochs))
        pipeline.word2vec(run, once, force=True, reporter=silent)
        took[epochs] = _seconds(run, "word2vec")
    # Two epochs take at least as long as one, whatever the clock says of so little text.
    each = max(took[2] - took[1], took[1] / 10)
    return replace(
        pace,
        word2vec_token_seconds=each / num_train,
        word2vec_row_seconds=max(0.0, took[1] - each) / rows,
        word2vec_bytes=folder_bytes(run.word2vec) / rows,
    )


def _seconds(run: RunDir, stage: str) -> float:
    return float(load_record(run.stage_record(stage))["seconds"])


def all_sentences(blocks: Iterable[Sequence[Sequence[str]]]) -> Iterable[Sequence[str]]:
    """Return the sentences of several texts, one after another."""
    return chain.from_iterable(blocks)
