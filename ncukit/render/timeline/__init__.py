"""A timeline as JSON, text, a page, a section of a report's page, and a trace for Perfetto."""
