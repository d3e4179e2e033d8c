//! Names in a prompt that can only mean one thing: identifiers, paths, flags, and the commands of a note. A note that has
//! one answers the prompt, however little else of it matches.

use crate::base::text::is_word;
use crate::memory::search::document::Document;
use crate::memory::search::language::is_stop_word;
use std::collections::BTreeSet;

/// A name that more notes have does not tell them apart.
pub(super) const NOTES: usize = 5;
/// A prompt has at most this many names: the first ones.
const MOST: usize = 64;
/// A longer text mentions much that it is not about, so only its title, tags and summary count. In bytes.
const LONG: usize = 4096;
/// Names and commands of every project, which say nothing about the subject. In lower case.
const COMMON: &str = " --all --force --help --verbose --version __init__.py a11y app.js app.py asp.net base64 c++11 \
    cargo.lock cargo.toml changelog.md ci/cd datetime docker-compose.yml e2e ec2 es6 github github.com gitlab go.mod go.sum \
    graphql h264 http/1.1 http/2 http2 i18n index.html index.js index.ts ios ipv4 ipv6 iso-8601 javascript k8s keyerror \
    l10n lib.rs localhost mac-os macos main.go main.py main.rs md5 mod.rs mongodb mp3 mp4 mysql next.js node.js \
    node_modules oauth2 openai openapi openssl package-lock.json package.json postgresql powershell pyproject.toml python2 \
    python3 rabbitmq react.js readme.md requirements.txt rust_backtrace sha1 sha256 src/lib.rs src/main.rs top10 \
    tsconfig.json typeerror typescript utf-8 utf8 valueerror vue.js websocket win32 x64 x86-64 x86_64 ";
/// What the second word of a message is, and never of a command: `undefined is not iterable`.
const OF_MESSAGES: &str = " are at cannot for from has have in is of on the to was were with without ";
const COMMON_COMMANDS: &str = "|cargo build|cargo check|cargo run|cargo test|docker build|docker compose|docker run|git add|\
    git checkout|git commit|git diff|git log|git merge|git pull|git push|git rebase|git reset|git status|go build|go run|\
    go test|make build|make test|npm ci|npm install|npm run|npm start|npm test|npx run|pip install|pnpm build|pnpm install|pnpm run|\
    pnpm test|uv run|yarn install|yarn run|yarn test|";

#[derive(Debug, Default)]
pub(super) struct PromptNames {
    names: Vec<Name>,
    /// The prompt's words, each after a space, for commands of two or three words.
    words: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Name {
    text: String,
    /// It may be plain language: it counts only where a note has it as code or as a tag.
    is_weak: bool,
}

impl PromptNames {
    pub(super) fn of(prompt: &str) -> PromptNames {
        let mut names: Vec<Name> = Vec::new();
        for token in prompt.split(|c: char| !is_in_name(c)) {
            if let Some(name) = name(token)
                && names.len() < MOST
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        let words = prompt
            .split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | ',' | '?' | '!' | ';'));
        let words = words.map(|word| word.trim_end_matches(['.', ':'])).filter(|word| !word.is_empty());
        let words = words.flat_map(|word| [" ", word]).collect::<String>().to_lowercase() + " ";
        PromptNames { names, words }
    }

    /// Those that a note has.
    pub(super) fn in_note(&self, document: &Document) -> Vec<String> {
        let Document { title, tags, summary, body } = document;
        let head = format!("{title}\n{summary}").to_lowercase();
        let tags: String =
            tags.iter().flat_map(|tag| [tag.rsplit("__").next().unwrap_or(tag), "\n"]).collect();
        let body = if body.len() > LONG { String::new() } else { body.to_lowercase() };
        let mut code = code_of(&body);
        code.extend(code_of(&head));
        let has = |name: &&Name| {
            let is_tag = || has_word(&tags, &name.text.replace(['_', '.', '/', ':'], "-"));
            match name.is_weak {
                true => code.iter().any(|code| has_word(code, &name.text)) || is_tag(),
                false => has_word(&head, &name.text) || has_word(&body, &name.text) || is_tag(),
            }
        };
        let names = self.names.iter().filter(has).map(|name| name.text.clone());
        let commands: BTreeSet<String> = code.iter().filter_map(|code| command(code)).collect();
        let is_said = |command: &String| self.words.contains(&format!(" {command} "));
        names.chain(commands.into_iter().filter(is_said)).collect()
    }
}

/// Do the sessions of most projects run these two words?
pub fn is_common_command(two: &str) -> bool {
    COMMON_COMMANDS.contains(&format!("|{two}|"))
}

/// Is it a name that every project has?
pub fn is_common(name: &str) -> bool {
    COMMON.contains(&format!(" {} ", name.to_lowercase()))
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || "_./:@-~+\\".contains(c)
}

fn name(token: &str) -> Option<Name> {
    let mut token = token.trim_start_matches([':', '\\', '+']).trim_end_matches(['.', ':', '/', '-', '\\']);
    // A place in a file.
    while let Some((file, number)) = token.rsplit_once(':')
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && file.contains(|c: char| c.is_alphabetic())
    {
        token = file;
    }
    let token = token.strip_prefix("./").unwrap_or(token);
    let text = token.to_lowercase();
    if is_common(&text) || text.contains("://") {
        return None;
    }
    is_weak(token).map(|is_weak| Name { text, is_weak })
}

/// Whether it is a name as plain language may have one: `read-only`, `and/or`, `GitHub`. `None`: it is no name.
fn is_weak(token: &str) -> Option<bool> {
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    if letters == 0 {
        // A port or a ticket; a year and a status are no name.
        let is_name = digits == token.len() && digits > 3 && !(digits == 4 && token.starts_with(['1', '2']));
        return is_name.then_some(false);
    }
    if letters + digits < 3 {
        return None;
    }
    let inner = |mark: char| token.trim_matches(mark).contains(mark);
    let parts: Vec<&str> =
        token.split(['.', '/', '-', '_', ':', '@']).filter(|part| !part.is_empty()).collect();
    // `e.g`, `z.B`, `i/o`
    if parts.len() > 1 && parts.iter().all(|part| part.chars().count() < 3) && digits == 0 {
        return None;
    }
    let starts_with_letter = token.starts_with(|c: char| c.is_alphabetic());
    // `1.5x`
    let is_number = token.starts_with(|c: char| c.is_ascii_digit());
    let has_hump =
        token.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    if token.starts_with("--") || token.starts_with(['/', '~']) && parts.len() > 1 {
        Some(false)
    } else if token.starts_with(['-', '.']) {
        // `-Oz`, `.envrc`, `.NET`
        Some(true)
    } else if ['_', '@', ':', '\\'].into_iter().any(inner) || inner('.') && !is_number {
        Some(false)
    } else if inner('/') {
        Some(parts.len() <= 2 && digits == 0)
    } else if inner('-') {
        Some(digits == 0 || !starts_with_letter)
    } else if has_hump {
        Some(!token.starts_with(|c: char| c.is_lowercase()))
    } else {
        (digits > 0 && starts_with_letter).then_some(false)
    }
}

/// Is `name` there, not as a part of a longer word?
pub fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let mut next = after.chars();
        // `app-5` is not in `app-50`, `vite.config` not in `vite.config.ts`, and a directory is not each file in it.
        let goes_on = match next.next() {
            Some('-' | '.' | '/') => next.next().is_some_and(is_word),
            Some(c) => is_word(c),
            None => false,
        };
        !goes_on && !text[..at].ends_with(|c: char| is_word(c) || c == '-')
    })
}

/// What stands between backticks, and the lines of fences.
pub fn code_of(text: &str) -> Vec<&str> {
    let mut code = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            code.push(line.trim());
        } else {
            code.extend(line.split('`').skip(1).step_by(2));
        }
    }
    code
}

/// The first words of a line of code, which say what is run.
fn command(code: &str) -> Option<String> {
    let code = code.trim_start_matches(['$', ' ']);
    let mut words = code.split_whitespace();
    let (program, verb) = (words.next()?, words.next()?);
    let is_program = program.len() > 1
        && program.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
        && !is_stop_word(program);
    let is_message = OF_MESSAGES.contains(&format!(" {verb} "));
    if !is_program || is_message || !verb.starts_with(|c: char| c.is_alphanumeric() || c == '-') {
        return None;
    }
    let two = format!("{program} {verb}");
    if is_common_command(&two) { Some(format!("{two} {}", words.next()?)) } else { Some(two) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prompt: &str, body: &str) -> Vec<String> {
        PromptNames::of(prompt).in_note(&Document {
            title: "Title",
            tags: &[],
            summary: "",
            body: body.into(),
        })
    }

    #[test]
    fn a_name_is_an_identifier_a_path_a_flag_or_a_command() {
        for (prompt, body, name) in [
            ("Fix window_p95.", "The gauge window_p95 is in ms.", "window_p95"),
            ("what is `window_p95`?", "See WINDOW_P95.", "window_p95"),
            ("open deploy/nginx.conf:12 please", "`deploy/nginx.conf`", "deploy/nginx.conf"),
            ("nginx.conf is wrong", "in `deploy/nginx.conf`", "nginx.conf"),
            ("why --no-verify?", "Never `--no-verify`.", "--no-verify"),
            ("http::retry() loops", "`http::retry` doubles", "http::retry"),
            ("is withClock broken", "`withClock(x)`", "withclock"),
            ("app-5 is down", "Staging runs on app-5.", "app-5"),
            ("port 9100 hangs", "ZPL over port 9100", "9100"),
            ("run make stage", "Deploy with `make stage`.", "make stage"),
            ("does cargo test --doc work", "`cargo test --doc` only", "cargo test --doc"),
            ("look at SHOP-1412", "Tracked as SHOP-1412.", "shop-1412"),
            ("the ops-noise channel", "`ops-noise` first", "ops-noise"),
        ] {
            assert!(
                found(prompt, body).contains(&name.to_owned()),
                "{prompt}: {:?}",
                PromptNames::of(prompt).names
            );
        }
        let tags = ["topic__window-p95".to_owned()];
        let document = Document { title: "T", tags: &tags, summary: "", body: "".into() };
        assert_eq!(PromptNames::of("window_p95").in_note(&document), ["window_p95"]);
    }

    #[test]
    fn plain_language_is_no_name() {
        for (prompt, body) in [
            (
                "make it read-only and/or optional, e.g. in 2 steps, 404 or 2024",
                "read-only and/or e.g. 2 404 2024",
            ),
            ("on GitHub in TypeScript", "on GitHub in TypeScript"),
            ("app-5 is down", "app-50 app-5.x my-app-5"),
            ("git commit that", "`git commit`"),
            ("src/main.rs:42:13", "`src/main.rs`"),
            ("see window_p9", "window_p95"),
            ("type 'undefined' is not assignable", "`undefined is not iterable`"),
        ] {
            assert_eq!(found(prompt, body), [""; 0], "{prompt}");
        }
        let long = format!("window_p95 {}", "x ".repeat(LONG));
        assert_eq!(found("window_p95", &long), [""; 0]);
    }
}
