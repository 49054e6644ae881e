"""Export traces to the formats of other programs: the published schema, ATIF, and the formats of RL trainers."""
