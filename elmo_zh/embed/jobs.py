"""Which files are embedded, and where the vectors of each go."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.corpus.files import find_corpus_files
from elmo_zh.embed.formats import npy
from elmo_zh.errors import CorpusError, OutputError


@dataclass(frozen=True)
class Job:
    """One text, where its vectors go, and what to call it if not by its path."""

    source: Path
    output: Path
    name: str = ""


def is_single(arguments: Sequence[str]) -> bool:
    """Return whether one file is named, so that --output is a file's name and not a folder's."""
    return len(arguments) == 1 and Path(arguments[0]).is_file()


def plan_jobs(arguments: Sequence[str], output: Path | None, suffix: str) -> list[Job]:
    """Return what there is to do for files, folders and globs.

    Args:
        arguments: What was typed. Folders are searched as those of a corpus.
        output: For one file the name of its output, else a folder for all, in which those of a folder stand as its
            files do; default beside each file.
        suffix: What is added to a file's name.

    Raises:
        CorpusError: If an argument does not exist, or a folder holds no text.
        OutputError: If two texts would have one output.
    """
    if is_single(arguments):
        source = Path(arguments[0])
        return [Job(source, output or source.with_name(source.name + suffix))]
    if output is not None and output.exists() and not output.is_dir():
        raise OutputError(f"{output} is a file. For several texts --output is a folder.")
    jobs: dict[Path, Job] = {}
    for argument in arguments:
        found = [path for path in find_corpus_files([argument]).paths if not npy.is_output(path.parent)]
        if not found:
            raise CorpusError(f"{argument} holds no text but that of outputs. Give a folder with text.")
        for source in found:
            place = source.relative_to(argument) if Path(argument).is_dir() else Path(source.name)
            target = (output / place if output else source).with_name(source.name + suffix)
            other = jobs.setdefault(target.absolute(), Job(source, target)).source
            if not other.samefile(source):
                raise OutputError(
                    f"{other} and {source} would both be written to {target}. Give their folder instead of the files,"
                    " or embed them one after the other."
                )
    return list(jobs.values())
