"""The files to embed, and the output of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.corpus.files import find_corpus_files
from elmo_zh.embed.formats import npy
from elmo_zh.errors import CorpusError, OutputError


@dataclass(frozen=True)
class Job:
    """One text to embed.

    Attributes:
        source: The text file.
        output: The path of its vectors.
        name: The name of the text in messages; default its path.
    """

    source: Path
    output: Path
    name: str = ""


def is_single(arguments: Sequence[str]) -> bool:
    """Return whether one file is given, so that --output names a file and not a folder."""
    return len(arguments) == 1 and Path(arguments[0]).is_file()


def plan_jobs(arguments: Sequence[str], output: Path | None, suffix: str) -> list[Job]:
    """Return the jobs for files, folders and globs.

    Args:
        arguments: Files, folders and globs as typed. Folders are searched like those of a corpus.
        output: For one file the path of its output; else a folder for all outputs, with the subfolders of the folders
            given; default beside each file.
        suffix: Suffix added to the name of a file.

    Raises:
        CorpusError: If an argument does not exist, or a folder holds no text.
        OutputError: If two texts would have the same output.
    """
    if is_single(arguments):
        source = Path(arguments[0])
        return [Job(source, output or source.with_name(source.name + suffix))]
    if output is not None and output.exists() and not output.is_dir():
        raise OutputError(f"{output} is a file. With several texts --output has to be a folder.")
    jobs: dict[Path, Job] = {}
    for argument in arguments:
        found = [path for path in find_corpus_files([argument]).paths if not npy.is_output(path.parent)]
        if not found:
            raise CorpusError(f"{argument} holds no text besides outputs of embed. Give a folder with text.")
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
