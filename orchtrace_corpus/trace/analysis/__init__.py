"""Labels, marks, outcomes and prices of a trace, and its replay."""
