#!/bin/sh
# A stand-in for an LLM that writes notes, so that the examples run without a key and without a network. It keeps the
# first message of each session. It understands nothing.
exec awk '
    function plain(text) { gsub(/[\\"]/, "", text); gsub(/[[:cntrl:]]/, " ", text); return substr(text, 1, 200) }
    /^batch: / && batch == ""   { batch = $2 }
    /^<<< session /             { id = $3; ids[++count] = id }
    /^>>> /                     { id = "" }
    id != "" && /^\[t[0-9]+ user / { speaks = 1; next }
    id != "" && /^\[t[0-9]+ /      { speaks = 0 }
    id != "" && speaks && NF && said[id] == "" { said[id] = $0 }
    END {
        printf "{\"batch\":\"%s\",\"entries\":[", batch
        for (n = 1; n <= count; n++) {
            text = plain(said[ids[n]])
            if (text == "") text = "Nothing was said"
            printf "%s{\"ref\":\"n%d\",\"update\":null,\"title\":\"%s\",", (n > 1 ? "," : ""), n, text
            printf "\"summary\":\"%s\",\"tags\":[],\"scope\":\"global\",", text
            printf "\"body\":\"%s\",\"sources\":[\"%s\"]}", text, ids[n]
        }
        print "],\"skipped\":[]}"
    }
'
