"""Facts about models as plain data, and their renderers. Other packages compute the numbers."""
