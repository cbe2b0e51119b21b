"""Tables: how rows are read, the statistics of a table, and their release."""
