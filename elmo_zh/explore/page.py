"""The page as a single, self-contained HTML file."""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from elmo_zh.errors import ElmoZhError, OutputError
from elmo_zh.invocation import install_line
from elmo_zh.language import _, chosen_language
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import format_bytes

# A larger page is slow to open and to send to others.
MOST_BYTES = 20_000_000
_HERE = files("elmo_zh.explore")


def write_page(data: Mapping[str, Any], path: Path) -> int:
    """Write a page, and return its size in bytes; raise OutputError if it is larger than `MOST_BYTES`."""
    content = build_page(data).encode()
    if len(content) > MOST_BYTES:
        raise OutputError(
            _(
                "{path} would have {content}, more than {MOST_BYTES}. Lower --max-per-word, or choose"
                " fewer words with --word or --num-words."
            ).format(path=path, content=format_bytes(len(content)), MOST_BYTES=format_bytes(MOST_BYTES))
        )
    with atomic_path(path) as unfinished:
        unfinished.write_bytes(content)
    return len(content)


def build_page(data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return the HTML of a page; if `live`, it can ask its server about sentences.

    Its content security policy allows only this page's scripts, by digest, so that a corpus cannot bring its own.
    """
    scripts = [*_bokeh_scripts(), _read("page.texts.js"), _read("page.js")]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{digest}'" for digest in digests),
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(_read("page.html")).substitute(
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=_read("page.css"),
        data=embedded_json({**data, "live": live, "language": chosen_language()}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside an HTML script element: without <, it can neither end nor start an element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def check_packages() -> None:
    """Raise ElmoZhError if a package that only the page needs is not installed."""
    for module, package in (("bokeh", "bokeh"), ("sklearn", "scikit-learn")):
        if find_spec(module) is None:
            raise ElmoZhError(
                _("explore needs {package}. Install it with: {value}").format(
                    package=package, value=install_line("explore")
                )
            )


def _bokeh_scripts() -> list[str]:
    from bokeh.resources import Resources

    found: list[str] = Resources(mode="inline", components=["bokeh", "bokeh-api"]).js_raw
    # HTML parsers end lines with \n alone, before the browser computes a digest.
    return [script.replace("\r\n", "\n").replace("\r", "\n") for script in found]


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
