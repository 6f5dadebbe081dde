"""Estimate from a sample what a corpus will take: words, time, memory and disk; compare it with the run afterwards."""
