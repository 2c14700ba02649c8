"""`toolkit doctor`: what this machine has, and how to get what it lacks."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from toolkit_core.cli.console import Style, say
from toolkit_core.cli.examining import Finding, examine

HELP = "show what this machine has, and how to get what it lacks"

_MARKS: dict[str, tuple[str, Style]] = {"ok": ("ok", "good"), "lacking": ("--", "faint"), "broken": ("!!", "bad")}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(options: argparse.Namespace) -> int:
    """Show the findings; 1 where something that the default tools need is broken."""
    findings = examine()
    if options.json:
        say(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        _show(findings)
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def _show(findings: list[Finding]) -> None:
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            say(f"\n{group}", "title")
        mark, style = _MARKS[finding.state]
        say(f"  {mark}  {finding.name:<18} {finding.detail}", style if finding.state != "ok" else "")
        if finding.advice:
            say(f"      {'':<18} {finding.advice}")
