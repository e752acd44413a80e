"""``p4gen diff``: the modules of one program that another one reuses, changes and adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.options import flags_of, json_option, report_console, spec_flags, specs_from
from p4gen.cli.verb import verb
from p4gen.program.reuse import Count, Fate, Reuse, compare
from p4gen.vocabulary import ProgramSpec

_COLORS = {Fate.REUSED: "green", Fate.CHANGED: "yellow", Fate.ADDED: "cyan", Fate.REMOVED: "red"}


@verb(
    examples=[
        ("--mode II --mode III", "what Mode III reuses from Mode II"),
        ("--lanes 64 --op sum --op max --diff", "and the differences, line by line"),
        ("--lanes 16 --icrc ignore --arch v1model --arch t2na", "what programs of two architectures share"),
    ]
)
@click.argument("spec_files", metavar="[BEFORE.yaml [AFTER.yaml]]", nargs=-1, type=click.Path(path_type=Path))
@lambda function: spec_flags(function, multiple=True)
@json_option
@click.option("--diff", "show_diff", is_flag=True, help="Show the differences in the parts that changed.")
def command(spec_files: tuple[Path, ...], as_json: bool, show_diff: bool, **flags: tuple[str, ...]) -> None:
    """Compare two generated programs, module by module: what is reused, changed, added and removed.

    A flag given twice is for the first program, then for the second; given once, it is for both:
    p4gen diff --mode II --mode III --lanes 64. One file is for both, too.
    """
    before, after = _specs(spec_files, flags)
    reuse = compare(before, after)
    console = report_console(quiet=as_json)
    if as_json:
        click.echo(json.dumps(_summary(reuse, show_diff=show_diff)))
        return
    _report(reuse, console)
    if show_diff:
        _diffs(reuse, console)


def _specs(files: tuple[Path, ...], flags: dict[str, tuple[str, ...]]) -> tuple[ProgramSpec, ProgramSpec]:
    asked = max(len(files), *map(len, flags.values()))
    if asked > 2:
        raise click.UsageError(f"two programs are compared, not {asked}")
    found = specs_from(files, flags)
    if len(found) < 2 or found[0] == found[1]:
        raise click.UsageError("both programs are the same; give a flag twice, as in --mode II --mode III")
    return found[0], found[1]


def _report(reuse: Reuse, console: Console) -> None:
    console.print(f"from {_named(reuse.before)}\nto   {_named(reuse.after)}\n", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("module", "", "template"):
        table.add_column(title)
    for title in ("its lines", "P4 before", "P4 after", "in both"):
        table.add_column(title, justify="right")
    for modules in (True, False):
        for c in (c for c in reuse.parts if c.part.module is modules):
            lines = [str(len(part.lines)) if part else "" for part in (c.before, c.after)]
            fate = f"[{_COLORS[c.fate]}]{c.fate}[/]"
            table.add_row(c.part.name, fate, c.part.template, str(c.part.template_lines), *lines, str(c.kept or ""))
        table.add_section()
    console.print(table)
    console.print()
    for what, count in _counts(reuse).items():
        console.print(
            f"{what}: {count.same} of {count.of_before} before, {count.share:.0%}; "
            f"of {count.of_after} after, {count.share_after:.0%}"
        )
    if reuse.before.arch != reuse.after.arch:
        shared, around = reuse.same_templates
        console.print(
            f"the same template: {len(shared)} modules ({', '.join(shared)}), {len(around)} other parts "
            f"({', '.join(around)})",
            markup=False,
            soft_wrap=True,
        )
    if reuse.paper is not None:
        sentence, _ = reuse.paper
        console.print(f"\nThe paper (section 7.2, Evolvability; host library and controller included):\n  {sentence}")


def _named(spec: ProgramSpec) -> str:
    return f"{spec.program} ({' '.join(flags_of(spec))})"


def _counts(reuse: Reuse) -> dict[str, Count]:
    return {
        "modules with the same text": reuse.modules,
        "lines of P4 in parts with the same text": reuse.reused_lines,
        "lines of P4 that occur in both": reuse.kept_lines,
        "lines of templates that serve both": reuse.template_lines,
    }


def _diffs(reuse: Reuse, console: Console) -> None:
    for c in reuse.parts:
        if c.fate is Fate.CHANGED:
            console.print()
            for line in c.diff():
                color = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
                console.print(line, style=color, markup=False)


def _summary(reuse: Reuse, *, show_diff: bool) -> dict[str, Any]:
    parts = [
        {
            "name": c.part.name,
            "module": c.part.module,
            "fate": str(c.fate),
            "template": c.part.template,
            "template_lines": c.part.template_lines,
            "lines_before": len(c.before.lines) if c.before else None,
            "lines_after": len(c.after.lines) if c.after else None,
            "lines_in_both": c.kept,
        }
        | ({"diff": "\n".join(c.diff())} if show_diff and c.fate is Fate.CHANGED else {})
        for c in reuse.parts
    ]
    counts = {
        name: {
            "same": c.same,
            "before": c.of_before,
            "after": c.of_after,
            "share": c.share,
            "share_after": c.share_after,
        }
        for name, c in (
            ("modules", reuse.modules),
            ("reused_lines", reuse.reused_lines),
            ("lines_in_both", reuse.kept_lines),
            ("template_lines", reuse.template_lines),
        )
    }
    paper = {"paper": dict(zip(("sentence", "share"), reuse.paper, strict=True))} if reuse.paper else {}
    specs = {"before": reuse.before.resolved(), "after": reuse.after.resolved()}
    return specs | {"parts": parts} | counts | paper
