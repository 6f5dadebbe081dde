"""Help in the user's language, with texts from the catalogue wrapped by the display width of characters."""

import gettext
import inspect
import os
from collections.abc import Callable, Iterable

import click

from elmo_zh.language import DOMAIN, LOCALES, N_, _, chosen_language
from elmo_zh.run.reporter import display_width, wrapped

EXAMPLE = N_("Example:")


def translate_help(command: click.Command, translate: Callable[[str], str] = _) -> None:
    """Translate the help texts of a command, its options and its subcommands, paragraph by paragraph."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(
        each.replace(EXAMPLE, translate(EXAMPLE)) if each.startswith("\b") else translate(" ".join(each.split()))
        for each in paragraphs
    )
    for option in command.params:
        if isinstance(option.type, click.Path | type(click.INT) | type(click.FLOAT)):
            # click translates words when it is imported, before it knows the catalogue, or not at all.
            option.type.name = translate(option.type.name)
        if isinstance(option, click.Option) and option.help:
            option.help = translate(option.help)
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        translate_help(each, translate)


def speak(command: click.Group) -> None:
    """Make click and the help of all commands use the language of the environment."""
    language = chosen_language()
    # click translates its own words with gettext, which looks at this variable first.
    os.environ["LANGUAGE"] = language
    if language != "en":
        gettext.bindtextdomain(DOMAIN, str(LOCALES))
        click.Context.formatter_class = WideFormatter
        translate_help(command)


class WideFormatter(click.HelpFormatter):
    """Formats help in which characters may be two columns wide."""

    def write_heading(self, heading: str) -> None:
        """Write the title of a section, with a full-width colon in Chinese."""
        self.write(f"{' ' * self.current_indent}{heading}：\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs, indented; those that begin with \\b keep their line breaks."""
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.write("\n")
            lines = paragraph.split("\n")[1:] if paragraph.startswith("\b") else [" ".join(paragraph.split())]
            for line in lines:
                kept = [line] if paragraph.startswith("\b") else wrapped(line, self.width - self.current_indent)
                self.write("".join(f"{' ' * self.current_indent}{each}\n" for each in kept))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their descriptions in two columns."""
        rows = list(rows)
        first = min(max(display_width(name) for name, _ in rows), col_max) + col_spacing
        for name, description in rows:
            margin = " " * (self.current_indent + first)
            lines = list(wrapped(description, max(self.width - len(margin), 10)))
            start = f"{' ' * self.current_indent}{name}"
            fits = display_width(name) <= first - col_spacing
            self.write(f"{start}{' ' * (first - display_width(name))}{lines.pop(0)}\n" if fits else f"{start}\n")
            self.write("".join(f"{margin}{line}\n" for line in lines if line))
