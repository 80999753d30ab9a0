"""A terminal's screen -> an SVG, as rich draws it. Pure: it knows no terminal and no file."""

import io
import re

from rich.console import Console
from rich.text import Text

# rich's own, without its comment and its fonts, which have addresses: the viewer has a monospaced one.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
  <style>
    .{unique_id}-matrix {{
      font-family: "Fira Code", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
      font-size: {char_height}px;
      line-height: {line_height}px;
      font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{
      font-size: 18px;
      font-weight: bold;
      font-family: Arial, Helvetica, "Liberation Sans", sans-serif;
    }}
    {styles}
  </style>
  <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
    </clipPath>
    {lines}
  </defs>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
  </g>
</svg>
"""  # noqa: E501 - a line of CSS


def draw(screen: str, columns: int, name: str, title: str = "simple_gpu_scheduler") -> str:
    """A screen with its escape codes, so many columns wide, as an SVG; `name` is that of its styles."""
    console = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
    )
    for line in Text.from_ansi(screen).split("\n", allow_blank=True):
        console.print(line, no_wrap=True, overflow="crop", crop=True, highlight=False)
    svg = console.export_svg(title=title, code_format=FORMAT, unique_id=name)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
