"""The page over a folder of runs and reports: every kernel of every report, one roofline a GPU, histories.

What belongs here: choosing, ordering and wording what that page shows.  Not here: looking through the folder
(`ncukit.dataset.survey`), the parts that it shares with the page of a report (`ncukit.render.view`).
"""
