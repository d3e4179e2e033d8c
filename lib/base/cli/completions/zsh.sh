# What the program knows of a kind. The last argument is the kind, those before it are for compadd.
_FAMILY_values() {
    local value known_by
    local -a values listed
    while IFS=$'\t' read -r value known_by; do
        values+=("$value")
        listed+=("$value${known_by:+  $known_by}")
    done < <(FAMILY completions "${@[-1]}" -- "$PREFIX" 2>/dev/null)
    compadd "${@[1,-2]}" -l -d listed -a values
}
