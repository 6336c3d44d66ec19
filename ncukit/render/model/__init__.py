"""Analytic models and their bounds, shown: text, JSON, one page."""
