"""A picture or a film that a notebook displays."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from pathlib import Path

from pixelpong.run.files import write_whole


@dataclass(frozen=True)
class Media:
    """A picture (PNG) or a film (MP4) with its title, for display in a notebook."""

    content: bytes
    title: str

    def _repr_html_(self) -> str:
        data, title = base64.b64encode(self.content).decode(), html.escape(self.title)
        if self.content.startswith(b"\x89PNG"):
            style = "width: 50em; max-width: 100%"
            return f'<img alt="{title}" style="{style}" src="data:image/png;base64,{data}">'
        return (
            '<video controls autoplay muted loop playsinline style="max-width: 100%" '
            f'src="data:video/mp4;base64,{data}"></video><br><small>{title}</small>'
        )

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self.content):,} bytes; .save(path)>"

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        write_whole(Path(path), self.content)
