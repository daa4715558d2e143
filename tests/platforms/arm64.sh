#!/bin/sh
# Debian for 64-bit ARM, run by QEMU: does pixelpong give this machine's lines there?
#
#   tests/platforms/arm64.sh FOLDER [ARGUMENT of check.py ...]
#
# Needs root (debootstrap, chroot), and: apt-get install qemu-user-static debootstrap debian-archive-keyring
# PYTHON is a Python 3.11 with pixelpong and its extras [play] and [dev]; by default .venv/bin/python.
# FOLDER/root is made if it is not there. The exit code is 0 if the lines are equal.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-.venv/bin/python}
root=$folder/root

if [ ! -e "$root/made" ]; then
    rm -rf "$root"
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3 bookworm "$root"
    # Unpacked only: the second stage runs every package's script under QEMU, and nothing here needs them.
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg -x "$package" "$root"
    done
    cp "$(command -v qemu-aarch64-static)" "$root/qemu"
    touch "$root/made"
fi

echo "# $(date -u +%T) the packages" >&2
rm -rf "$folder/wheel" "$root/packages"
"$PYTHON" -m hatchling build -t wheel -d "$folder/wheel" >&2
platforms=$(for minor in 17 24 26 27 28 31 34; do echo "--platform manylinux_2_${minor}_aarch64"; done)
# shellcheck disable=SC2086 # several words
"$PYTHON" -m pip install --quiet --no-compile --target "$root/packages" --only-binary=:all: --python-version 3.11 \
    $platforms --platform manylinux2014_aarch64 -c constraints.txt "$(ls "$folder"/wheel/*.whl)[play]"
cp tests/platforms/check.py "$root/check.py"

echo "# $(date -u +%T) this machine" >&2
"$PYTHON" tests/platforms/check.py --out "$folder/here.txt" "$@"

echo "# $(date -u +%T) ARM" >&2
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
# QEMU is named wherever Python starts, so nothing has to be registered with the kernel.
chroot "$root" /qemu -E PYTHONPATH=/packages -E HOME=/root -E LANG=C.UTF-8 -E "CHECK_PYTHON=/qemu|/usr/bin/python3" \
    /usr/bin/python3 /check.py --out /lines.txt "$@"
cp "$root/lines.txt" "$folder/arm64.txt"

echo "# $(date -u +%T) both" >&2
"$PYTHON" tests/platforms/check.py --compare "$folder/here.txt" "$folder/arm64.txt"
