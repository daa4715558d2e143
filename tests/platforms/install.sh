#!/bin/sh
# Installs the wheel or the sdist, without this repository, in many ways, and trains for one update in each:
# are the parameters those of this checkout?
#
#   tests/platforms/install.sh FOLDER [ROW ...]
#
# Prints a line for each row. The exit code is 0 if all are ok, 1 if one is not, 3 if one was skipped.
# PYTHON is a Python with pixelpong and its extra [dev]; by default .venv/bin/python.
# PYTHONS lists the interpreters to install for; by default those of 3.11 to 3.14 on the PATH or in ~/.pyenv.
# Some rows need root, for other users and for mounts that only they see; one needs qemu-user-static.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd) && shift
cd "$(dirname "$0")/../.."
checkout=$PWD
PYTHON=$(command -v "${PYTHON:-.venv/bin/python}")
case $PYTHON in /*) ;; *) PYTHON=$checkout/$PYTHON ;; esac
PYTHONS=${PYTHONS:-python3.11 python3.12 python3.13 python3.14 $(ls ~/.pyenv/versions/3.*/bin/python 2> /dev/null)}
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV XDG_CACHE_HOME PIXELPONG_CACHE_DIR NUMBA_CACHE_DIR
all="wheel-3.11 wheel-3.12 wheel-3.13 wheel-3.14 sdist pipx uvx umlaut no-home read-only random-user small-shm
    small-shm-ray slurm two-processors"
words="train --seed 1 --updates 1 --quiet --json"
user="setpriv --reuid 54321 --regid 54321 --clear-groups" # nobody of this number is in /etc/passwd
small_shm='mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'

skip() { echo "$row: skipped, $1"; exit 3; }
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

install() { # VENV PYTHON WHAT: a new environment, with the pins
    rm -rf "$1"
    "$2" -m venv --without-pip "$1"
    "$PYTHON" -m pip --python "$1/bin/python" install --quiet -c "$checkout/constraints.txt" "$3"
}

need_installed() { # the wheel in $folder/venv, for the rows that differ in what surrounds it
    [ ! -e "$folder/venv/made" ] || return 0
    # Another user must be able to run its Python, which the home folder of root prevents.
    path=$("$PYTHON" -c 'import sys; print(sys._base_executable)')
    [ "$(id -u)" != 0 ] || $user test -x "$path" || path=/usr/bin/python3
    install "$folder/venv" "$path" "$wheel"
    touch "$folder/venv/made"
}

train() { # WORD ...: the check, in the folder of the row; it keeps its cache there
    cd "$there"
    # shellcheck disable=SC2086 # several words
    PIXELPONG_CACHE_DIR="$there/cache" "$@" $words > "$there/report.json"
}

count_code() { find "$there/cache" -name '*.machine' -o -name '*.nbc' | wc -l; }
hash_of() { sed -n 's/.*"params_sha256": "\([0-9a-f]*\)".*/\1/p' "$1"; }

run_row() {
    pixelpong=$folder/venv/bin/pixelpong
    case $row in
        wheel-*)
            for path in $PYTHONS ""; do
                "$path" -c "import sys; sys.exit(sys.version_info[:2] != (3, ${row#wheel-3.}))" 2> /dev/null && break
            done
            [ -n "$path" ] || skip "there is no Python ${row#wheel-}"
            install "$there/venv" "$path" "$wheel"
            train "$there/venv/bin/pixelpong" ;;
        sdist) install "$there/venv" "$PYTHON" "$sdist"; train "$there/venv/bin/pixelpong" ;;
        pipx)
            install "$there/tools" "$PYTHON" pipx==1.18.4
            train env PIPX_HOME="$there/pipx" "$there/tools/bin/pipx" run --python "$PYTHON" \
                --pip-args "-c $checkout/constraints.txt" --spec "$wheel" pixelpong ;;
        uvx)
            install "$there/tools" "$PYTHON" uv==0.13.9
            train env UV_CACHE_DIR="$there/uv" "$there/tools/bin/uvx" --quiet --python "$PYTHON" \
                --constraints "$checkout/constraints.txt" --from "$wheel" pixelpong ;;
        umlaut)
            there="$there/Äpfel und Öl" && mkdir "$there"
            install "$there/venv" "$PYTHON" "$wheel"
            train "$there/venv/bin/pixelpong" && mv "$there/report.json" "$there/.." ;;
        no-home) # no folder can be made below /dev/null, so there is no cache either
            need_installed; train env -i XDG_CACHE_HOME=/dev/null "$pixelpong" ;;
        read-only) # the root and all that is mounted where users write; only the folder of the run is left
            need_root; need_installed
            mkdir "$there/work" && chown 54321 "$there/work"
            train unshare -m sh -c 'set -e
                mount --bind work work
                for path in /dev/shm /tmp /var/tmp /; do
                    if mountpoint -q $path; then mount -o remount,ro,bind $path; fi
                done
                cd "$PWD/work"
                for path in /tmp /dev/shm .. "${0%/*}"; do
                    if touch "$path/probe" 2> /dev/null; then echo "$path can be written" >&2; exit 1; fi
                done
                exec '"$user"' env -i "$0" "$@"' "$pixelpong" ;;
        random-user) # and without HOME, so there is no cache
            need_root; need_installed; chown 54321 "$there"; train $user env -i "$pixelpong" ;;
        small-shm) need_root; need_installed; train unshare -m sh -c "$small_shm" sh "$pixelpong" ;;
        small-shm-ray)
            need_root; install "$there/venv" "$PYTHON" "$wheel[ray]"
            words="$words --engine ray --workers 1"
            train unshare -m sh -c "$small_shm" sh "$there/venv/bin/pixelpong" ;;
        slurm) # one of four tasks of a job, each with one core
            need_installed
            core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
            train env SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node[1-2]' SLURM_JOB_NUM_NODES=2 SLURM_NNODES=2 \
                SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_ID=0 \
                SLURM_CPUS_PER_TASK=1 SLURM_CPUS_ON_NODE=1 SLURM_JOB_CPUS_PER_NODE='1(x2)' \
                taskset -c "$core" "$pixelpong" ;;
        two-processors) # the second has no AVX; the third training uses the code of the first again
            emulator=$(command -v qemu-x86_64-static) || skip "needs qemu-x86_64-static"
            [ "$(uname -m)" = x86_64 ] || skip "needs x86-64"
            need_installed
            words="$words --engine serial" # QEMU would run other programs on the real processor
            train "$pixelpong"
            before=$(count_code) && mv report.json first.json
            train timeout 600 "$emulator" -cpu Nehalem "$folder/venv/bin/python" -m pixelpong
            both=$(count_code)
            [ "$(hash_of first.json)" = "$(hash_of report.json)" ]
            train "$pixelpong"
            echo "# files of code: $before, then $both, then $(count_code)" >&2
            [ "$both" = $((2 * before)) ] && [ "$both" = "$(count_code)" ] ;;
        *) echo "$row: no such row; the rows are $all"; exit 1 ;;
    esac
}

rm -rf "$folder/dist" "$folder/venv"
"$PYTHON" -m hatchling build -d "$folder/dist" >&2
wheel=$(ls "$folder"/dist/*.whl)
sdist=$(ls "$folder"/dist/*.tar.gz)
row=checkout there=$folder/checkout
rm -rf "$there" && mkdir "$there"
(train env PYTHONPATH="$checkout/src" "$PYTHON" -m pixelpong)
expected=$(hash_of "$there/report.json") && [ -n "$expected" ]
echo "# this checkout: $expected" >&2

code=0
for row in ${*:-$all}; do
    there=$folder/$row began=$(date +%s)
    rm -rf "$there" && mkdir "$there"
    set +e # as the condition of an "if", the row would not stop at an error
    (set -e; run_row)
    failed=$?
    set -e
    found=$(hash_of "$there/report.json" 2> /dev/null || true)
    if [ $failed = 3 ]; then
        [ $code = 1 ] || code=3
    elif [ $failed = 0 ] && [ "$found" = "$expected" ]; then
        echo "$row: ok, $(($(date +%s) - began)) s"
    else
        echo "$row: exit code $failed, hash ${found:-none} instead of $expected"
        code=1
    fi
done
exit $code
