"""The package's long description: README.md with links that mean the same away from the repository.

An index shows the README alone, so a link to ``docs/solve.md`` would lead nowhere there. Hatchling calls this when it
builds. With ``Repository`` among ``[project.urls]`` such links become addresses in that repository, at the tag of the
version; without it they become words with the file's path, as it lies in the source distribution, and pictures are left
out with their captions. Addresses that are whole stay as they are.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
"""A link or a picture of Markdown."""
CAPTION = re.compile(r"^!\[[^\]]*\]\((?![a-z][a-z0-9+.-]*:)[^)\s]+\)\n\n\*[^*].*?[^*]\*\n\n", re.MULTILINE | re.DOTALL)
"""A picture of the repository on a line of its own, and the paragraph in italics below it."""
WHOLE = re.compile(r"[a-z][a-z0-9+.-]*:|#")
"""How an address begins that means the same everywhere, or on the page itself."""
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def long_description(readme: str, repository: str | None, version: str) -> str:
    """The README for an index: relative links point into the repository, or name the file where none is known."""

    def elsewhere(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        if WHOLE.match(target):
            return found.group()
        if repository is None:
            return "" if picture else text if target in text else f"{text} ({target})"
        kind = "raw" if picture else "blob"
        return f"{picture}[{text}]({repository.rstrip('/')}/{kind}/v{version}/{target})"

    parts = FENCE.split(readme if repository is not None else CAPTION.sub("", readme))
    return "".join(part if part.startswith("```") else LINK.sub(elsewhere, part) for part in parts)


class LongDescription(MetadataHookInterface):
    """Hatchling's way to fill in what ``pyproject.toml`` calls dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Set ``readme``, which is dynamic."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        text = long_description(readme, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
