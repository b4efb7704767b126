"""Files of tables: what their columns are taken for, and what cannot work is refused."""
