"""Tiny language models whose use of their own reasoning is known by construction."""
