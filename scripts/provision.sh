#!/usr/bin/env bash
# Makes a machine ready for labs: p4c, BMv2 and Mininet from packages, Soft-RoCE, p4gen from this checkout.
# Vagrantfile and Containerfile call it. Idempotent: what is there is left as it is.
#
# Tried where p4gen is developed: Debian 12, "--without-p4 --without-roce", and what --dry-run prints for Ubuntu 22.04.
# Not tried there, for want of a virtual machine: the P4 packages on Ubuntu 22.04, and Soft-RoCE. The P4 packages' versions
# are those that their packagers published and tested on Ubuntu 22.04 in September 2026; p4gen's own tests ran with p4c
# 1.2.5.16 and BMv2 1.15.5.
set -euo pipefail

usage='Usage: scripts/provision.sh [OPTION]...

  --without-p4         no p4c and BMv2: labs run on the embedded switch
  --any-p4-version     take the p4c and BMv2 that their repository has now, whatever their version
  --without-roce       no Soft-RoCE (a container has no kernel of its own)
  --interface NAME     Soft-RoCE on this interface (default: lab0, one end of a veth pair that is made)
  --prefix DIR         where the Python environment goes (default: /opt/p4gen)
  --bin DIR            where the command "p4gen" goes (default: /usr/local/bin)
  --only STEP          one step: packages, p4, roce, p4gen or check
  --dry-run            say what would be done, and do nothing'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(dirname "$here")
list=$here/packages.txt
os_release=${P4GEN_OS_RELEASE:-/etc/os-release}
p4lang=https://download.opensuse.org/repositories/home:/p4lang
keyring=/etc/apt/keyrings/p4lang.gpg
sources=/etc/apt/sources.list.d/p4lang.list

say() { printf '== %s\n' "$*"; }

fail() {
    printf 'provision: error: %s\n' "$*" >&2
    exit 3
}

misused() {
    printf 'provision: error: %s\n\n%s\n' "$*" "$usage" >&2
    exit 2
}

# Runs a command, or prints it.
run() {
    if [ "$dry" = yes ]; then
        printf '+'
        printf ' %q' "$@"
        printf '\n'
    else
        "$@"
    fi
}

# Writes standard input to a file, or says so.
put() {
    if [ "$dry" = yes ]; then
        printf '+ write %s:\n' "$1"
        sed 's/^/    /'
    else
        mkdir -p "$(dirname "$1")"
        cat >"$1"
    fi
}

# packages GROUP: its packages for this release as apt takes them, one a line.
packages() {
    awk -v group="$1" -v release="$release" '
        /^#/ || !NF { next }
        $1 == group && ($2 == release || $2 == "any") { print $4 == "-" ? $3 : $3 "=" $4 }' "$list"
}

apt_install() { run env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$@"; }

# install_groups GROUP...: what is listed for them.
install_groups() {
    local group package wanted=()
    for group in "$@"; do
        while read -r package; do wanted+=("$package"); done < <(packages "$group")
    done
    apt_install "${wanted[@]}"
}

p4_is_here() { command -v p4c >/dev/null && command -v simple_switch_grpc >/dev/null; }

# Before anything is changed: can this release have what is wanted?
check_release() {
    [[ " $(known python) " == *" $release "* ]] || fail "$release is not in scripts/packages.txt; known: $(known python)"
    if [ "$p4" = yes ] && ! p4_is_here && [ -z "$(packages p4)" ]; then
        fail "nobody is known to package p4c and BMv2 for $release (for $(known p4), the p4lang project does); with --without-p4 labs run on the embedded switch"
    fi
    if [ "$p4" = yes ] && ! p4_is_here && [ "$(uname -m)" != x86_64 ]; then
        fail "the packages of p4c and BMv2 are tested on x86_64 only, and this is $(uname -m); with --without-p4 labs run on the embedded switch"
    fi
}

# known GROUP: the releases that have packages of their own in it.
known() { awk -v group="$1" '!/^#/ && $1 == group && $2 != "any" { print $2 }' "$list" | sort -u | paste -sd' '; }

packages_step() {
    say "packages for $release"
    run apt-get update --quiet
    install_groups base python lab
}

p4_step() {
    if p4_is_here; then
        say "p4c and simple_switch_grpc are here: $(p4c --version), BMv2 $(simple_switch_grpc --version)"
        return
    fi
    say 'p4c and BMv2, from the p4lang project'\''s repository'
    local url=$p4lang/xUbuntu_${release#ubuntu-}/ package version
    # The key is trusted for this repository only. Open Build Service renews its keys, so no fingerprint is pinned.
    if [ "$dry" = yes ]; then
        printf '+ curl -fsSL %sRelease.key | gpg --dearmor >%s\n' "$url" "$keyring"
    elif [ ! -s "$keyring" ]; then
        mkdir -p "$(dirname "$keyring")"
        curl -fsSL "${url}Release.key" | gpg --dearmor --yes --output "$keyring" || fail "no key from ${url}Release.key"
    fi
    put "$sources" <<<"deb [signed-by=$keyring] $url ./"
    run apt-get update --quiet
    local there wanted=()
    while IFS='=' read -r package version; do
        if [ "$any_p4" = yes ]; then
            wanted+=("$package")
            continue
        fi
        if [ "$dry" = no ]; then
            there=$(apt-cache madison "$package" | awk -F' *[|] *' '{ print $2 }' | paste -sd' ')
            [[ " $there " == *" $version "* ]] ||
                fail "$url has $package ${there:-in no version}, not $version: take what it has (--any-p4-version), or change scripts/packages.txt"
        fi
        wanted+=("$package=$version")
    done < <(packages p4)
    apt_install "${wanted[@]}"
}

roce_step() {
    say "Soft-RoCE on $interface"
    install_groups roce
    if [ "$dry" = no ] && ! modinfo rdma_rxe >/dev/null 2>&1 && [ "${release%%-*}" = ubuntu ]; then
        # Ubuntu's kernels for virtual machines leave it in a package of their own.
        apt_install "linux-modules-extra-$(uname -r)" ||
            fail "no package has rdma_rxe for this kernel, $(uname -r); --without-roce does without"
    fi
    run /usr/bin/install -m 755 "$here/soft-roce.sh" /usr/local/sbin/p4gen-soft-roce
    if [ -d /run/systemd/system ] || [ "$dry" = yes ]; then
        # A service, so that it is there after the next boot too.
        put /etc/systemd/system/p4gen-soft-roce.service <<UNIT
[Unit]
Description=Soft-RoCE for p4gen's labs
After=network.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/p4gen-soft-roce up $interface
ExecStop=/usr/local/sbin/p4gen-soft-roce down $interface

[Install]
WantedBy=multi-user.target
UNIT
        run systemctl daemon-reload
        run systemctl enable --now p4gen-soft-roce.service
    else
        run /usr/local/sbin/p4gen-soft-roce up "$interface"
    fi
}

# The newest Python that p4gen can have here.
find_python() {
    local candidate
    for candidate in python3.13 python3.12 python3.11 python3; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

p4gen_step() {
    say "p4gen from $checkout into $prefix"
    local python=python3.11
    if [ "$dry" = no ]; then
        python=$(find_python) || fail 'no Python 3.11 or newer with its module venv; run the step "packages" first'
    fi
    # A folder of its own: a folder shared with the host may not take the links that an environment is made of.
    if [ ! -x "$prefix/bin/python" ]; then run "$python" -m venv "$prefix"; fi
    # Editable: what is changed in the checkout is what runs.
    run "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$here/constraints.txt" --editable "$checkout"
    run "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$here/ptf.txt"
    if [ ! -x "$prefix/shell/bin/python" ]; then run "$prefix/bin/python" -m venv --without-pip "$prefix/shell"; fi
    run "$prefix/bin/python" -m pip --python "$prefix/shell" install --quiet --disable-pip-version-check \
        --requirement "$here/shell.txt"
    run mkdir -p "$bin"
    run ln -sf "$prefix/bin/p4gen" "$bin/p4gen"
}

check_step() {
    say 'what is here'
    local part missing=0
    for part in "$bin/p4gen" mnexec $([ "$p4" = yes ] && echo p4c simple_switch_grpc) $([ "$roce" = yes ] && echo rdma); do
        if command -v "$part" >/dev/null; then
            printf 'ok       %s\n' "$(command -v "$part")"
        else
            printf 'missing  %s\n' "$part"
            missing=1
        fi
    done
    if [ "$roce" = yes ]; then rdma link show || missing=1; fi
    [ "$missing" = 0 ] || fail 'not everything is here; see above'
    "$bin/p4gen" doctor
}

dry=no p4=yes any_p4=no roce=yes only='' interface=lab0 prefix=/opt/p4gen bin=/usr/local/bin
while [ $# -gt 0 ]; do
    case $1 in
        --without-p4) p4=no ;;
        --any-p4-version) any_p4=yes ;;
        --without-roce) roce=no ;;
        --dry-run) dry=yes ;;
        --interface | --prefix | --bin | --only)
            [ $# -ge 2 ] || misused "$1 needs a value"
            case $1 in
                --interface) interface=$2 ;;
                --prefix) prefix=$2 ;;
                --bin) bin=$2 ;;
                --only) only=$2 ;;
            esac
            shift
            ;;
        --help | -h)
            printf '%s\n' "$usage"
            exit 0
            ;;
        *) misused "unknown option $1" ;;
    esac
    shift
done
case $only in '' | packages | p4 | roce | p4gen | check) ;; *) misused "unknown step $only" ;; esac

[ -r "$os_release" ] || fail "$os_release cannot be read: which distribution is this?"
# shellcheck source=/dev/null
release=$(. "$os_release" && printf '%s-%s' "${ID:-unknown}" "${VERSION_ID:-unknown}")
wanted_steps=${only:-packages$([ "$p4" = no ] || echo ' p4')$([ "$roce" = no ] || echo ' roce') p4gen check}
case " $wanted_steps " in
    *' packages '* | *' p4 '* | *' roce '*)
        [ "$dry" = yes ] || [ "$(id -u)" = 0 ] || fail 'installing packages needs root (sudo scripts/provision.sh)'
        command -v apt-get >/dev/null || fail 'apt-get is not here; scripts/packages.txt says what to install by hand'
        check_release
        ;;
esac
for step in $wanted_steps; do
    if [ "$dry" = yes ] && [ "$step" = check ]; then continue; fi
    "${step}_step"
done
