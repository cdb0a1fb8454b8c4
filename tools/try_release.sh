#!/bin/sh
# Tries Eddy as somebody does who has just installed a release of Debian: try_release.sh bookworm|trixie
#
# Makes a bare root of the release in a temporary folder (debootstrap, from the mirror that apt uses here), copies the source
# there without git, and runs in it what README says: tools/demo.sh, which installs what is missing, then a quick choice of
# tests. Needs root, some 3 GB and ten minutes. Exit status 77 where there is no root, or no mirror.
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

# step WORDS COMMAND...: fails with the end of what the command printed
step() {
    echo "$release: $1"
    shift
    : >"$log"
    # A line now and then, for it may take minutes.
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

# What step calls is chained: "set -e" is off within.
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
    inside tools/packages.sh g++ binutils cmake libcriterion-dev &&
        inside meson setup build/quick -Dbuildtype=debugoptimized -Doptimization=1 -Dchecks=true &&
        inside meson test -C build/quick --suite kernels --suite examples --suite installed --suite lint --print-errorlogs
}

step "making a bare root" make_root
step "the demo" inside tools/demo.sh --epochs 1
tail -n 1 "$log"
step "tests" quick_tests
grep -E '^(Ok|Fail|Skipped):' "$log"
