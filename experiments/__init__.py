"""Data -> traces -> probes -> tables and figures; the `faithscope` command."""
