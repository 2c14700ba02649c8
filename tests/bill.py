"""`python -m tests.bill [--write]`: the bill of materials of what is installed for a user, `sbom.cdx.json`.

CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/): the distribution, what it needs and what its extras need, all of
it, at the pinned versions and for Linux, as package URLs (https://github.com/package-url/purl-spec).
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
BILL = ROOT / "sbom.cdx.json"
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0", "implementation_name": "cpython"}


def bill() -> str:
    """The document, as it is in the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(pinned())
    extras = {name: texts for name, texts in project["optional-dependencies"].items() if name not in ("all", "dev")}
    core = _needed(project["dependencies"])
    needed = _needed([*project["dependencies"], *(text for texts in extras.values() for text in texts)])
    purls = {name: f"pkg:pypi/{name}@{pins[name]}" for name in needed if name}
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": purls[name],
                "name": name,
                "version": pins[name],
                "scope": "required" if name in core else "optional",
                "licenses": _licences(name),
                "purl": purls[name],
            }
            for name in sorted(purls)
        ],
        "dependencies": [
            {"ref": purls.get(name, own), "dependsOn": [purls[other] for other in sorted(others)]}
            for name, others in sorted(needed.items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _needed(texts: Sequence[str]) -> dict[str, set[str]]:
    """What each distribution needs directly, by its name; "" is our own."""
    needed: dict[str, set[str]] = {"": set()}
    waiting = [("", Requirement(text)) for text in texts]
    while waiting:
        by, requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if not by and not _holds(requirement, ""):
            continue
        needed[by].add(name)
        known = needed.setdefault(name, set())
        inner = [Requirement(text) for text in distribution(name).requires or ()]
        extras = ("", *requirement.extras)
        held = [one for one in inner if any(_holds(one, extra) for extra in extras)]
        waiting += [(name, one) for one in held if canonicalize_name(one.name) not in known]
    return needed


def pinned() -> Iterator[tuple[str, str]]:
    """Names and versions of constraints.txt."""
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, equals, version = line.partition("==")
        if equals:
            yield canonicalize_name(name), version.strip()


def _holds(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    return marker is None or marker.evaluate({**LINUX, **PYTHON, "extra": extra})


def _licences(name: str) -> list[dict[str, Any]]:
    """What the distribution says of itself: an SPDX expression, else a short name."""
    told = cast("Any", distribution(name).metadata)  # an email.message.Message, which its protocol does not say
    if expression := told.get("License-Expression"):
        return [{"expression": expression}]
    classified = [line.rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if line.startswith("License")]
    text = classified[0] if classified else re.split(r"[\n;,]", told.get("License") or "")[0].strip()
    return [{"license": {"name": text[:80]}}] if text else []


def main() -> int:
    """Write it, or say whether it is up to date."""
    if "--write" in sys.argv[1:]:
        BILL.write_text(bill())
        return 0
    return int(not BILL.exists() or BILL.read_text() != bill())


if __name__ == "__main__":
    sys.exit(main())
