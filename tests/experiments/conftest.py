"""What every test of experiments runs under."""

import quick_figures  # noqa: F401
