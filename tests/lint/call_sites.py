#!/usr/bin/env python3
"""Each public function that can fail is wrapped where a program defines EDDY_CALL_SITES, and nothing else is.

Usage: call_sites.py HEADER..."""
import pathlib
import re
import sys

# They do not fail, or are what the wrapping is made of.
NEVER_FAIL = {
    "eddy_archive_release", "eddy_archive_value", "eddy_call_site_set", "eddy_can_record", "eddy_device_count", "eddy_device_format", "eddy_dtype_bytes",
    "eddy_dtype_name", "eddy_dtype_promote", "eddy_error_take", "eddy_event_release", "eddy_event_retain", "eddy_generator_default", "eddy_live_count",
    "eddy_no_grad_begin", "eddy_leaks_report", "eddy_runtime_release", "eddy_runtime_retain", "eddy_log_set",
    "eddy_status_name", "eddy_status_text", "eddy_stream_release", "eddy_stream_retain", "eddy_version",
    "eddy_version_text",
}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"\bEDDY_API\b([^;{}()]*?)\b(\w+)\s*\(")
WRAPPED = re.compile(r"^#define (\w+)\(\.\.\.\) EDDY_AT_CALL_SITE(_VOID)?\(\1\(__VA_ARGS__\)\)$", re.M)


def main():
    declared, wrapped = {}, {}
    for header in sys.argv[1:]:
        text = re.sub(r"[ \t]*\\\n[ \t]*", " ", COMMENT.sub("", pathlib.Path(header).read_text()))
        wrapped |= {name: bool(void) for name, void in WRAPPED.findall(text)}
        text = re.sub(r"^\s*#.*(\\\n.*)*$", "", text, flags=re.M)
        declared |= {name: returned.split() == ["void"] for returned, name in FUNCTION.findall(text)}
    problems = [f"not wrapped: {name}" for name in sorted(set(declared) - set(wrapped) - NEVER_FAIL)]
    problems += [f"wrapped, though it is none that can fail: {name}" for name in sorted(set(wrapped) & NEVER_FAIL)]
    problems += [f"wrapped, but not declared: {name}" for name in sorted(set(wrapped) - set(declared))]
    problems += [f"wrapped in the form for the other kind of result: {name}" for name, void in sorted(wrapped.items())
                 if declared.get(name, void) != void]
    print("\n".join(problems) or f"{len(wrapped)} functions")
    sys.exit(1 if problems or not wrapped else 0)


main()
