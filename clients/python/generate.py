"""Writes refold/api.py, the types of the HTTP API, from web/openapi.json, and
what is not asynchronous from what is:

    python3 generate.py          writes them
    python3 generate.py --check  fails if they are not what would be written
"""

import json
import keyword
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
SCHEMAS = json.loads((HERE / "../../web/openapi.json").read_text("utf-8"))["components"]["schemas"]

# What servers answer. Bodies of requests are arguments of methods.
ANSWERS = ["Call", "UsageTotal", "RunState", "RunAccepted", "Update", "PackShown", "ParentCall", "Approval", "Question", "Schedule",
           "SessionRow", "Blob", "Taken", "Redacted"]

# The position of an update is the id of its event, and no part of its JSON.
EXTRA = {"Update": {"position": {"type": "string", "description": "Where it stands: updates go on after it. Opaque."}}}

HEAD = '''"""The types of the HTTP API.

Written by generate.py from web/openapi.json. Do not edit it.
"""

from dataclasses import dataclass, field
from typing import Any, Literal
'''


def resolve(schema):
    while "$ref" in schema:
        name, *rest = schema["$ref"].removeprefix("#/components/schemas/").split("/")
        if not rest:
            return name, None
        schema = SCHEMAS[name]
        for key in rest:
            schema = schema[key]
    return None, schema


def type_of(schema):
    """The type of a schema as Python writes it, and the value of an absent field."""
    name, schema = resolve(schema)
    if name:
        return name, "None"
    if "enum" in schema:
        return "Literal[" + ", ".join(json.dumps(v) for v in schema["enum"]) + "]", "None"
    if "const" in schema:
        return type(schema["const"]).__name__, repr(type(schema["const"])())
    kind = schema.get("type")
    if kind == "array":
        return f"list[{type_of(schema['items'])[0]}]", "field(default_factory=list)"
    if kind == "object":
        values = schema.get("additionalProperties")
        of = type_of(values)[0] if isinstance(values, dict) else "Any"
        return f"dict[str, {of}]", "field(default_factory=dict)"
    simple = {"string": ("str", '""'), "integer": ("int", "0"), "number": ("float", "0.0"), "boolean": ("bool", "False")}
    return simple[kind]


def comment(text):
    return "".join(f"    # {line}\n" for line in textwrap.wrap(text or "", 90))


def dataclass_of(name):
    schema = SCHEMAS[name]
    properties = schema["properties"] | EXTRA.get(name, {})
    required = set(schema.get("required", [])) | set(EXTRA.get(name, {}))
    lines = []
    for key in sorted(properties, key=lambda key: (key not in required, key)):
        described = properties[key].get("description") or (resolve(properties[key])[1] or {}).get("description")
        kind, absent = type_of(properties[key])
        attribute = key + "_" if keyword.iskeyword(key) else key
        if key in required:
            lines.append(f"{comment(described)}    {attribute}: {kind}\n")
        else:
            optional = kind + " | None" if absent == "None" else kind
            lines.append(f"{comment(described)}    {attribute}: {optional} = {absent}\n")
    doc = "\n".join(textwrap.wrap(schema["description"], 90, subsequent_indent="    "))
    return f'\n\n@dataclass(frozen=True, kw_only=True)\nclass {name}:\n    """{doc}"""\n\n' + "".join(lines)


text = HEAD + "".join(dataclass_of(name) for name in ANSWERS)



def plain(path, *also):
    """Returns an asynchronous file without async and await."""
    source = (HERE / path).read_text("utf-8")
    for this, by in [*also, ("async def ", "def "), ("async for ", "for "), ("await ", ""), ("Async", "")]:
        source = source.replace(this, by)
    return source


written = {
    "refold/api.py": text,
    "refold/blocking.py": plain(
        "refold/aio.py",
        ("with asyncio.\n", "without asyncio.\n"),
        ("blocking.py is made of this file by generate.py: it is the same without async and await.", "Written by generate.py from aio.py. Do not edit it."),
        ("Each request", "Threads may share it: each request"),
        ("from .aconnections import AsyncConnections\n", ""),
        ("import Token", "import Connections, Token"),
    ),
    "scenarios.py": plain(
        "ascenarios.py",
        ("ascenarios.py", "scenarios.py"),
        ("scenarios.py is the same without asyncio.", "Written by generate.py from ascenarios.py. Do not edit it."),
        ("import asyncio\n", ""),
        ("asyncio.run(main())", "main()"),
    ),
}

if __name__ == "__main__":
    for name, wanted in written.items():
        if "--check" not in sys.argv:
            (HERE / name).write_text(wanted, "utf-8")
        elif (HERE / name).read_text("utf-8") != wanted:
            sys.exit(f"clients/python/{name} is not what generate.py writes: run python3 generate.py")
