"""Formulas and random distributions in place of plain values."""
