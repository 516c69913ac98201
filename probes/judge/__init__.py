"""Judging of reasoning from outside: forms of questions, replies, and kinds of judges."""
