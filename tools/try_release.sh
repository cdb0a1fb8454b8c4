#!/bin/sh
# Tries Eddy on a newly installed release of Debian: try_release.sh bookworm|trixie
#
# Makes a minimal root of the release in a temporary folder (debootstrap, from the mirror that apt uses here), copies the source
# there without git, and runs in it the commands of README: tools/demo.sh, which installs missing packages, then some quick
# tests. Needs root, about 3 GB and ten minutes. Exit status 77 if it is not run as root, or if there is no mirror.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
--help | -h)
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
bookworm | trixie) release=$1 ;;
*)
    echo "try_release.sh: bookworm or trixie? (--help tells more)" >&2
    exit 1
    ;;
esac

skip() {
    echo "$release is not tried: $1"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "chroot is for root"
command -v apt-get >/dev/null || skip "this is no Debian system"
tools/packages.sh debootstrap
# shellcheck disable=SC2016  # apt's own field
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || skip "apt names no mirror of Debian here"

root=$(mktemp -d)
log=$root.log
life=
clean() {
    [ -z "$life" ] || kill "$life" 2>/dev/null || true
    umount "$root/dev/pts" "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root" "$log"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# step WORDS COMMAND...: if the command fails, prints the end of its output and exits
step() {
    echo "$release: $1"
    shift
    : >"$log"
    # Prints a line every minute, since a step may take several.
    while sleep 60 >/dev/null 2>&1; do echo "$release: $(tail -n 1 "$log" | cut -c 1-90)"; done &
    life=$!
    if "$@" >"$log" 2>&1; then
        kill "$life"
        life=
        return 0
    fi
    tail -n 40 "$log" >&2
    exit 1
}

inside() {
    chroot "$root" env -C /eddy HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
}

# The commands of a step are joined by &&, since "set -e" has no effect inside an if condition.
make_root() {
    debootstrap --variant=minbase "$release" "$root" "$mirror" &&
        cp /etc/resolv.conf "$root/etc/resolv.conf" &&
        { apt-config dump | grep -i '::proxy' >"$root/etc/apt/apt.conf.d/90proxy" || true; } &&
        mount -t proc proc "$root/proc" &&
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" &&
        mkdir "$root/eddy" &&
        tar -c --exclude=./build --exclude=./.git . | tar -x -C "$root/eddy"
}

quick_tests() {
    inside tools/packages.sh g++ binutils cmake libcriterion-dev && "$root/eddy/tools/cuda_headers.sh" --fetched &&
        inside meson setup build/quick -Dbuildtype=debugoptimized -Doptimization=1 -Dchecks=true &&
        inside meson test -C build/quick --suite kernels --suite examples --suite installed --suite lint --print-errorlogs
}

step "making a bare root" make_root
step "the demo" inside tools/demo.sh --epochs 1
tail -n 1 "$log"
step "tests" quick_tests
grep -E '^(Ok|Fail|Skipped):' "$log"
