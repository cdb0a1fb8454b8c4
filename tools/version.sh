#!/bin/sh
# Prints the version that include/eddy/version.h states.
set -eu
case "${1:-}" in
--help | -h)
    sed -n '2s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
sed -n 's/^#define EDDY_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$(dirname "$0")/../include/eddy/version.h" |
    paste -sd . -
