"""Lowering rules for ATen operators, one file per family."""
