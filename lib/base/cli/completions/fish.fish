# The word at this place is one of those that follow; if none follow, there is no word at this place.
function __@FAMILY@_word
    set -l words (commandline -opc)
    if set -q argv[2]
        contains -- "$words[$argv[1]]" $argv[2..-1]
    else
        not set -q words[$argv[1]]
    end
end
@FUNCTIONS@
