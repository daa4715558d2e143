#!/bin/sh
# Python for Windows, run by Wine: does pixelpong give this machine's lines there?
#
#   tests/platforms/windows.sh FOLDER [ARGUMENT of check.py ...]
#
# Needs: apt-get install wine wine64 mingw-w64 osslsigncode unzip
# PYTHON is a Python 3.11 with pixelpong and its extras [play] and [dev]; by default .venv/bin/python.
# FOLDER/python is made if it is not there. The exit code is 0 if the lines are equal.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-.venv/bin/python}
sources=$PWD/tests/platforms/wine
made=$folder/python

names_of() { # the names that a DLL exports
    x86_64-w64-mingw32-objdump -p "$1" | awk '
        /^\[Ordinal\/Name Pointer\] Table/ { is_table = 1; next }
        is_table && /^$/ { exit }
        is_table && sub(/^\t\[ *[0-9]+\] *(\+base\[ *[0-9]+\] +[0-9a-f]+ )?/, "") { print $1 }'
}

forward() { # a linker's list that forwards names, which are read, to a DLL
    awk -v to="$1" '{ printf "\"%s\" = %s.\"%s\"\n", $1, to, $1 }'
}

link() { x86_64-w64-mingw32-gcc -O1 -s -static-libgcc "$@"; }

verify() { osslsigncode verify "$@" -CAfile /etc/ssl/certs/ca-certificates.crt -in "$made/python311.dll"; }

make_python() {
    rm -rf "$made" "$folder/build"
    mkdir -p "$made/DLLs" "$made/Lib" "$folder/build"
    cd "$folder/build"
    # This wheel carries CPython 3.11.9 for Windows, which the Python Software Foundation has signed.
    "$PYTHON" -m pip download --quiet --no-deps -d . --only-binary=:all: --platform win_amd64 \
        --python-version 3.11 panda3d==1.10.16
    unzip -q panda3d-*.whl 'deploy_libs/*'
    cd deploy_libs
    cp python311.dll VCRUNTIME140.dll "$made"
    cp ./*.pyd libcrypto-3.dll libssl-3.dll libffi-8.dll sqlite3.dll "$made/DLLs"
    cd ..
    # Without asking for lists of revoked certificates, which needs a newer osslsigncode.
    verify -ignore-cdp -ignore-crl > signature.txt 2>&1 || verify > signature.txt 2>&1
    grep -q "CN=Python Software Foundation" signature.txt
    # Its library is written in Python, and the same on every system.
    library=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
    tar -C "$library" -c --exclude=site-packages --exclude=__pycache__ --exclude=./test --exclude='config-*' \
        --exclude=lib-dynload . | tar -C "$made/Lib" -x
    link -municode -o "$made/python.exe" "$sources/python.c"
    { echo EXPORTS; names_of "$made/python311.dll" | forward python311; } > python3.def
    link -shared -o "$made/python3.dll" "$sources/forwards.c" python3.def
    link -shared -o "$made/bcryptprimitives.dll" "$sources/random.c" -ladvapi32
    # Wine's ucrtbase.dll under another name, without the mark that keeps it from being loaded by that name.
    wines=$(find /usr/lib /opt -path '*x86_64-windows/ucrtbase.dll' 2> /dev/null | head -n 1)
    cp "$wines" "$made/ucrtwine.dll"
    printf '%16s' '' | dd of="$made/ucrtwine.dll" bs=1 seek=64 conv=notrunc 2> /dev/null
    x86_64-w64-mingw32-gcc -O1 -c -o complex.o "$sources/complex.c"
    x86_64-w64-mingw32-nm complex.o | sed -n 's/.* T our_//p' > complex.names
    { echo EXPORTS; sed 's/.*/& = our_&/' complex.names
      names_of "$wines" | grep -vxFf complex.names | forward ucrtwine; } > ucrtbase.def
    link -shared -o "$made/ucrtbase.dll" complex.o ucrtbase.def
    cd "$sources/../../.."
    touch "$made/made"
}

case $PYTHON in */*) PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/${PYTHON##*/} ;; esac
[ -e "$made/made" ] || make_python

echo "# $(date -u +%T) the packages" >&2
rm -rf "$folder/wheel" "$made/Lib/site-packages"
"$PYTHON" -m hatchling build -t wheel -d "$folder/wheel" >&2
"$PYTHON" -m pip install --quiet --no-compile --target "$made/Lib/site-packages" --only-binary=:all: \
    --python-version 3.11 --platform win_amd64 -c constraints.txt "$(ls "$folder"/wheel/*.whl)[play]"
cp tests/platforms/check.py "$folder/check.py"

echo "# $(date -u +%T) this machine" >&2
"$PYTHON" tests/platforms/check.py --out "$folder/here.txt" "$@"

echo "# $(date -u +%T) Windows" >&2
export WINEPREFIX="$folder/prefix" WINEDEBUG=-all
export WINEDLLOVERRIDES="mscoree,mshtml=;ucrtbase,bcryptprimitives=n,b"
unset DISPLAY PYTHONPATH PYTHONHOME
cd "$folder"
# Wine writes into pipes, not into files that a shell has opened.
{ wine python/python.exe check.py --out windows.txt "$@" 2>&1; echo "# exit code $?"; } | tee windows.log
grep -q "^# exit code 0" windows.log
cd "$sources/../../.."

echo "# $(date -u +%T) both" >&2
"$PYTHON" tests/platforms/check.py --compare "$folder/here.txt" "$folder/windows.txt"
