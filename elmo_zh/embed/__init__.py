"""From text to vectors with a bundle."""
