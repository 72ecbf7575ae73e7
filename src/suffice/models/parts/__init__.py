"""What a network of rows is, and what all models remember: its parts, the numbered factors that questions go through.

It uses families and inference. Start with `network_parts`.
"""
