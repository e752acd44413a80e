"""``p4gen schema``: the JSON Schema of a spec file, for editors."""

from __future__ import annotations

import json

import click

from p4gen.cli.verb import verb
from p4gen.families import families
from p4gen.vocabulary.program import DEFAULT_FAMILY


@verb(
    examples=[
        ("", "to a file: p4gen schema >p4gen.schema.json"),
    ]
)
def command() -> None:
    """Print the JSON Schema of a spec file.

    Editors with a YAML language server use it from a first line such as
    "# yaml-language-server: $schema=p4gen.schema.json".
    """
    described = families()[DEFAULT_FAMILY].spec.model_json_schema()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | described
    click.echo(json.dumps(schema, indent=2))
