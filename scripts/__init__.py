"""Programs of this checkout: pages and tables made from the code, and the run on a real GPU."""
