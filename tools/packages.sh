#!/bin/sh
# Installs missing Debian packages, both those that every build needs and the named ones: packages.sh NAME...
# Silent if all are installed. Exit status 1, with a sentence, if they cannot be installed.
set -eu

case "${1:-}" in
--help | -h)
    sed -n '2,3s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

set -- gcc libc6-dev meson ninja-build pkg-config python3 libck-dev libxxhash-dev zlib1g-dev \
    libjansson-dev libyajl-dev libminizip-dev libdnnl-dev libblis-serial-dev "$@"

if ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian system: please install what these packages hold, then build with meson: $*" >&2
    exit 1
fi

missing=
for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

by_hand="As root: apt-get update && apt-get install --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "Packages are missing, and there is neither root nor sudo to install them. $by_hand" >&2
    exit 1
fi

echo "installing$missing"
log=$(mktemp)
life=
trap 'rm -f "$log"; [ -z "$life" ] || kill "$life"' EXIT
# Prints a line every 30 seconds, since the installation may take minutes.
while sleep 30 >/dev/null 2>&1; do echo "installing: $(grep -c '^Setting up' "$log") packages are set up"; done &
life=$!
# shellcheck disable=SC2086  # a list of names, and a prefix that may be empty
install() {
    # A machine that has just started may be installing updates: wait for its lock.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing >"$log" 2>&1
}
# shellcheck disable=SC2086
if ! install; then
    # The package lists of a new machine may be missing or outdated.
    $as_root apt-get update -qq >"$log" 2>&1 || true
    if ! install; then
        tail -n 20 "$log" >&2
        echo "The packages could not be installed. $by_hand" >&2
        exit 1
    fi
fi
