"""What goes out: values as text and HTML, the line of what is under way, what the command line prints, files written as a whole.

It may use errors only. Start with `display`; `terminal` has the line and the command line's, `files` what is renamed.
"""
