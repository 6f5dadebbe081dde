"""Take the pictures of `explore`'s page in docs/pictures, in English and in Chinese: `make pictures`.

It needs the model that `make train` makes of the sample (or RUN=runs/NAME), and Chromium with Chinese glyphs: on Debian
`apt-get install chromium fonts-noto-cjk`. The page is made by the command that README shows, and coloured
by the senses of data/senses.tsv.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SHOWN = "花"
COLOURS = 200
MOST_BYTES = 150_000
# Milliseconds of the page's own time: enough to draw it, however slow the machine is.
TIME_BUDGET = 10_000
STATES = {
    "explore": {"size": "1280,640", "address": {"map": "tsne"}},
    "explore-line": {"size": "1280,640", "address": {"map": "tsne", "occurrence": 3}},
}


def make_page(run: Path, folder: Path) -> Path:
    """Make the page with the marked senses, and return its path."""
    page = folder / "page.html"
    command = [sys.executable, "-m", "elmo_zh", "explore", str(run), "--output", str(page)]
    subprocess.run(command, cwd=ROOT, check=True)
    return page


def take_picture(browser: str, address: str, size: str, picture: Path, folder: Path) -> None:
    """Save what a browser without a window shows at an address, with few colours.

    Raises:
        SystemExit: If the browser fails, or the picture is too large.
    """
    taken = folder / "taken.png"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    options += [f"--user-data-dir={folder / 'profile'}", f"--virtual-time-budget={TIME_BUDGET}"]
    options += [f"--window-size={size}", f"--screenshot={taken}"]
    done = subprocess.run([browser, *options, address], capture_output=True, encoding="utf-8", errors="replace")
    if not taken.exists():
        sys.exit(f"Error: {browser} took no picture: {done.stderr.strip()[-500:]}")
    with Image.open(taken) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
    taken.unlink()
    num_bytes = picture.stat().st_size
    if num_bytes > MOST_BYTES:
        sys.exit(
            f"Error: {picture} has {num_bytes:,} bytes, more than {MOST_BYTES:,}. Lower COLOURS in docs/pictures.py."
        )
    print(f"{picture.relative_to(ROOT)}: {num_bytes:,} bytes")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("runs/sample"), help="Finished run on the sample.")
    run = parser.parse_args().run
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Error: there is no Chromium. On Debian type: sudo apt-get install chromium fonts-noto-cjk")
    if not (ROOT / run / "model").is_dir():
        sys.exit(f"Error: {run} has no model. Make it with: make train")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        page = make_page(run, Path(name))
        for language in ("en", "zh"):
            for state, shown in STATES.items():
                asked = urlencode({"lang": language, "word": SHOWN, **shown["address"]})
                picture = PICTURES / f"{state}.{language}.png"
                take_picture(browser, f"{page.as_uri()}#{asked}", shown["size"], picture, Path(name))


if __name__ == "__main__":
    main()
