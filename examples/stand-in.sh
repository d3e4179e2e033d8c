#!/bin/sh
# A stand-in for an LLM, so that the examples run without a key and without a network. It reads a prompt on stdin and
# answers with a count of its words. It understands nothing.
exec awk '
    /^## Memory$/                      { in_log = 1; next }
    in_log && /^## [0-9]+-[0-9]+-[0-9]+T/ { runs++; when = $2; next }
    in_log && /^\*\*Result:\*\* /      { said = substr($0, 13); words = longest = ""; next }
    {
        for (i = 1; i <= NF; i++) {
            words++
            if (length($i) > length(longest)) longest = $i
        }
    }
    END {
        printf "I was given %d words; the longest is \"%s\".", words, longest
        if (runs) printf " My log has %d earlier run(s). At %s I said: %s", runs, when, said
        print ""
    }
'
