"""Faults, one module per kind."""
