# What is typed so far: $word, the option before it, and what of $word is before the word that readline replaces.
__@FAMILY@_typed() {
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
# A dispatcher's command is completed like the program that it runs. Fails while the command itself is typed. Behind help is one, too.
__@FAMILY@_below() {
    ! __@FAMILY@_first || return 1
    local __@FAMILY@_at=$((COMP_CWORD - 1)) below="_@FAMILY@_${COMP_WORDS[1]//-/_}"
    ! declare -F "$below" >/dev/null || "$below" "$@"
    return 0
}
# The first word of a program is typed.
__@FAMILY@_first() {
    [ "${__@FAMILY@_at:-$COMP_CWORD}" -le 1 ] || [ "$COMP_CWORD ${COMP_WORDS[1]}" = "2 help" ]
}
__@FAMILY@_nothing() {
    COMPREPLY=()
}
__@FAMILY@_words() {
    COMPREPLY=($(compgen -W "$*" -- "$word"))
}
__@FAMILY@_files() {
    compopt -o default 2>/dev/null
}
# What the program knows of a kind. It is data: nothing in it is expanded, and what a value is known by is only listed.
__@FAMILY@_values() {
    local value known_by
    local -a values=() listed=()
    while IFS=$'\t' read -r value known_by; do
        values+=("${value#"$before"}")
        listed+=("${value#"$before"}${known_by:+  $known_by}")
    done < <(@FAMILY@ completions "$1" -- "$word" 2>/dev/null)
    COMPREPLY=("${values[@]}")
    # These types of completion insert nothing beyond what all have in common.
    case "${COMP_TYPE:-9}" in 33 | 63) [ "${#values[@]}" -lt 2 ] || COMPREPLY=("${listed[@]}") ;; esac
}
@FUNCTIONS@
__@FAMILY@_register() {
    local name
    for name in @NAMES@; do
        # bash 3.2 cannot say in a function that files are meant; there they are what is offered last.
        if [ "${BASH_VERSINFO[0]}" -ge 4 ]; then
            complete -F "_${name//-/_}" "$name"
        else
            complete -o default -F "_${name//-/_}" "$name"
        fi
    done
}
__@FAMILY@_register
