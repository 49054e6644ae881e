"""Logs that are conversations, one thread of steps for each agent."""
