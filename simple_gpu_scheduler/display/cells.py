"""How wide text is on a terminal, where a wide character counts as two; most text has none, and is simply counted."""


def cell_len(text: str) -> int:
    """In how many cells it is shown."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - with its tables of characters 4 ms

    return cell_len(text)


def set_cell_size(text: str, cells: int) -> str:
    """Cut or filled with blanks to this many cells."""
    from rich.cells import set_cell_size  # noqa: PLC0415 - see above

    return set_cell_size(text, cells)
