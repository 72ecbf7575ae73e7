"""The command line: `app` has the commands, which stand in `commands`; they read options, call the library once and print.

It may use all of the library, and nothing in the library uses it. Start reading at `app.main`, then `commands/fit.py`.
"""
