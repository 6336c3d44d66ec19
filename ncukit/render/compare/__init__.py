"""A comparison shown: page, terminal, Markdown, JSON, JUnit XML, annotations of a pull request."""
