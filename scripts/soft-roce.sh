#!/usr/bin/env bash
# Soft-RoCE (the kernel's rdma_rxe) on one interface: a real RoCEv2 stack, to compare p4gen's with. Idempotent; needs root.
#
#   soft-roce.sh up [INTERFACE]      default lab0: a veth pair that is made, with lab0-port as its other end
#   soft-roce.sh down [INTERFACE]
#
# A switch's port goes to the other end: p4gen switch program.p4 -i 0@lab0-port
set -euo pipefail

fail() {
    printf 'soft-roce: error: %s\n' "$*" >&2
    exit 3
}

usage='usage: soft-roce.sh up|down [INTERFACE]'
action=${1:-}
interface=${2:-lab0}
device=rxe_$interface
# An IPv4 address makes a RoCEv2 GID of the IPv4 kind, the only kind that generated programs aggregate.
address=10.250.0.1/24
case $action in up | down) ;; *)
    printf '%s\n' "$usage" >&2
    exit 2
    ;;
esac
[ "$(id -u)" = 0 ] || fail 'needs root'

if [ "$action" = down ]; then
    if rdma link show "$device/1" >/dev/null 2>&1; then rdma link delete "$device"; fi
    # Only the pair that "up" has made goes; other interfaces are left as they are.
    if [ "$interface" = lab0 ] && ip link show lab0 >/dev/null 2>&1; then ip link delete lab0; fi
    exit 0
fi

modprobe rdma_rxe 2>/dev/null || [ -d /sys/module/rdma_rxe ] ||
    fail "this kernel ($(uname -r)) has no rdma_rxe: Ubuntu has it in linux-modules-extra, Debian in linux-image-amd64 but not in its cloud kernels; a container has its host's"
if ! ip link show "$interface" >/dev/null 2>&1; then
    [ "$interface" = lab0 ] || fail "there is no interface $interface"
    ip link add lab0 type veth peer name lab0-port
    ip address add "$address" dev lab0
    ip link set lab0-port up
fi
ip link set "$interface" up
if ! rdma link show "$device/1" >/dev/null 2>&1; then
    rdma link add "$device" type rxe netdev "$interface"
fi
rdma link show "$device/1"
