"""The texts to embed, and where the output of each one goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import Source, Sources
from elmo_zh.errors import OutputError


@dataclass(frozen=True)
class Target:
    """One text to embed, and the path of its output."""

    text: InputText
    output: Path


def is_single(arguments: Sequence[str]) -> bool:
    """Return whether only one file is given; --output is then a file instead of a folder."""
    return len(arguments) == 1 and (arguments[0] == "-" or Path(arguments[0]).is_file())


def plan_targets(
    arguments: Sequence[str], sources: Sources, output: Path | None, suffix: str, config: TextConfig, *, segmented: bool
) -> list[Target]:
    """Plan an output for each text, from the arguments as typed; without `output`, outputs go beside their texts."""
    if is_single(arguments):
        [source] = sources.sources
        default = source.path.with_name(source.file_name + suffix) if source.is_local else Path(f"embeddings{suffix}")
        return [Target(input_text(source, config, segmented=segmented), output or default)]
    if output is not None and output.exists() and not output.is_dir():
        raise OutputError(f"{output} is a file. For several texts or a folder, --output must be a folder.")
    targets: dict[Path, Target] = {}
    for source in sources.sources:
        target = _place(source, arguments, output)
        target = target.with_name(source.file_name + suffix)
        text = input_text(source, config, segmented=segmented)
        other = targets.setdefault(target.absolute(), Target(text, target)).text.source
        if other is not source:
            raise OutputError(
                f"The outputs for {other.name} and {source.name} would both be written to {target}. Give the folder"
                " that contains both files, or embed each file separately, with its own --output."
            )
    return list(targets.values())


def _place(source: Source, arguments: Sequence[str], output: Path | None) -> Path:
    """Return a source's path in the output folder: relative to the folder that was typed, or just its name."""
    if output is None:
        return source.path
    folders = [Path(argument) for argument in arguments if Path(argument).is_dir()]
    inside = next((folder for folder in folders if folder in source.path.parents), None)
    return output / (source.path.relative_to(inside) if inside else source.path.name)
