"""From user input to rows of numbers: tables, several sources, files, chunks, data sets."""
