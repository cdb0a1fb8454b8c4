#!/bin/sh
# Installs clang and the runtimes of its sanitizers, where they are missing.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
--help | -h)
    sed -n '2s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

tools/packages.sh clang
major=$(clang -dumpversion | cut -d. -f1)
tools/packages.sh "libclang-rt-$major-dev"
