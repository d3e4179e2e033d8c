//! The address of the remote that notes are synced with.

use crate::base::env::Env;
use std::path::Path;

/// The longest address, in bytes.
const CAP: usize = 2_000;
/// A name before `@` in an http address that is longer is a key, not a name.
const LONGEST_USER: usize = 19;

/// The address for git: a URL, `host:path`, or an absolute path for a folder; relative ones are relative to `dir`.
///
/// # Errors
/// Why it cannot be used, without the address itself: there may be a password in it, and git would keep it in a file.
pub fn address(text: &str, dir: &Path, env: &Env) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("is empty; write a URL, HOST:PATH or a folder");
    }
    if text.len() > CAP || text.chars().any(char::is_control) {
        return Err("is longer than 2000 bytes or has control characters");
    }
    if text.starts_with('-') {
        return Err("begins with \"-\"; write a URL, HOST:PATH or a folder");
    }
    if text.contains("::") {
        return Err("names a program that git would run; use a URL, HOST:PATH or a folder");
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        if !["https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"].contains(&scheme) {
            return Err("has a scheme that is none of https, http, ssh, git and file");
        }
        let host = rest.split('/').next().unwrap_or_default();
        let user = host.rsplit_once('@').map_or("", |(user, _)| user);
        let is_key = scheme.starts_with("http") && user.len() > LONGEST_USER;
        if user.contains(':') || is_key {
            return Err(
                "holds a password or a key, which git would keep in a file; leave it out, and give it to git's \
                        credential helper",
            );
        }
        return Ok(text.to_owned());
    }
    let is_scp = text.find(':').is_some_and(|colon| !text[..colon].contains('/'));
    if is_scp {
        return Ok(text.to_owned());
    }
    let path = dir.join(env.expand(text)).components().collect::<std::path::PathBuf>();
    path.to_str().map(str::to_owned).ok_or("leads to a folder whose name is not valid UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn addresses_are_those_of_git_and_folders_are_absolute() {
        let env = pretend(&[("HOME", "/h")]);
        let of = |text: &str| address(text, Path::new("/c"), &env);
        for (text, expected) in [
            ("~/x.git", "/h/x.git"),
            ("x.git", "/c/x.git"),
            ("/srv/x", "/srv/x"),
            ("host:x.git", "host:x.git"),
            ("git@host:x.git", "git@host:x.git"),
            ("https://host/x", "https://host/x"),
            ("https://me@host/x", "https://me@host/x"),
            ("file:///srv/x", "file:///srv/x"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(expected));
        }
        for text in [
            "",
            " ",
            "-uhost",
            "ext::sh -c x",
            "fd::3",
            "https://me:pass@host/x",
            "ftp://host/x",
            "a\nb",
            "https://ghp_0123456789012345678901@github.com/x",
            "ssh://me:pass@host/x",
        ] {
            let why = of(text).unwrap_err();
            assert!(!why.contains("pass@") && !why.contains("ghp_"), "{why}");
        }
    }
}
