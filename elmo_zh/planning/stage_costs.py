"""Time, disk and memory of the stages before training: they are run on part of the sample, in a folder of their own."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_zh.config import Config, TextConfig
from elmo_zh.engine.select import EngineChoice
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.sampling import Sample
from elmo_zh.run.files import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.segment import segment
from elmo_zh.stages.vocab import vocab
from elmo_zh.stages.word2vec import word2vec
from elmo_zh.vocabulary.counting import MAX_WORDS
from elmo_zh.word2vec import choose_epochs

# Tokens that the stages are tried on, some seconds of work; and next to none, for what does not grow with the text.
_TRIED_TOKENS, _FEW_TOKENS = 200_000, 5_000
# Rows of the vocabulary then: writing their vectors takes longer than training them.
_TRIED_ROWS = 5_000
# Epochs of word2vec, beside a single one, which tell the time of an epoch from that of the rows.
_MORE_EPOCHS = 3
# The machine may be more or less busy later. Time for counting depends on how many new words there are, more of them
# in the sample than in the rest.
_TIME_FACTORS = {"segment": 1.6, "vocab": 2.0, "word2vec": 1.6, "encode": 2.0}
# The part of the sample that was tried has words and sentences of other lengths than the rest.
_TEXT_FACTOR, _IDS_FACTOR, _DIGITS_FACTOR = 1.03, 1.1, 1.1
# Memory of Python with what the early stages import, of a word in a table of counts, of a row with its word.
_PROCESS_BYTES, _WORD_BYTES, _ROW_BYTES = 60_000_000, 140, 600
# Time until a worker process has started and imported what it needs.
_WORKER_SECONDS = 0.35
# Settings that leave text as it is that was segmented and normalised before.
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


@dataclass(frozen=True)
class _Trial:
    """Results of the stages on some tokens, and the seconds and bytes that each stage took, in one process."""

    num_tokens: int
    train_tokens: int
    rows: int
    seconds: Mapping[str, float]
    num_bytes: Mapping[str, int]


def _try_stages(sentences: Sequence[Sequence[str]], config: Config, epochs: Sequence[int]) -> _Trial:
    """Run the stages on sentences, word2vec once for each number of epochs."""
    text_config = replace(_AS_IT_IS, heldout_min_sentences=config.text.heldout_min_sentences)
    config = replace(
        config, text=text_config, vocab=replace(config.vocab, init="", words="", size=_TRIED_ROWS, min_count=1)
    )
    with TemporaryDirectory(prefix="elmo-zh-plan-") as folder:
        run, text, silent = RunDir(Path(folder, "run")), Path(folder, "text.txt"), SilentReporter()
        text.write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences), encoding="utf-8", newline="\n")
        counts = segment(run, config, [str(text)], force=True, reporter=silent).counts
        rows = vocab(run, config, force=True, reporter=silent).counts["rows"]
        encode(run, config, force=True, reporter=silent)
        seconds = {name: load_record(run.stage_record(name))["seconds"] for name in ("vocab", "encode")}
        for number in epochs:
            once = replace(config, word2vec=replace(config.word2vec, epochs=number))
            word2vec(run, once, force=True, reporter=silent)
            seconds[f"word2vec {number}"] = load_record(run.stage_record("word2vec"))["seconds"]
        num_bytes = {path.stem: folder_bytes(path) for path in (run.segmented, run.ids, run.word2vec)}
    train_tokens = max(1, counts["train_tokens"])
    return _Trial(train_tokens + counts["heldout_tokens"], train_tokens, rows, seconds, num_bytes)


def stage_figures(sample: Sample, tokens: Estimate, rows: Estimate, config: Config) -> dict[str, Estimate]:
    """Return time and disk of each stage before training, for the tokens of a corpus and the rows of its vocabulary."""
    sentences = [sentence for block in sample.blocks for sentence in block.sentences]
    ends = list(accumulate(map(len, sentences)))
    epochs = (1, _MORE_EPOCHS) if config.word2vec.enabled and not config.word2vec.vectors else ()
    few = _try_stages(sentences[: bisect_left(ends, _FEW_TOKENS) + 1], config, ())
    trial = _try_stages(sentences[: bisect_left(ends, _TRIED_TOKENS) + 1], config, epochs)
    more_tokens = trial.num_tokens - few.num_tokens or trial.num_tokens
    num_workers = EngineChoice(num_workers=config.text.num_workers).num_processes(sample.corpus_bytes)

    def on_all_workers(seconds: float) -> float:
        return seconds / num_workers + (_WORKER_SECONDS if num_workers > 1 else 0)

    reading = sample.reading.seconds * sample.corpus_bytes / max(1, sample.reading.counts["line_bytes"])
    segmenting = sample.segmenting_seconds * tokens.value / ends[-1]
    # Every worker loads the dictionary.
    seconds = {"segment": sample.starting_seconds + on_all_workers(reading + segmenting)}
    for stage in ("vocab", "encode"):
        # More tokens take longer, whatever the clock says of so few of them.
        took = trial.seconds[stage]
        per_token = max(took - few.seconds[stage], took / 10) / more_tokens
        start = max(0.0, took - per_token * trial.num_tokens)
        seconds[stage] = start + on_all_workers(per_token * tokens.value)
    seconds["word2vec"] = 0.0
    if epochs:
        # More epochs take longer than one, whatever the clock says of so little text.
        one, more = trial.seconds["word2vec 1"], trial.seconds[f"word2vec {_MORE_EPOCHS}"]
        epoch = max((more - one) / (_MORE_EPOCHS - 1), one / 10)
        num_epochs = choose_epochs(config.word2vec, tokens.value).epochs
        seconds["word2vec"] = epoch / trial.train_tokens * tokens.value * num_epochs
        seconds["word2vec"] += max(0.0, one - epoch) / trial.rows * rows.value
    token_bytes = {name: size / trial.num_tokens for name, size in trial.num_bytes.items()}
    # Ids of two bytes reach so far; the part of the sample that was tried has fewer rows.
    wider = 2 if rows.value > 2**16 and config.model.mode == "token" else 0
    times = {f"seconds.{name}": Estimate.exact(value).widened(_TIME_FACTORS[name]) for name, value in seconds.items()}
    return {
        **times,
        "bytes.segmented": tokens.times(token_bytes["segmented"]).widened(_TEXT_FACTOR),
        "bytes.ids": tokens.times(token_bytes["ids"] + wider).widened(_IDS_FACTOR),
        # Rare words have smaller numbers, which take more digits, and the part tried has more of these.
        "bytes.word2vec": rows.times(trial.num_bytes["word2vec"] / trial.rows).widened(_DIGITS_FACTOR),
    }


def stage_memory(process_bytes: int, corpus_bytes: float, words: float, rows: float, config: Config) -> dict[str, int]:
    """Return about how many bytes of memory each stage takes at most, all its processes together.

    One process that segments takes `process_bytes`; the training text has so many different words.
    """
    num_workers = EngineChoice(num_workers=config.text.num_workers).num_processes(corpus_bytes)
    counted = min(words, MAX_WORDS), words if config.model.mode == "character" else rows
    counting, encoding = (_PROCESS_BYTES + _WORD_BYTES * number for number in counted)
    workers = {"segment": process_bytes, "vocab": counting, "encode": encoding}
    main_bytes = _PROCESS_BYTES if num_workers > 1 else 0
    memory = {stage: main_bytes + num_workers * worker_bytes for stage, worker_bytes in workers.items()}
    memory["vocab"] += _WORD_BYTES * rows
    vectors = rows * (2 * 4 * config.model.projection_dim + _ROW_BYTES)
    memory["word2vec"] = 2 * _PROCESS_BYTES + vectors if config.word2vec.enabled else 0
    return {stage: round(amount) for stage, amount in memory.items()}
