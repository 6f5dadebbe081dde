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
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No window; 10 seconds of the page's own time to draw, however slow the machine is.
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
OPTIONS += ("--virtual-time-budget=10000", "--window-size=1280,640")
COLOURS, MOST_BYTES = 200, 150_000
# What the address of the page says in each picture.
STATES = {
    "explore": {"map": "tsne", "word": "花"},
    "explore-line": {"map": "tsne", "word": "花", "occurrence": 3},
}


def take_picture(browser: str, address: str, picture: Path, folder: Path) -> None:
    """Save what a browser shows at an address, with few colours; exit if it fails, or the picture is too large."""
    taken = folder / "taken.png"
    taken.unlink(missing_ok=True)
    command = [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--screenshot={taken}", address]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if not taken.exists():
        sys.exit(f"Error: {browser} took no picture: {done.stderr.strip()[-500:]}")
    with Image.open(taken) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
    if picture.stat().st_size > MOST_BYTES:
        sys.exit(f"Error: {picture} has more than {MOST_BYTES:,} bytes. Lower COLOURS in docs/pictures.py.")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("runs/sample"), help="Finished run on the sample.")
    run = parser.parse_args().run
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Error: there is no Chromium. On Debian type: sudo apt-get install chromium fonts-noto-cjk")
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "page.html"
        explore = [sys.executable, "-m", "elmo_zh", "explore", str(run), "--output", str(page)]
        subprocess.run(explore, cwd=ROOT, check=True)
        for language in ("en", "zh"):
            for state, shown in STATES.items():
                address = f"{page.as_uri()}#{urlencode({'lang': language, **shown})}"
                take_picture(browser, address, ROOT / "docs" / "pictures" / f"{state}.{language}.png", Path(name))


if __name__ == "__main__":
    main()
