"""Judging reasoning from outside: what a judge is asked, what it replied, who can be a judge."""
