"""The browser of the user."""

import os
import sys
import webbrowser
from threading import Event, Thread

_WAIT_SECONDS = 1.0


def open_in_browser(address: str) -> bool:
    """Open an address in the user's browser, and return whether there is one.

    Where there is no screen only a browser of the terminal could open, which would take the terminal over, so none is
    opened unless $BROWSER names one.
    """
    if sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    # Some browsers keep the caller waiting until they are closed. One that cannot be started is back at once.
    failed = Event()

    def open_page() -> None:
        if not browser.open(address):
            failed.set()

    opening = Thread(target=open_page, daemon=True)
    opening.start()
    opening.join(_WAIT_SECONDS)
    return not failed.is_set()
