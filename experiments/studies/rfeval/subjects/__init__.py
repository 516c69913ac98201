"""The models that are measured: how each is loaded and asked, and what it wrote, taken apart."""
