"""From what a user has to rows of numbers: tables, several sources, files, chunks, data sets."""
