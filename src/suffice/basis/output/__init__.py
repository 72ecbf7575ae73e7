"""What goes out: values as text and HTML, the line of what is under way, what the command line prints, files written as a whole.

It may use errors only. Start with `display`; `status` has the line, `terminal` the command line's, `files` what is renamed.
"""
