"""Models for labelled tasks on top of a bundle: text classification and regression, tagging, text pairs."""
