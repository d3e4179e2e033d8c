#compdef @NAMES@
# A dispatcher's command is completed like the program that it runs. Fails while the command itself is typed. Behind help is one, too.
__@FAMILY@_below() {
    (( CURRENT > 2 )) || return 1
    local below="_@FAMILY@_${words[2]//-/_}"
    [[ $words[2] != help ]] || below="_@FAMILY@"
    shift words
    (( CURRENT-- ))
    (( $+functions[$below] )) && $below
    return 0
}
__@FAMILY@_nothing() {
    return 1
}
__@FAMILY@_words() {
    compadd -- "$@"
}
__@FAMILY@_files() {
    _files
}
# What the program knows of a kind. It is data: what a value is known by is only listed.
__@FAMILY@_values() {
    local value known_by
    local -a values listed
    while IFS=$'\t' read -r value known_by; do
        values+=("$value")
        listed+=("$value${known_by:+  $known_by}")
    done < <(@FAMILY@ completions "$1" -- "$PREFIX" 2>/dev/null)
    compadd -l -d listed -a values
}
@FUNCTIONS@
# Read by eval, this registers a function for each program. As a file on fpath, it is called as the function of the first
# program, once.
() {
    local name
    for name in @NAMES@; do
        compdef "_${name//-/_}" "$name"
    done
}
if [ -n "$service" ]; then
    "_${service//-/_}" "$@"
fi
