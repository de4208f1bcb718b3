"""The structure of SARIF 2.1.0 as far as `ptc` uses it: the properties that each object may and must have, and what they hold."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Check = Callable[[Any, str], Iterator[str]]


def text(value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{at} is no text"


def number(least: int) -> Check:
    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            yield f"{at} is no integer of at least {least}"

    return check


def one_of(*values: str) -> Check:
    def check(value: Any, at: str) -> Iterator[str]:
        if value not in values:
            yield f"{at} is {value!r}, and one of {values} is allowed"

    return check


def many(kind: str) -> Check:
    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{at} is no array"
            return
        for i, item in enumerate(value):
            yield from problems(item, kind, f"{at}[{i}]")

    return check


def an(kind: str) -> Check:
    return lambda value, at: problems(value, kind, at)


# Object -> (required properties, property -> check), from the schema of the OASIS standard.
OBJECTS: dict[str, tuple[frozenset[str], dict[str, Check]]] = {
    "sarifLog": (frozenset({"version", "runs"}), {"$schema": text, "version": one_of("2.1.0"), "runs": many("run")}),
    "run": (frozenset({"tool"}), {"tool": an("tool"), "results": many("result"),
                                  "columnKind": one_of("utf16CodeUnits", "unicodeCodePoints")}),
    "tool": (frozenset({"driver"}), {"driver": an("toolComponent")}),
    "toolComponent": (frozenset({"name"}), {"name": text, "version": text, "informationUri": text, "rules": many("reportingDescriptor")}),
    "reportingDescriptor": (frozenset({"id"}), {"id": text, "shortDescription": an("multiformatMessageString"),
                                                "fullDescription": an("multiformatMessageString"), "help": an("multiformatMessageString")}),
    "multiformatMessageString": (frozenset({"text"}), {"text": text, "markdown": text}),
    "result": (frozenset({"message"}), {"ruleId": text, "ruleIndex": number(0), "level": one_of("none", "note", "warning", "error"),
                                        "message": an("message"), "locations": many("location"), "relatedLocations": many("location"),
                                        "fixes": many("fix")}),
    "message": (frozenset({"text"}), {"text": text, "markdown": text}),
    "location": (frozenset(), {"physicalLocation": an("physicalLocation"), "message": an("message")}),
    "physicalLocation": (frozenset({"artifactLocation"}), {"artifactLocation": an("artifactLocation"), "region": an("region")}),
    "artifactLocation": (frozenset(), {"uri": text, "uriBaseId": text}),
    "region": (frozenset({"startLine"}), {n: number(1) for n in ("startLine", "startColumn", "endLine", "endColumn")}),
    "fix": (frozenset({"artifactChanges"}), {"description": an("message"), "artifactChanges": many("artifactChange")}),
    "artifactChange": (frozenset({"artifactLocation", "replacements"}), {"artifactLocation": an("artifactLocation"),
                                                                         "replacements": many("replacement")}),
    "replacement": (frozenset({"deletedRegion"}), {"deletedRegion": an("region"), "insertedContent": an("artifactContent")}),
    "artifactContent": (frozenset(), {"text": text}),
}


def problems(value: Any, kind: str = "sarifLog", at: str = "log") -> Iterator[str]:
    """What is wrong with a document, each with its place."""
    required, known = OBJECTS[kind]
    if not isinstance(value, dict):
        yield f"{at} is no object"
        return
    for name in sorted(required - value.keys()):
        yield f"{at} has no {name}"
    for name, held in value.items():
        if name not in known:
            yield f"{at} has the property {name}, which a {kind} does not have"
        else:
            yield from known[name](held, f"{at}.{name}")
    if kind == "region" and "endLine" in value and (value["endLine"], value.get("endColumn", 1 << 30)) < (
            value.get("startLine", 1), value.get("startColumn", 1)):
        yield f"{at} ends before it starts"
    if kind == "run":
        rules = [r.get("id") for r in value.get("tool", {}).get("driver", {}).get("rules", [])]
        for i, result in enumerate(value.get("results", [])):
            if "ruleIndex" in result and rules[result["ruleIndex"]:result["ruleIndex"] + 1] != [result.get("ruleId")]:
                yield f"{at}.results[{i}] names another rule than its index"
