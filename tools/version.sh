#!/bin/sh
# Prints the version that include/eddy/version.h states.
set -eu
sed -n 's/^#define EDDY_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$(dirname "$0")/../include/eddy/version.h" |
    paste -sd . -
