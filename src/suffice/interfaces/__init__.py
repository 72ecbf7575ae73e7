"""Interfaces: how Suffice is reached and what people look at. Public modules by topic, the command line, adapters for
scikit-learn, the explorer and reports.

They may use every room below, which never use them. Start with `topics` for what users import, `cli/app` for the command line.
"""
