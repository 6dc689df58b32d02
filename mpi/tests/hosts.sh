# Two hosts as network namespaces, joined by TCP: part of scripts/test-mpi, which has `check`, `scratch`, `mpis` and `lineweave`.
# Each has its own name, addresses and (abstract) sockets; only files are shared. Needs root, `ip` and `unshare`.

hosts_up() {
    ip netns add lineweave-a && ip netns add lineweave-b &&
        ip link add lineweave-a netns lineweave-a type veth peer name lineweave-b netns lineweave-b &&
        ip -n lineweave-a address add 10.213.7.1/24 dev lineweave-a && ip -n lineweave-b address add 10.213.7.2/24 dev lineweave-b &&
        ip -n lineweave-a link set lineweave-a up && ip -n lineweave-b link set lineweave-b up &&
        ip -n lineweave-a link set lo up && ip -n lineweave-b link set lo up
}

hosts_down() {
    ip netns delete lineweave-a 2>/dev/null || true
    ip netns delete lineweave-b 2>/dev/null || true
}

# The program that launchers call in place of ssh: options, the host, the command.
write_agent() {
    cat >"$scratch/agent" <<'AGENT'
#!/usr/bin/env bash
while [ "${1#-}" != "$1" ]; do shift; done
case $1 in
10.213.7.1) name=lineweave-a ;;
*) name=lineweave-b ;;
esac
shift
exec ip netns exec "$name" unshare --uts bash -c "hostname $name; $*"
AGENT
    chmod +x "$scratch/agent"
}

# on_hosts MPI COMMAND...: two ranks on each, from the first.
on_hosts() {
    local mpi=$1 options=()
    shift
    case $mpi in
    openmpi)
        # Two ranks a host. Without its `han`, which takes types to be the same on all ranks and gets allgather wrong.
        options=(--prtemca plm_ssh_agent "$scratch/agent" --host 10.213.7.1:2,10.213.7.2:2 --map-by ppr:2:node:OVERSUBSCRIBE
            --mca coll ^han --mca btl_tcp_if_include 10.213.7.0/24 --prtemca prte_if_include 10.213.7.0/24 -x PATH -x LD_LIBRARY_PATH)
        ;;
    mpich) options=(-launcher ssh -launcher-exec "$scratch/agent" -hosts 10.213.7.1:2,10.213.7.2:2 -ppn 2) ;;
    esac
    (
        export PATH=$mpis/$mpi/bin:$PATH LD_LIBRARY_PATH=$mpis/$mpi/lib
        timeout -k 5 120 ip netns exec lineweave-a unshare --uts bash -c 'hostname lineweave-a; exec "$@"' - mpirun "${options[@]}" -n 4 "$@"
    )
}

if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! command -v unshare >/dev/null; then
    echo "skipped two hosts: needs root, ip and unshare"
elif hosts_down; ! hosts_up 2>"$scratch/log"; then
    echo "skipped two hosts: no network namespaces here: $(head -n 1 "$scratch/log")"
    hosts_down
else
    trap 'hosts_down; rm -rf "$scratch"' EXIT
    write_agent
    for mpi in openmpi mpich; do
        if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
        # The job itself, without lineweave.
        check "$mpi: two hosts over TCP, by itself" on_hosts "$mpi" "$mpis/built/rules-$mpi"
        check "$mpi: rules, two hosts over TCP" env LINEWEAVE_MPI_RACE=0 bash -c "$(declare -f on_hosts); mpis='$mpis' scratch='$scratch'; on_hosts $mpi '$lineweave' run --report '$scratch/report' -- '$mpis/built/rules-$mpi'"
        check "$mpi: two hosts: collectives over both were taken over" grep -q '"collective":"allreduce".*"taken":[1-9]' "$scratch/report"
        check "$mpi: two hosts: as nodes of their own" grep -q 'not among several nodes' "$scratch/report"
        check "$mpi: nodes, two hosts over TCP" on_hosts "$mpi" env LINEWEAVE_MPI_RACE=0 "$lineweave" run --link "$scratch/link" -- "$mpis/built/nodes-$mpi" 131073
        check "$mpi: two hosts: their link is measured" says "a message between them: " "$lineweave" --machine epyc-milan-7763-2s explain allreduce 1KiB --ranks 4 --nodes 2 --link "$scratch/link"
        # For a person to see; the check before it judges.
        sed -n '/a message between them/p' "$scratch/log"
        check "$mpi: requests, two hosts over TCP" on_hosts "$mpi" "$lineweave" run -- "$mpis/built/requests-$mpi"
    done
    hosts_down
    trap 'rm -rf "$scratch"' EXIT
fi
