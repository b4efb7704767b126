"""Facts about models as plain data, and how they are shown. Numbers come from elsewhere."""
