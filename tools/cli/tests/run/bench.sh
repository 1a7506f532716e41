#!/bin/sh
# Replaces a benchmark: writes the record of a launch, or continues it. The environment controls its behaviour, so that the
# command line stays the same:
#   RANKS  a factor; HOSTS  a fact; PAUSE  seconds in each group; HOLD  a file: continues once it is removed;
#   REFUSE refuses its input as a program of ours does; FAIL   a file: removes it and fails; DIE  a file: removes it and is killed in the middle of a group;
#   LEAVE  a file: leaves a process behind, and writes its id there;
#   LAZY   writes no `# complete`; WEARY  fails after it; STUBBORN  ignores SIGTERM.
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$2; shift 2 ;;
    --launch) launch=$2; shift 2 ;;
    *) shift ;;
    esac
done
record=$out/$launch.csv
echo "$launch measures"
echo "$launch complains" >&2
echo $$ >"$out/pid.new" && mv "$out/pid.new" "$out/pid"
[ -z "$STUBBORN" ] || trap '' TERM

# Appends lines, and the checksum of all lines so far, at once.
append() {
    sum=$({ cat "$record"; printf '%s\n' "$1"; } | gzip -c | tail -c 8 | od -An -N4 -tx4 | tr -d ' ')
    printf '%s\n# crc32 %s\n' "$1" "$sum" >>"$record"
}

takes_away() { [ -n "$1" ] && rm "$1" 2>/dev/null; }

columns=operation,bytes,ranks,call,state,nanos
if grep -qs "^$columns" "$record"; then
    if ! grep -q "^# factor ranks = ${RANKS:-4}\$" "$record"; then
        echo "has other ranks" >&2
        exit 1
    fi
    [ "$(tail -n 2 "$record" | head -n 1)" != "# complete" ] || exit 0
    # Cut off the incomplete group.
    last=$(grep -n "^# end\|^$columns" "$record" | tail -n 1)
    head -n $((${last%%:*} + 1)) "$record" >"$out/cut" && mv "$out/cut" "$record"
else
    : >"$record"
    append "$(printf '# downbeat launch 1\n# factor program = bench.sh\n# factor ranks = %s\n# fact process = %s\n# fact hosts = %s\n%s' \
        "${RANKS:-4}" $$ "${HOSTS:-a b}" $columns)"
fi
if [ -n "$LEAVE" ]; then
    setsid sleep 100 &
    echo $! >"$LEAVE"
fi
if [ -n "$REFUSE" ]; then
    echo "downbeat-mpi: --sizes: bad" >&2
    echo "a rank has ended" >&2
    exit 2
fi
if takes_away "$FAIL"; then
    echo "cannot go on" >&2
    exit 3
fi
for size in 1 2 3; do
    grep -q "^# end allreduce,$size," "$record" && continue
    [ -z "$PAUSE" ] || sleep "$PAUSE"
    while [ -e "$HOLD" ]; do sleep 0.01; done
    if takes_away "$DIE"; then
        printf 'allreduce,%s,4,0,valid,1' $size >>"$record"
        kill -9 $$
    fi
    rows=$(printf 'allreduce,%s,4,0,valid,%s\nallreduce,%s,4,1,valid,7' $size $$ $size)
    append "$(printf '%s\n# end allreduce,%s,4 valid=2 late=0 long=0 drifted=0 min=7' "$rows" $size)"
done
[ -n "$LAZY" ] || append "# complete"
[ -z "$WEARY" ]
