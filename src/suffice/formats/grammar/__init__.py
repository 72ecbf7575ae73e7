"""What the text formats share: words and numbers with their lines, and the one check of what a file says.

It uses models. Start with `finite_network`.
"""
