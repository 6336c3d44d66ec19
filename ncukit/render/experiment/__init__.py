"""An experiment as one plain view, and what shows it: text, JSON, a page."""
