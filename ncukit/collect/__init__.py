"""Plan a run (pure: options to command lines), then carry it out step by step into a run directory.

``options`` says what a user can ask for; ``target`` what is measured; ``presets`` what ncu collects; ``plan``
builds command lines; ``directory`` keeps files whole; ``carry`` does the steps; ``isolation`` proves that
what was captured is what was chosen.  Nothing here concludes or draws: the launch is chosen by a function
that the caller gives.
"""
