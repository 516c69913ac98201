"""The error a user can act on: named thing, value, remedy; no traceback in the CLI."""


class UserError(ValueError):
    """Bad input or a setting that cannot work here; the message says what to do."""
