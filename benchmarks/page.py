"""Measure how long a page of `explore --output` takes to open in headless Chromium.

Usage: python benchmarks/page.py PAGE [--times N]

Each time a new browser with a new profile opens the page from disk. The time goes from the start of the navigation
(the page's own time origin) until the map is drawn and two frames have been shown after that.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from contexts.chromium import started_chromium  # noqa: E402

FRAME = "new Promise((done) => requestAnimationFrame(() => done(performance.now())))"
DRAWN = f"shown.then(() => {FRAME}).then(() => {FRAME})"


def opening_milliseconds(page: Path) -> float:
    """Return the time that a new browser takes to open a page and draw its map."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, started_chromium(Path(folder)) as browser:
        browser.send("Page.navigate", url=page.resolve().as_uri())
        while not browser.events_of("Page.loadEventFired"):
            browser.send("Runtime.getIsolateId")  # events come before the answer
        return float(browser.evaluate(DRAWN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path, metavar="PAGE", help="HTML file that explore --output has written")
    parser.add_argument("--times", type=int, default=5, help="how often to open it (default 5)")
    arguments = parser.parse_args()
    print(f"{arguments.page.name}: {arguments.page.stat().st_size / 1e6:.2f} MB")
    times = []
    for _ in range(arguments.times):
        times.append(opening_milliseconds(arguments.page))
        print(f"  map drawn after {times[-1]:,.0f} ms", flush=True)
    print(f"median {statistics.median(times):,.0f} ms, longest {max(times):,.0f} ms")


if __name__ == "__main__":
    main()
