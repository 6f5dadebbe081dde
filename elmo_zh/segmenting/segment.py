"""The segment stage: a corpus to one segmented sentence a line, training and held-out text apart.

In three steps, each in tasks that any worker can do: sources become pieces of lines of equal bytes; lines that stand
more than once are found; each piece is cleaned and segmented. Then the held-out text is chosen from the candidates of
all pieces, and taken out of them. What is cut where depends on the corpus and the settings only, so the files are the
same whatever does the work. Each task leaves a record when it is done, so a stage that is stopped goes on where it was.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elmo_zh.config import TextConfig, result_settings
from elmo_zh.corpus.cleaning.clean import EMPTY, LineCleaner
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.corpus.sources import Source, Sources, Stamp
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.engine.choice import EngineChoice
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.parts import run_parts
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import atomic_path, place, remove, write_json_once
from elmo_zh.run.reporter import Reporter
from elmo_zh.segmenting.cut import cut
from elmo_zh.segmenting.duplicates import find_repeated
from elmo_zh.segmenting.extract import Extracted, ExtractTask, NumberedSource, extract
from elmo_zh.segmenting.heldout import HeldoutChoice, load_candidates
from elmo_zh.segmenting.piece_task import PieceCounts, SegmentTask, forget_dictionaries, segment_piece
from elmo_zh.segmenting.pieces import SizedPiece
from elmo_zh.segmenting.take_out import TakeOutTask, take_out
from elmo_zh.segmenting.work_dir import SegmentParts, part_name
from elmo_zh.text.segmenters.registry import describe_segmenter
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary
from elmo_zh.version import __version__

# A shard for each of so many parts of the corpus, but neither so small that there is more to do around it than in it
# nor so large that workers wait long for the last one.
_WANTED_SHARDS = 64
_LEAST_SHARD_BYTES, _MOST_SHARD_BYTES = 2**20, 2**24


@dataclass(kw_only=True)
class SegmentCounts:
    """What the segment stage read and wrote.

    `characters` is all text that was read, which is `kept_characters` and those `dropped`, by reason.
    """

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


@dataclass(kw_only=True)
class SegmentedCorpus:
    """What became of a corpus: counts in all, of each source in its order, and of what was done to lines."""

    counts: SegmentCounts
    tallies: list[Tally]
    lines: LineCounts
    passed_over: PassedOver


def segment_corpus(
    corpus: Sources,
    output: Path,
    config: TextConfig,
    user_dictionary: Path | None,
    reporter: Reporter,
    engine_choice: EngineChoice | None = None,
) -> SegmentedCorpus:
    """Segment a corpus into `output`/{train,heldout}-*.txt, replacing that folder as a whole at the end.

    Beside each training file stands one with the number of sentences of each document, little-endian uint32. What is
    done is kept in the folder `output`.parts until the end. Memory does not grow with the corpus.

    Raises:
        CorpusError: For text that cannot be read, or a corpus without any sentence.
    """
    done = SegmentedCorpus(
        counts=SegmentCounts(files=len(corpus.sources)),
        tallies=[Tally() for _ in corpus.sources],
        lines=LineCounts(),
        passed_over=PassedOver(),
    )
    # So that what is missing or bad is told here, once and by its name.
    LineCleaner.build(config)
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, lambda *_: None)
    parts = SegmentParts(output.absolute().with_name(f"{output.name}.parts"))
    shard_bytes = config.shard_bytes or _shard_bytes(corpus.total_bytes())
    sources = [_number(number, source) for number, source in enumerate(corpus.sources)]
    parts.begin(_describe_plan(sources, config, user_dictionary, shard_bytes))
    choice = engine_choice or EngineChoice(num_workers=config.num_workers)
    dictionary = user_dictionary.absolute() if user_dictionary else None
    with choice.started(corpus.total_bytes()) as engine:
        pieces = _extract(list(cut(sources, config, shard_bytes, engine)), parts, engine, done, reporter)
        repeated = find_repeated([piece.piece for piece in pieces], config, parts.repeated, engine)
        tasks = [
            SegmentTask(number=number, piece=piece, config=config, user_dictionary=dictionary, repeated=repeated)
            for number, piece in enumerate(pieces)
        ]
        num_sentences = _segment(tasks, parts, engine, done, reporter)
        forget_dictionaries()
        if not done.counts.kept_characters:
            remove(parts.path)
            raise _no_text(corpus, done)
        _choose_heldout(num_sentences, config, parts)
        heldout = _take_out(len(pieces), parts, engine, done.counts)
    with atomic_path(output) as unfinished:
        unfinished.mkdir()
        _put_together(unfinished, len(pieces), parts, heldout)
    remove(parts.path)
    return done


def _shard_bytes(corpus_bytes: int) -> int:
    return min(max(corpus_bytes // _WANTED_SHARDS, _LEAST_SHARD_BYTES), _MOST_SHARD_BYTES)


def _number(number: int, source: Source) -> NumberedSource:
    whole = replace(source, path=source.path.absolute())
    return NumberedSource(number=number, source=whole, stamp=Stamp.of(whole))


def _describe_plan(
    sources: list[NumberedSource], config: TextConfig, user_dictionary: Path | None, shard_bytes: int
) -> dict[str, Any]:
    """Return all that decides what the parts are."""
    settings = {**result_settings(config), "segmenter_version": describe_segmenter(config, user_dictionary)}
    files = [[each.source.name, each.stamp.num_bytes, each.stamp.modified_ns] for each in sources]
    return {"elmo_zh": __version__, "shard_bytes": shard_bytes, "settings": settings, "sources": files}


def _extract(
    tasks: list[ExtractTask], parts: SegmentParts, engine: Engine, done: SegmentedCorpus, reporter: Reporter
) -> list[SizedPiece]:
    """Have all sources read, and return the pieces in the order of the corpus."""
    named = {part_name(task.number): task for task in tasks}
    found: dict[str, Extracted] = {}
    total = sum(task.num_bytes for task in tasks)
    with reporter.progress("read", unit="bytes", total=total) as progress:
        for name, figures in run_parts(engine, extract, named, parts.extracted):
            found[name] = Extracted.restored(figures)
            progress.update(named[name].num_bytes)
    pieces = []
    for name, task in named.items():
        pieces += [
            SizedPiece(parts.piece(task.number, number), num_bytes)
            for number, num_bytes in enumerate(found[name].piece_bytes)
        ]
        done.passed_over.extend(found[name].passed_over)
        for number, tally in found[name].tallies.items():
            done.tallies[number].extend(tally)
    return pieces


def _segment(
    tasks: list[SegmentTask], parts: SegmentParts, engine: Engine, done: SegmentedCorpus, reporter: Reporter
) -> list[int]:
    """Have all pieces segmented, count them, and return the number of sentences of each."""
    named = {part_name(task.number): task for task in tasks}
    found: dict[str, PieceCounts] = {}
    total = sum(task.piece.num_bytes for task in tasks)
    with reporter.progress("segment", unit="bytes", total=total) as progress:
        for name, figures in run_parts(engine, segment_piece, named, parts.segmented):
            found[name] = PieceCounts.restored(figures)
            named[name].piece.piece.forget_text()
            progress.update(named[name].piece.num_bytes)
    in_order = [found[name] for name in named]
    for counts in in_order:
        _count(counts, done)
    _add_up(done)
    return [counts.sentences for counts in in_order]


def _count(piece: PieceCounts, done: SegmentedCorpus) -> None:
    for number, tally in piece.tallies.items():
        done.tallies[number].extend(tally)
    done.lines.merge(piece.lines)
    done.counts.han_characters += piece.han_characters


def _add_up(done: SegmentedCorpus) -> None:
    done.counts.lines = done.lines.lines
    done.counts.empty_lines = done.lines.dropped[EMPTY].lines if EMPTY in done.lines.dropped else 0
    for tally in done.tallies:
        done.counts.documents += tally.documents
        done.counts.characters += tally.characters
        done.counts.kept_characters += tally.kept_characters
    dropped = sum((tally.dropped for tally in done.tallies), Counter())
    done.counts.dropped = {reason: number for reason, number in sorted(dropped.items()) if number}


def _no_text(corpus: Sources, done: SegmentedCorpus) -> CorpusError:
    names = ", ".join(source.name for source in corpus.sources[:3])
    other = [f"{count:,} {reason}" for reason, count in sorted(done.passed_over.counts.items())]
    other += [f"{number:,} characters of {reason}" for reason, number in done.counts.dropped.items() if reason != EMPTY]
    found = f"{done.counts.lines} lines, all empty" + (f"; left out: {', '.join(other)}" if other else "")
    return CorpusError(f"{names} holds no text ({found}). Give a file with text.")


def _choose_heldout(num_sentences: list[int], config: TextConfig, parts: SegmentParts) -> None:
    choice = HeldoutChoice(config)
    for number, of_piece in enumerate(num_sentences):
        bound, candidates = load_candidates(parts.candidates(number))
        choice.merge(candidates, bound, of_piece)
    write_json_once(parts.chosen, choice.chosen())


def _take_out(num_pieces: int, parts: SegmentParts, engine: Engine, counts: SegmentCounts) -> list[str]:
    """Have the training text of all pieces written, and return the paragraphs that are held out."""
    tasks = {part_name(number): TakeOutTask(number=number, parts=parts) for number in range(num_pieces)}
    heldout: list[tuple[int, int, int, str]] = []
    for name, taken in run_parts(engine, take_out, tasks, parts.taken_out):
        counts.train_sentences += taken["train_sentences"]
        counts.train_tokens += taken["train_tokens"]
        for place_in_piece, (key, text, num_tokens) in enumerate(taken["heldout"]):
            heldout.append((key, tasks[name].number, place_in_piece, text))
            counts.heldout_sentences += text.count("\n")
            counts.heldout_tokens += num_tokens
    return [text for *_, text in sorted(heldout)]


def _put_together(folder: Path, num_pieces: int, parts: SegmentParts, heldout: list[str]) -> None:
    """Put the training files of all pieces that have some text, and the held-out file, into a folder."""
    with_text = [number for number in range(num_pieces) if parts.train(number).stat().st_size]
    for position, number in enumerate(with_text):
        place(parts.train(number), folder / f"train-{position:05d}.txt")
        place(parts.documents(number), folder / f"train-{position:05d}.documents")
    if heldout:
        (folder / "heldout-00000.txt").write_text("".join(heldout), encoding="utf-8", newline="\n")
