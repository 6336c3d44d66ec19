"""How the wheel is tried in environments of its own: every Python, every way to install it."""
