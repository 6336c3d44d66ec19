"""Operators of a torch trace, and ranks beside each other: one view each, shown as page, text and JSON."""
