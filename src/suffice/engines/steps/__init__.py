"""What is done to rows: blocks of them, steps over blocks, sums of what steps make; bits, and threads over blocks.

It knows no source and no engine. Start with `blocks`.
"""
