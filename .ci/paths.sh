# For .ci/build and .ci/release: the options that write other names for the directories of this machine into programs, where panic
# messages and C's __FILE__ would show them. Sets `rust_paths` and `c_paths`. Of several that match, the last one counts, and the
# others may be below $PWD.

rust_paths='' c_paths=''
for renamed in "$PWD=/axe" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$(rustc --print sysroot)=/rust" "${CARGO_TARGET_DIR:-$PWD/target}=/target"; do
    case $renamed in *[[:space:]]*)
        echo "build: a directory with a space in its name: \"${renamed%=*}\"; build elsewhere" >&2
        exit 1
        ;;
    esac
    rust_paths="$rust_paths --remap-path-prefix=$renamed"
    c_paths="$c_paths -ffile-prefix-map=$renamed"
done
