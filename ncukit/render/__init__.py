"""What a person or a script is shown: results become one plain view, and each renderer prints that view.

What belongs here: words, number formatting, figures as plain dicts, templates' data.  Not here: reading
reports, arithmetic on counters, rules.
"""
