"""Credit: how much of a run's reward is due to which token, turn, message, call, agent, role, orchestrator or team."""
