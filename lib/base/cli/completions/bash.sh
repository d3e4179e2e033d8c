# What is typed so far: $word, the option before it, and what of $word is before the word that readline replaces.
_FAMILY_typed() {
    local line="${COMP_LINE:0:COMP_POINT}" now="$1"
    word="${line##*[[:space:]]}"
    line="${line%"$word"}"
    line="${line%"${line##*[![:space:]]}"}"
    option="${line##*[[:space:]]}"
    case "$word" in --*=*) option="${word%%=*}" word="${word#*=}" ;; esac
    # Readline begins a word at these.
    case "$now" in "=" | ":") now="" ;; esac
    before="${word%"$now"}"
}
_FAMILY_words() {
    COMPREPLY=($(compgen -W "$1" -- "$word"))
}
_FAMILY_files() {
    compopt -o default 2>/dev/null
}
# What the program knows of a kind. It is data: nothing in it is expanded, and what a value is known by is only listed.
_FAMILY_values() {
    local value known_by
    local -a values=() listed=()
    while IFS=$'\t' read -r value known_by; do
        values+=("${value#"$before"}")
        listed+=("${value#"$before"}${known_by:+  $known_by}")
    done < <(FAMILY completions "$1" -- "$word" 2>/dev/null)
    COMPREPLY=("${values[@]}")
    # These types of completion insert nothing beyond what all have in common.
    case "${COMP_TYPE:-9}" in 33 | 63) [ "${#values[@]}" -lt 2 ] || COMPREPLY=("${listed[@]}") ;; esac
}
