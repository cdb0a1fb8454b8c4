"""python3 flatten.py OUTPUT DEPFILE FOLDER... -- SOURCE...: writes sources with the project's headers in place of their includes, each once, for NVRTC, which
finds no files (fusion.cuh). Headers of the system are for other compilers. Comments, empty lines and indentation are left out."""

import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s+[<"]([^>"]+)[>"]')
# No string of these headers has a comment's beginning in it.
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def find(name, folders):
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def flatten(path, folders, seen):
    """The lines of a file; `seen`: the files that stand there already."""
    seen.append(path)
    lines = []
    for line in COMMENT.sub(" ", path.read_text(encoding="utf-8")).splitlines():
        include = INCLUDE.match(line)
        if not include:
            lines += [" ".join(line.split())] if line.strip() else []
            continue
        header = find(include.group(1), folders)
        if not header:
            lines += ["#ifndef __CUDACC_RTC__", line.strip(), "#endif"]
        elif header not in seen:
            lines += flatten(header, folders, seen)
    return lines


def main(argv):
    if "--" not in argv[3:-1]:
        print(__doc__, file=sys.stderr)
        return 2
    end = argv.index("--")
    output, depfile, *folders = (pathlib.Path(a) for a in argv[1:end])
    seen, lines = [], []
    for source in argv[end + 1:]:
        lines += flatten(find(source, folders), folders, seen)
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    depfile.write_text(f"{output}: {' '.join(str(s) for s in seen)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
