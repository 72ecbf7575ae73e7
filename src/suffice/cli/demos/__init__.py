"""What `suffice demo` shows.

It calls the library as a user does.
"""
