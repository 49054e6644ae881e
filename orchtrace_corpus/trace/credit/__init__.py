"""Credit: the division of a run's reward among tokens, turns, messages, tool calls, agents, roles or the team."""
