"""Names that are made unique: logs call two agents, or two calls, by the same name."""


class Names:
    """Names that were given away; of those that are wanted again, each gets a number behind it."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # the last number that was given to each name, so that none is tried twice

    def new(self, wanted: str) -> str:
        """The name itself, or, where that is given away, with the first number from 2 on that makes it a new one."""
        name, number = wanted, self._last.get(wanted, 0)
        while name in self._last:
            number += 1
            name = f"{wanted}#{number}"
        self._last[wanted] = max(number, 1)
        self._last.setdefault(name, 1)
        return name
