"""Collect the messages of the program and compile their translations: `make messages`.

The catalogue is `elmo_zh/locale/zh/LC_MESSAGES/messages.po`. This script adds the messages that are new in the code,
with an empty translation, removes those that have gone, and compiles the rest for the program. It finds messages in the
syntax tree: every text of two words or more; an f-string becomes a template whose gaps have the names of their values.
Single words count where they are shown alone: headings of tables, names of values, what a progress bar counts.
`--missing` lists the messages that have no translation.
"""

import argparse
import ast
import errno
import inspect
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import click
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from elmo_zh.language import DOMAIN, LOCALES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "elmo_zh"
PO = LOCALES / "zh" / "LC_MESSAGES" / f"{DOMAIN}.po"
# Exceptions of the Python API stay English.
UNTRANSLATED = (
    "ValueError",
    "TypeError",
    "AssertionError",
    "AttributeError",
    "RuntimeError",
    "KeyError",
    "ImportError",
)
# Their texts are patterns, filters of warnings, types, or words of matplotlib.
PATTERNS = (
    *("compile", "fullmatch", "match", "search", "sub", "findall", "split", "finditer", "partition"),
    *("filterwarnings", "loads", "cast", "annotate", "legend"),
)
# Their texts are files or code, except those that they report: the model card, the pages in the browser, operators.
FILES = ("training/model_card.py", "explore/page.py", "spacy.py", "sklearn.py")
# Variables and arguments whose texts are shown alone, however short: headings, marks, units of progress.
WORDS = (
    *("header", "marks", "unit", "KINDS", "SECTIONS", "_CORPUS", "xlabel", "ylabel"),
    *("_BASELINES", "MAJORITY", "_LEFT", "_RESULTS"),
)
# Words that no text of the code is: types of click, parts of labelled data, reasons of the system, and the names of
# values in the JSON files of outputs, which `info` shows.
TERMS = (
    *("integer", "integer range", "float", "float range", "all", "train part", "dev part", "test part"),
    *(os.strerror(getattr(errno, name)) for name in ("ENOENT", "EACCES", "EPERM", "EFBIG", "EISDIR", "ENOTDIR")),
    *(os.strerror(getattr(errno, name)) for name in ("EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "EADDRINUSE")),
    *("coverage", "given words", "absent words", "train unknown", "train documents", "heldout unknown", "step"),
    *("steps", "training seconds", "heldout share of copies", "vectors", "pretrained vectors", "covered"),
    *("refused words", "other words", "other words bytes", "a run", "a comparison", "a probe", "yes", "no", "none"),
    *("size", "started", "finished", "checkpoint step", "sentences", "sentence lengths", "most frequent", "longest"),
    *("made by", "mode", "sizes", "num tokens", "cell dim", "projection dim", "num layers", "cell clip"),
    *("projection clip", "skip connections", "num characters", "num slots", "embedding dim", "filters"),
    *("num highways", "activation", "word dim", "is published", "parameters", "tied softmax", "segmenter"),
    *("version", "dictionary", "carry state", "warm state", "training", "epochs", "heldout set", "perplexity"),
    *("forward perplexity", "backward perplexity", "bits per character", "oov rate", "num predictions"),
    *("split unknown", "started from", "digest", "origin", "program", "unknown", "precision", "dimension"),
    *("settings", "layers", "segmented", "split sentences", "min count", "max per word", "seed", "counts"),
    *("unknown tokens", "cut tokens", "kept lines", "columns", "missing words", "model digest", "labels"),
    *("members", "head", "encoder", "inputs", "elmo at", "regression", "metric", "hidden dim", "character dim"),
    *("dropout", "mix penalty", "patience", "batch size", "learning rate", "mix learning rate"),
    *("bilm learning rate", "seeds", "train examples", "dev examples", "test examples", "scores", "chosen seed"),
    *("accuracy", "macro f1", "by label", "recall", "vocabulary", "options"),
)
# Dataclasses whose fields are the columns of a table.
ROWS = ("Frequency", "Collocate", "Keyword", "NewWord", "SegmentCounts")
# So that the files change only with their texts.
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "counted": (2, 3)}
PROSE = re.compile(r"[A-Za-z]{2,}[,:]? (?:a )?[\"'(]?[A-Za-z]{2,}")


def escaped(text: str) -> str:
    """Return a text as it is written in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def name_of(value: ast.expr) -> str:
    """Return the name of a gap: that of the variable or attribute in it."""
    while isinstance(value, ast.Call | ast.Subscript):
        inner = value.value if isinstance(value, ast.Subscript) else (value.args or [value.func])[0]
        value = inner
    found = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else "value"
    return found.strip("_") or "value"


def template_of(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a text with named gaps; a name that occurs again gets a number."""
    if isinstance(node, ast.Constant):
        return escaped(str(node.value))
    parts, seen = [], dict[str, int]()
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            name = name_of(part.value)
            seen[name] = seen.get(name, 0) + 1
            parts.append(f"{{{name if seen[name] == 1 else f'{name}{seen[name]}'}}}")
        else:
            assert isinstance(part, ast.Constant)
            parts.append(escaped(str(part.value)))
    return "".join(parts)


def is_message(template: str) -> bool:
    """Return whether a text is one that people read: two words, or a gap and a word."""
    if template.startswith("<"):  # markup, or how Python shows an object
        return False
    literal = re.sub(r"\{\w+\}", "\0", template)
    few_words = "\0" in literal and " " in literal and len(re.findall(r"[A-Za-z]", literal)) > 2
    is_interval = "{low} to {high}" in template
    return is_interval or bool(PROSE.search(literal)) or (few_words and not literal.startswith(("--", "`")))


def parts_of_explanation(text: str) -> list[str]:
    """Return what a setting means, and what its empty value means, also as the help of an option says it."""
    meaning, empty, value = text.partition(" Empty: ")
    return [meaning, f"Empty: {value}", f"Default: {value}"] if empty else [meaning]


class Messages(ast.NodeVisitor):
    """Collects (line, message) from a module."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str | tuple[str, str]]] = []

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Add an f-string, and look for messages in its gaps."""
        self._add(node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Add a text."""
        if isinstance(node.value, str):
            self._add(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave out exceptions of the Python API."""
        called = node.exc.func if isinstance(node.exc, ast.Call) else None
        if not (isinstance(called, ast.Name) and called.id in UNTRANSLATED):
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out what only a bug shows."""

    def visit_Call(self, node: ast.Call) -> None:
        """Add both forms of a counted noun, words of progress bars; leave out patterns and refused arguments."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("progress", "translate", "in_language"):
            self._add_words(*node.args[:1])
        if name == "Step":  # its name is that of its progress
            self._add_words(*(each.value for each in node.keywords if each.arg == "name"))
        if name == "update" and ast.unparse(node.func).startswith("progress."):
            self.found += [(node.lineno, each.arg) for each in node.keywords if each.arg]
            self._add_words(*(each.value for each in node.keywords if not each.arg))
        if name == "counted" and isinstance(node.args[-1], ast.Constant | ast.JoinedStr):
            noun = template_of(node.args[-1])
            self.found.append((node.lineno, (f"{{number}} {noun}", f"{{number}} {noun}s")))
        elif name in KEYWORDS:  # Babel finds these
            for each in [*node.args, *node.keywords]:
                if not isinstance(each, ast.Constant | ast.JoinedStr):
                    self.visit(each)
        elif name not in PATTERNS and name != "refusal" and not name.startswith("check_"):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Add words that are shown alone."""
        if getattr(node.targets[0], "id", "") in WORDS:
            self._add_words(node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Add words that are shown alone."""
        if getattr(node.target, "id", "") in WORDS:
            self._add_words(node.value)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Add words that are shown alone."""
        if node.arg in WORDS:
            self._add_words(node.value)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        """Add the name of a value."""
        if isinstance(node.value, ast.Tuple):
            self._add_words(*(each for each in node.value.elts[:1] if isinstance(each, ast.Constant | ast.JoinedStr)))
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Add the columns of a table, and what sections of settings and their settings mean."""
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        if node.name in ROWS:
            self.found += [(each.lineno, ast.unparse(each.target).replace("_", " ")) for each in fields]
        if node.name.endswith("Config"):
            self.found.append((node.lineno, (ast.get_docstring(node) or "").split("\n")[0]))
        for text in (each for each in node.body[1:] if isinstance(each, ast.Expr)):
            explained = escaped(" ".join(ast.literal_eval(text.value).split()))
            self.found += [(text.lineno, part) for part in parts_of_explanation(explained)]
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """Leave out types that are written as texts."""

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Add the help of a command, paragraph by paragraph."""
        if node.name == "__repr__":
            return
        described = [each for each in node.decorator_list if re.search(r"\b(command|group)\(", ast.unparse(each))]
        if described and (text := ast.get_docstring(node)):
            self.found += [(node.lineno, " ".join(each.split())) for each in text.split("\n\n") if each[0] != "\b"]
        node.returns = None  # a type
        self.generic_visit(node)

    def _add_words(self, *nodes: ast.expr) -> None:
        for node in nodes:
            if isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str):
                text = template_of(node)  # type: ignore[arg-type]  # constants with a text have a value
                # Not names such as layers.{layer}.bias and kept_characters.
                if re.search(r"[A-Za-z]{2}", re.sub(r"\{\w+\}", "", text)) and (
                    " " in text or not re.search("[{_]", text)
                ):
                    self.found.append((node.lineno, text))
            elif not isinstance(node, ast.Call | ast.Subscript | ast.comprehension):
                self._add_words(*(each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)))

    def _add(self, node: ast.Constant | ast.JoinedStr) -> None:
        template = template_of(node)
        if is_message(template):
            self.found.append((node.lineno, template.strip()))


def messages_of(path: Path) -> list[tuple[int, str | tuple[str, str]]]:
    """Return the messages of a module with their lines."""
    visitor, tree = Messages(), ast.parse(path.read_text(encoding="utf-8"))
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)]
    reports = [call for call in calls if ast.unparse(call.func).endswith("reporter.note")]
    for node in reports if str(path.relative_to(SOURCE)) in FILES else [tree]:
        visitor.visit(node)
    return visitor.found


def messages_of_click() -> Iterator[str | tuple[str, str]]:
    """Yield the words that click itself prints."""
    folder = Path(inspect.getfile(click)).parent
    words = {"_": None, "ngettext": (1, 2)}
    for _, _, message, _, _ in extract_from_dir(folder, [("**.py", "python")], keywords=words):
        yield message


def _forms(message: Any) -> tuple[str, ...]:
    return (message,) if isinstance(message, str) else tuple(message)


def catalogue() -> Catalog:
    """Return the messages of the code with their translations so far."""
    found = Catalog(locale="zh", project="elmo-zh", fuzzy=False, creation_date=NO_DATE, revision_date=NO_DATE)
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        for _, message in messages_of(path):
            found.add(message, locations=[(name, 0)])
    for name, _, message, _, _ in extract_from_dir(SOURCE, [("**.py", "python")], keywords=KEYWORDS):
        found.add(message, locations=[(name, 0)])
    for message in TERMS:
        found.add(message, locations=[("terms", 0)])
    for message in messages_of_click():
        found.add(message, locations=[("click", 0)])
    known = read_po(BytesIO(PO.read_bytes()), locale="zh") if PO.exists() else Catalog()
    # The Chinese of a counted noun, and of a text with braces, under the forms that old messages had.
    old = {form: _forms(each.string)[0] for each in known if each.id for form in _forms(each.id)}
    for each in found:
        forms = _forms(each.id)
        same = (old.get(form) or old.get(escaped(form)) or old.get(form.replace("!r", "")) for form in forms)
        if each.id and (string := next(filter(None, same), None)):
            each.string = (string,) if len(forms) > 1 else string
        each.flags.discard("python-format")
    return found


def compiled(messages: Catalog) -> bytes:
    """Return the catalogue in the format that the program reads."""
    file = BytesIO()
    write_mo(file, messages)
    return file.getvalue()


def written(messages: Catalog) -> bytes:
    """Return the catalogue as people edit it."""
    file = BytesIO()
    write_po(file, messages, omit_header=False, sort_by_file=True, width=118, include_lineno=False)
    return file.getvalue()


def main() -> None:
    """Bring the catalogue up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--missing", action="store_true", help="List the messages without a translation, and write nothing."
    )
    parsed: Any = parser.parse_args()
    messages = catalogue()
    missing = [each.id for each in messages if each.id and not each.string]
    if parsed.missing:
        print("\n".join(map(str, missing)))
        return
    PO.parent.mkdir(parents=True, exist_ok=True)
    PO.write_bytes(written(messages))
    PO.with_suffix(".mo").write_bytes(compiled(messages))
    print(f"{len(messages)} messages, {len(missing)} without a translation: {PO.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
