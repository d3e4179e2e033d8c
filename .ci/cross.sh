# For .ci/check-macos and .ci/release: what it takes to compile for a system that rustup has no standard library for here.
# Sets `target` and `kit`, and makes `$kit/cc`, `$kit/c++` and `$kit/ar`.

target=${CARGO_TARGET_DIR:-$PWD/target}
kit=$target/tools/$zig_target
mkdir -p "$kit"

# The source of the standard library, where rustup puts it: from rustup, or from Debian's package of the same release.
release=$(rustc --version | cut -d ' ' -f 2)
library=$(rustc --print sysroot)/lib/rustlib/src/rust
from_debian() {
    local mirror suite path
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    for suite in trixie-backports forky sid; do
        path=$(curl -fsS "${mirror%/}/dists/$suite/main/binary-amd64/Packages.xz" | xz -dc |
            sed -n "/^Package: rust-src\$/,/^\$/s|^Filename: \(.*rust-src_$release[+~-].*\)|\1|p") || continue
        [ -n "$path" ] || continue
        rm -rf "$kit/deb"
        curl -fsS -o "$kit/rust-src.deb" "${mirror%/}/$path" && dpkg-deb -x "$kit/rust-src.deb" "$kit/deb" || return
        mkdir -p "${library%/*}" && cp -r "$kit/deb/usr/src/rustc-$release" "$library"
        rm -r "$kit/deb" "$kit/rust-src.deb"
        return
    done
    return 1
}
need_library() {
    [ -d "$library/library/std" ] || timeout 120 rustup component add rust-src >/dev/null 2>&1 ||
        from_debian 2>/dev/null ||
        unknown "there is no source of Rust $release's standard library: rustup component add rust-src"
}

# A C compiler with the headers of many systems: zig, which PyPI has as a package. Crates that build C give it the flags of
# other compilers, which zig has in another form.
need_zig() {
    local zig=$target/tools/zig/bin/python
    if ! "$zig" -c 'import ziglang' 2>/dev/null; then
        # Debian has it in a package of its own.
        python3 -c 'import ensurepip' 2>/dev/null || apt-get install -y -qq python3-venv >/dev/null 2>&1 || true
        { python3 -m venv "$target/tools/zig" && "$zig" -m pip install --quiet ziglang; } >"$kit/zig.log" 2>&1 ||
            unknown "zig could not be installed: $(tail -n 1 "$kit/zig.log")"
    fi
    local language
    for language in cc c++; do
        cat >"$kit/$language" <<END
#!/usr/bin/env bash
words=()
while [ \$# -gt 0 ]; do
    case \$1 in
    -arch | -isysroot) shift ;;
    --target=* | -mmacosx-version-min=*) ;;
    *) words+=("\$1") ;;
    esac
    shift
done
# Without optimisation, zig would build in checks of undefined behaviour.
exec "$zig" -m ziglang $language -target $zig_target -fno-sanitize=undefined "\${words[@]}"
END
    done
    printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$zig" >"$kit/ar"
    chmod +x "$kit/cc" "$kit/c++" "$kit/ar"
}
