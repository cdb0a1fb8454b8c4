#!/bin/sh
# Makes build/. Exit status 1, with a sentence, if a file in it is not writable, since an earlier run was as root.
set -eu
case "${1:-}" in
--help | -h)
    sed -n '2s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
cd "$(dirname "$0")/.."

mkdir -p build
locked=$(find build -maxdepth 2 ! -type l ! -writable -print -quit)
[ -z "$locked" ] && exit 0
echo "$locked belongs to another user: delete build/ as that user, or go on as that user" >&2
exit 1
