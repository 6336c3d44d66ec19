"""The page of a run: the report of its launch, with clean time, timeline, isolation proof and commands.

``load`` reads a run directory, ``parts`` turns it into the view of the page, ``page`` writes it.
"""
