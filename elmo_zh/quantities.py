"""Durations and sizes for people."""


def format_seconds(seconds: float) -> str:
    """Return a duration: 45 s, 12 min, 3.4 h, 21 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:,.0f} days"


def format_bytes(num_bytes: float) -> str:
    """Return a size: 1.5 kB, 22.0 MB, 3.4 GB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes / 1e3:,.1f} kB"
