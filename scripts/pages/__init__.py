"""What writes the generated pages of docs/, one module a page."""
