"""python3 man.py FOLDER VERSION HEADER...: a manual page for each public function, from its comment and prototype in the headers.

Functions under one comment share a page, which is found by each of their names. eddy.3 lists the headers and their functions."""

import pathlib
import re
import shutil
import sys

from manual import COMMENT, first_sentence

PROTOTYPE = re.compile(r"EDDY_API\b\s*([^;{}]*?\b(eddy_\w+)\s*\([^;]*\));", re.S)
STRUCT = re.compile(r"typedef struct (eddy_\w+_options) \{\n.*?\n\} \1;", re.S)


class Page:
    """One comment and the functions under it."""

    def __init__(self, comment):
        self.comment, self.names, self.prototypes = comment, [], []

    def add(self, name, prototype):
        self.names.append(name)
        self.prototypes.append(" ".join(prototype.split()))


def plain(comment):
    return " ".join(line.strip().removeprefix("*").strip() for line in comment.split("\n")).strip()


def roff(text):
    """Escapes a text, so that it has no requests and escapes, and hyphens that a search finds."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def pages_of(text):
    """The pages of a header. A function belongs to the last comment before it; headings and the header's first comment do not count."""
    comments = [(m.end(), plain(m.group(1))) for m in COMMENT.finditer(text) if m.start() and not m.group(1).startswith(" ----")]
    bare = COMMENT.sub(lambda m: " " * len(m.group(0)), text)
    pages, end = [], 0
    for match in PROTOTYPE.finditer(bare):
        place, comment = max((c for c in comments if c[0] <= match.start()), default=(0, ""))
        if place > end or not pages:
            pages.append(Page(comment))
        pages[-1].add(match.group(2), match.group(1))
        end = match.end()
    return pages


def structs_of(text):
    return {m.group(1): m.group(0) for m in STRUCT.finditer(text)}


def head(name, version):
    return f'.TH {name.upper()} 3 "" "eddy {version}" "Eddy"\n'


def page_text(page, header, structs, version):
    lines = [head(page.names[0], version) + ".SH NAME", f"{', '.join(page.names)} \\- {roff(first_sentence(page.comment).rstrip('.') or header)}",
             ".SH SYNOPSIS", ".nf", f"#include <eddy/{header}>", ""]
    wanted = [structs[name] for name in structs if any(re.search(rf"\b{name}\b", p) for p in page.prototypes)]
    lines += [roff(text) + "\n" for text in wanted]
    lines += [roff(p) + ";" for p in page.prototypes]
    lines += [".fi", ".SH DESCRIPTION", roff(page.comment), ".SH SEE ALSO", ".BR eddy (3)"]
    return "\n".join(lines) + "\n"


def overview(headers, version):
    """The page eddy.3. headers: (name, first comment, names of its functions) of each header."""
    lines = [head("eddy", version) + ".SH NAME", "eddy \\- an eager tensor runtime for C", ".SH SYNOPSIS", "#include <eddy/eddy.h>",
             ".SH DESCRIPTION", "Each function has a page of its own. By header:"]
    for header, what, names in headers:
        lines += [f".SS <eddy/{header}>", roff(what), ".PP", roff(", ".join(names))]
    return "\n".join(lines) + "\n"


def write_all(folder, version, headers):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    told = []
    for path in headers:
        text = path.read_text(encoding="utf-8")
        pages = pages_of(text)
        if not pages:
            continue
        structs = structs_of(text)
        for page in pages:
            first, *others = page.names
            (folder / f"{first}.3").write_text(page_text(page, path.name, structs, version), encoding="utf-8")
            for name in others:
                (folder / f"{name}.3").write_text(f".so man3/{first}.3\n", encoding="utf-8")
        about = next(t for t in (plain(m.group(1)) for m in COMMENT.finditer(text)) if not t.startswith("Generated"))
        told.append((path.name, about, [name for page in pages for name in page.names]))
    (folder / "eddy.3").write_text(overview(told, version), encoding="utf-8")


def main(argv):
    if len(argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    write_all(pathlib.Path(argv[1]), argv[2], [pathlib.Path(path) for path in argv[3:]])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
