"""Turn a corpus into files of one segmented sentence per line, with training and held-out text kept apart.

Three steps of the segment stage consist of tasks that any worker can run: extract text shards of about equal bytes
(extract.py), find repeated lines (duplicates.py), and clean and segment each shard (shard_task.py). The last step
divides the text into training and held-out text, chosen among the paragraphs of all shards that have no near copies
(heldout.py, near_copies.py).

How the corpus is cut depends only on the corpus and the settings, so the files do not depend on the workers. Each task
leaves a record when it is finished, so an interrupted stage resumes where it stopped.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig, result_settings
from elmo_zh.corpus.cleaning.clean import EMPTY, LineCleaner
from elmo_zh.corpus.cleaning.line_counts import LineCounts
from elmo_zh.corpus.readers.record_texts import WITHOUT_FIELDS
from elmo_zh.corpus.sources import Sources
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.select import EngineChoice
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.work_folder import Figures, WorkFolder, part_name
from elmo_zh.segmenting.duplicates import RepeatedLines, find_repeated
from elmo_zh.segmenting.extract import NumberedSource, cut, extract
from elmo_zh.segmenting.heldout import choose_texts, divide_shard, iter_signatures, load_lowest_texts
from elmo_zh.segmenting.near_copies import find_near_copies
from elmo_zh.segmenting.shard_task import SegmentTask, forget_dictionaries, segment_shard
from elmo_zh.segmenting.text_shards import TextShard, text_shard_name
from elmo_zh.text.segmenters.registry import describe_segmenter
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary
from elmo_zh.version import __version__

# The corpus is cut into this many shards, but not into shards so small that starting a task takes longer than the task,
# nor so large that workers wait long for the last one.
_WANTED_SHARDS = 64
_LEAST_SHARD_BYTES, _MOST_SHARD_BYTES = 2**20, 2**24


@dataclass(kw_only=True)
class SegmentCounts:
    """Counts of text in the segment stage; `characters` is the sum of `kept_characters` and `dropped`."""

    files: int = 0
    documents: int = 0
    lines: int = 0
    characters: int = 0
    kept_characters: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    han_characters: int = 0
    empty_lines: int = 0
    train_sentences: int = 0
    train_tokens: int = 0
    heldout_sentences: int = 0
    heldout_tokens: int = 0
    near_copies_trained: int = 0  # Paragraphs that were not held out because they have near copies
    near_copies_heldout: int = 0  # Paragraphs that were held out although they have near copies


@dataclass(kw_only=True)
class SegmentedCorpus:
    """The result of the segment stage: total counts, a tally for each source in order, and line counts."""

    counts: SegmentCounts
    tallies: list[Tally]
    lines: LineCounts
    passed_over: PassedOver


@dataclass(frozen=True, kw_only=True)
class _Work:
    """Inputs of all steps (settings, work folder, engine and reporter), and the result that they add to."""

    config: TextConfig
    parts: WorkFolder
    engine: Engine
    reporter: Reporter
    result: SegmentedCorpus

    def step(self, name: str) -> WorkFolder:
        """Return the folder of a step: extracted, repeated or segmented."""
        return WorkFolder(self.parts.path / name)


def segment_corpus(
    corpus: Sources,
    output: Path,
    config: TextConfig,
    user_dictionary: Path | None,
    reporter: Reporter,
    engine_choice: EngineChoice | None = None,
) -> SegmentedCorpus:
    """Segment a corpus into `output`/{train,heldout}-*.txt with .documents; the old folder is replaced at the end."""
    # Raise the error for a missing package or a bad dictionary here, once and with its name, not in each worker.
    LineCleaner.build(config)
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, lambda *_: None)
        user_dictionary = user_dictionary.absolute()
    parts = WorkFolder.of(output.absolute())
    sources = [NumberedSource.of(number, source) for number, source in enumerate(corpus.sources)]
    wanted_bytes = min(max(corpus.total_bytes() // _WANTED_SHARDS, _LEAST_SHARD_BYTES), _MOST_SHARD_BYTES)
    shard_bytes = config.shard_bytes or wanted_bytes
    parts.open(_describe_plan(sources, config, user_dictionary, shard_bytes))
    result = SegmentedCorpus(
        counts=SegmentCounts(files=len(sources)),
        tallies=[Tally() for _ in sources],
        lines=LineCounts(),
        passed_over=PassedOver(),
    )
    engine_choice = engine_choice or EngineChoice(num_workers=config.num_workers)
    with engine_choice.started(corpus.total_bytes()) as engine:
        work = _Work(config=config, parts=parts, engine=engine, reporter=reporter, result=result)
        shards = _extract_shards(work, sources, shard_bytes)
        _require_fields(corpus, result, config.field)
        segmented, repeated_parts = work.step("segmented"), work.step("repeated")
        if repeated_parts.path.exists() or segmented.path.exists():
            num_segmented = segmented.num_finished(map(part_name, range(len(shards))))
            reporter.note(f"Resuming with {num_segmented:,} of {counted(len(shards), 'shard')} segmented.")
        repeated = find_repeated(shards, config, repeated_parts, engine)
        _segment_shards(work, shards, user_dictionary, repeated)
        if not result.counts.kept_characters:
            parts.remove()
            raise _no_text_error(corpus, result)
    with atomic_path(output) as unfinished:
        unfinished.mkdir()
        _write_output(unfinished, [segmented.path / part_name(number) for number in range(len(shards))], work)
    parts.remove()
    return result


# Before the first step


def _describe_plan(
    sources: list[NumberedSource], config: TextConfig, user_dictionary: Path | None, shard_bytes: int
) -> dict[str, Any]:
    settings = {**result_settings(config), "segmenter_version": describe_segmenter(config, user_dictionary)}
    files = [[each.source.name, each.stamp.num_bytes, each.stamp.modified_ns] for each in sources]
    # Bump `parts` when the files of a part change.
    return {"elmo_zh": __version__, "parts": 4, "shard_bytes": shard_bytes, "settings": settings, "sources": files}


# Step 1


def _extract_shards(work: _Work, sources: list[NumberedSource], shard_bytes: int) -> list[TextShard]:
    tasks = {part_name(task.number): task for task in cut(sources, work.config, shard_bytes, work.engine)}
    # If this step was finished, a later step says where it resumes.
    if 0 < (num_read := work.step("extracted").num_finished(tasks)) < len(tasks):
        work.reporter.note(f"Resuming with {num_read:,} of {len(tasks):,} parts of the corpus read.")
    found: dict[str, Figures] = {}
    total = sum(task.num_bytes for task in tasks.values())
    with work.reporter.progress("read", unit="bytes", total=total) as progress:
        for name, figures in work.step("extracted").run(work.engine, extract, tasks):
            found[name] = figures
            progress.update(tasks[name].num_bytes)
    shards = []
    for name in tasks:
        extracted = found[name]
        shards += [
            TextShard(work.step("extracted").path / f"{name}.{text_shard_name(number)}", num_bytes)
            for number, num_bytes in enumerate(extracted["shard_sizes"])
        ]
        work.result.passed_over.extend(PassedOver.restored(extracted["passed_over"]))
        _extend_tallies(work.result, extracted)
    return shards


def _extend_tallies(result: SegmentedCorpus, figures: Figures) -> None:
    for source, tally in figures["tallies"].items():
        result.tallies[int(source)].extend(Tally.restored(tally))


def _require_fields(corpus: Sources, result: SegmentedCorpus, field: str) -> None:
    """Raise CorpusError if fields were asked for but no file in the corpus has any."""
    kinds = {kind for tally in result.tallies for kind, _, _ in tally.forms}
    if field and kinds and kinds <= set(WITHOUT_FIELDS):
        names = ", ".join(source.name for source in corpus.sources[:3])
        raise CorpusError(
            f"{names}: --field {field} has no effect, because {', '.join(sorted(kinds))} files have no fields. Leave"
            " out --field, or specify the format, such as --format csv"
        )


# Step 3; step 2 is find_repeated


def _segment_shards(
    work: _Work, shards: list[TextShard], user_dictionary: Path | None, repeated: RepeatedLines | None
) -> None:
    """Clean and segment all shards, and add up their counts."""
    tasks = {
        part_name(number): SegmentTask(
            number=number, shard=shard, config=work.config, user_dictionary=user_dictionary, repeated=repeated
        )
        for number, shard in enumerate(shards)
    }
    found: dict[str, Figures] = {}
    total = sum(shard.num_bytes for shard in shards)
    with work.reporter.progress("segment", unit="bytes", total=total) as progress:
        for name, figures in work.step("segmented").run(work.engine, segment_shard, tasks):
            found[name] = figures
            tasks[name].shard.remove_text()
            progress.update(tasks[name].shard.num_bytes)
    forget_dictionaries()
    for name in tasks:
        _extend_tallies(work.result, found[name])
        work.result.lines.merge(LineCounts.from_record(found[name]["lines"]))
        work.result.counts.han_characters += found[name]["han_characters"]
    _add_up(work.result)


def _add_up(result: SegmentedCorpus) -> None:
    result.counts.lines = result.lines.lines
    result.counts.empty_lines = result.lines.dropped[EMPTY].lines if EMPTY in result.lines.dropped else 0
    for tally in result.tallies:
        result.counts.documents += tally.documents
        result.counts.characters += tally.characters
        result.counts.kept_characters += tally.kept_characters
    dropped = sum((tally.dropped for tally in result.tallies), Counter())
    result.counts.dropped = {reason: number for reason, number in sorted(dropped.items()) if number}


def _no_text_error(corpus: Sources, result: SegmentedCorpus) -> CorpusError:
    names = ", ".join(source.name for source in corpus.sources[:3])
    other = [f"skipped ({reason}): {number:,}" for reason, number in sorted(result.passed_over.counts.items())]
    other += [
        f"characters left out ({reason}): {number:,}"
        for reason, number in result.counts.dropped.items()
        if reason != EMPTY
    ]
    found = "; ".join([f"{counted(result.counts.lines, 'line')}, none kept", *other])
    return CorpusError(f"{names}: no text found ({found}). Use files that contain text.")


# Step 4


def _write_output(folder: Path, shards: list[Path], work: _Work) -> None:
    """Write the held-out file, and the training files of all shards that have text, numbered without gaps."""
    counts = work.result.counts
    chosen = _choose_heldout(work, shards)
    heldout: list[tuple[int, Path, int, str]] = []
    num_files = 0
    for shard in shards:
        train = folder / f"train-{num_files:05d}"
        divided = divide_shard(shard, chosen, train)
        if divided.train_sentences:
            num_files += 1
        else:
            for suffix in (".txt", ".documents"):
                train.with_suffix(suffix).unlink()
        counts.train_sentences += divided.train_sentences
        counts.train_tokens += divided.train_tokens
        for place_in_shard, (key, text, num_tokens) in enumerate(divided.heldout):
            heldout.append((key, shard, place_in_shard, text))
            counts.heldout_sentences += text.count("\n")
            counts.heldout_tokens += num_tokens
    if heldout:
        text = "".join(text for *_, text in sorted(heldout))
        (folder / "heldout-00000.txt").write_text(text, encoding="utf-8", newline="\n")


def _choose_heldout(work: _Work, shards: list[Path]) -> NDArray[np.uint64]:
    """Choose the held-out paragraphs of all shards, and return their keys."""
    texts, num_sentences = load_lowest_texts(shards, work.config)
    near_copies = find_near_copies(texts["key"], texts["signature"], iter_signatures(shards))
    chosen = choose_texts(texts, num_sentences, work.config, near_copies)
    highest = int(chosen[-1]) if len(chosen) else 0
    work.result.counts.near_copies_heldout = len(near_copies.intersection(chosen.tolist()))
    work.result.counts.near_copies_trained = sum(key < highest for key in near_copies.difference(chosen.tolist()))
    return chosen
