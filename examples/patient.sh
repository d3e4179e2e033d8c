#!/bin/sh
# Asks an agent, and waits for a service that is down: up to three times, after 5, 30 and 120 seconds. A run that had called
# tools goes on where it ended, and nothing is paid for twice.
#   sh patient.sh guide 'Where is the port set?'
set -u
agent=$1 question=$2
error=$(mktemp) || exit 1
trap 'rm -f "$error"' EXIT
set -- -p "$question" "$agent"
for pause in 5 30 120 end; do
    axe-run --no-stdin --strict --newline "$@" 2> "$error"
    code=$?
    if [ $code != 3 ] || [ $pause = end ]; then
        break
    fi
    id=$(sed -n 's/.*axe run --continue \([^ ]*\)$/\1/p' "$error")
    if [ -n "$id" ]; then
        set -- --continue "$id"
    fi
    sleep "${PAUSE:-$pause}"
done
cat "$error" >&2
case $code in
3) echo 'The service is still down. Try again later.' >&2 ;;
4) echo 'The budget is spent. To go on, add --max-tokens-total to the command above.' >&2 ;;
esac
exit $code
