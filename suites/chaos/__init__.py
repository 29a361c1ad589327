"""Experiments: what becomes of jobs while things break, a test each."""
