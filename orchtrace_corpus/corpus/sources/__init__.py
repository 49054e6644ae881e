"""Services outside: how they are asked, and how their answers are read."""
