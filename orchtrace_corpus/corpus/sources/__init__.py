"""Clients of web services, such as arXiv and OpenAlex, and of git: requests, limits, and readers of the answers."""
