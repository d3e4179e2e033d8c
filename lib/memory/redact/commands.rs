//! Secrets in command lines: `mysql -pPASSWORD`, `echo PASSWORD | sudo -S`, and in calls of code and SQL that take them
//! by position.

use memchr::memmem;

use crate::memory::redact::near::Near;
use crate::memory::redact::value::{chosen, password, placeholder, random};

/// How a program takes a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `-pSECRET`
    Attached,
    /// `-p SECRET`
    Next,
    Either,
    /// `-u USER:SECRET`, attached or not, behind this byte.
    Behind(u8),
    /// The word that comes so many words after this one.
    After(usize),
    /// `-b NAME=SECRET`
    Cookie,
}
use Form::{After, Attached, Behind, Cookie, Either, Next};

/// Programs, a word that the command must have, a flag or word, and what comes with it.
const COMMANDS: &[(&[&str], &str, &str, Form)] = &[
    (&["sshpass"], "", "-p", Either),
    (&["mysql", "mysqldump", "mysqladmin", "mariadb", "mysqlimport", "mariadb-dump"], "", "-p", Attached),
    (&["docker", "podman", "helm", "nerdctl", "oc", "az", "buildah", "skopeo", "crane"], "login", "-p", Next),
    (&["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete", "ldappasswd"], "", "-w", Next),
    (&["redis-cli"], "", "-a", Next),
    (
        &["mongosh", "mongo", "mongodump", "mongorestore", "mongoimport", "mongoexport", "cqlsh"],
        "",
        "-p",
        Either,
    ),
    (&["sqlcmd", "bcp"], "", "-P", Either),
    (&["smbclient", "rpcclient", "smbget"], "", "-U", Behind(b'%')),
    (&["7z", "7za", "7zz", "rar", "unrar"], "", "-p", Attached),
    (&["zip", "unzip", "zipcloak"], "", "-P", Either),
    (&["openssl"], "", "-passin", Behind(b':')),
    (&["openssl"], "", "-passout", Behind(b':')),
    (&["openssl"], "", "-pass", Behind(b':')),
    (&["openssl"], "enc", "-k", Next),
    (&["openssl"], "", "-password", Behind(b':')),
    (&["keytool", "jarsigner"], "", "-storepass", Next),
    (&["keytool", "jarsigner"], "", "-keypass", Next),
    (&["keytool"], "", "-srcstorepass", Next),
    (&["keytool"], "", "-deststorepass", Next),
    (&["xfreerdp", "wlfreerdp", "mstsc"], "", "/p", Behind(b':')),
    (&["rdesktop"], "", "-p", Next),
    (&["cmdkey"], "", "/pass", Behind(b':')),
    (&["net use"], "", "/user", After(1)),
    (&["net user"], "", "", After(3)),
    (&["htpasswd"], "-b", "", After(4)),
    (&["nuget"], "", "-ApiKey", Next),
    (&["ngrok"], "", "add-authtoken", After(1)),
    (&["ngrok"], "", "authtoken", After(1)),
    (&["wandb"], "", "login", After(1)),
    (&["rabbitmqctl"], "", "add_user", After(2)),
    (&["rabbitmqctl"], "", "change_password", After(2)),
    (&["sqlplus", "expdp", "impdp"], "", "", Behind(b'/')),
    (&["curl"], "", "-u", Behind(b':')),
    (&["curl"], "", "--user", Behind(b':')),
    (&["curl"], "", "--proxy-user", Behind(b':')),
    (&["curl"], "", "-U", Behind(b':')),
    (&["curl"], "", "-b", Cookie),
    (&["curl"], "", "--cookie", Cookie),
    (&["lftp"], "", "-u", Behind(b',')),
    (&["aws configure"], "set", "aws_secret_access_key", After(1)),
    (&["aws configure"], "set", "aws_session_token", After(1)),
    (&["gh secret"], "set", "--body", Next),
    (&["gh secret"], "set", "-b", Next),
    (&["kinit", "evil-winrm", "crackmapexec", "netexec", "nxc"], "", "-p", Next),
    (&["nmcli"], "", "password", After(1)),
    (&["wpa_passphrase"], "", "", After(2)),
    (&["vncpasswd", "x11vnc"], "", "-passwd", Next),
];

pub(super) const PROGRAMS: &[&str] = &[
    "sshpass ", "mysql ", "mysqldump ", "mysqladmin ", "mariadb ", "mysqlimport ", "mariadb-dump ",
    "docker login", "podman login", "helm registry", "nerdctl login", "oc login", "az login",
    "buildah login", "skopeo login", "crane auth", "ldapsearch ", "ldapadd ", "ldapmodify ", "ldapwhoami ",
    "ldapdelete ", "ldappasswd ", "redis-cli ", "mongosh ", "mongo ", "mongodump ", "mongorestore ",
    "mongoimport ", "mongoexport ", "cqlsh ", "sqlcmd ", "bcp ", "smbclient ", "rpcclient ", "smbget ",
    "7z ", "7za ", "7zz ", "rar ", "unrar ", "zip ", "unzip ", "zipcloak ", "openssl ", "keytool ",
    "jarsigner ", "xfreerdp ", "wlfreerdp ", "mstsc ", "rdesktop ", "cmdkey ", "net use ", "net user ",
    "htpasswd ", "nuget ", "ngrok ", "wandb ", "rabbitmqctl ", "sqlplus ", "expdp ", "impdp ", "curl ",
    "lftp ", "aws configure", "gh secret", "kinit ", "evil-winrm ", "crackmapexec ", "netexec ", "nxc ",
    "nmcli ", "wpa_passphrase ", "vncpasswd ", "x11vnc ",
];

/// A word of a command line: without its quotes, and where it begins.
struct Word<'a> {
    text: &'a [u8],
    start: usize,
}

/// Splits as a shell does, as far as this matters here. Ends with the command.
fn words(line: &[u8], offset: usize) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < line.len() && words.len() < 48 {
        match line[at] {
            b' ' | b'\t' => at += 1,
            b'|' | b';' | b'&' | b'\n' | b'`' | b')' => break,
            // A line that goes on in the next.
            b'\\' if matches!(line.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
            quote @ (b'\'' | b'"') => {
                let inside = &line[at + 1..];
                let Some(end) = memchr::memchr(quote, inside) else { break };
                words.push(Word { text: &inside[..end], start: offset + at + 1 });
                at += end + 2;
            }
            _ => {
                let stop = |byte: &u8| byte.is_ascii_whitespace() || b"|;&'\"`<>".contains(byte);
                let rest = &line[at..];
                let mut end = rest.iter().position(stop).unwrap_or(rest.len());
                let mut text = &rest[..end];
                let mut start = at;
                // `-p'secret'`: a quote that belongs to the word.
                if let Some(quote @ (b'\'' | b'"')) = rest.get(end)
                    && let Some(more) = memchr::memchr(*quote, &rest[end + 1..])
                {
                    words.push(Word { text, start: offset + start });
                    text = &rest[end + 1..end + 1 + more];
                    start += end + 1;
                    end += more + 2;
                }
                if text.is_empty() && end == 0 {
                    break;
                }
                words.push(Word { text, start: offset + start });
                at += end;
            }
        }
    }
    words
}

/// A flag says what it is, so nearly anything counts.
fn secret(value: &[u8]) -> bool {
    !placeholder(value)
        && !matches!(value.first(), Some(b'-' | b'$' | b'@' | b'/'))
        && (password(value) || random(value) || value.len() >= 6 && value.iter().all(u8::is_ascii_digit))
}

pub(super) fn command(near: &mut Near) {
    let start = near.at;
    // One that is inside a command that has been read.
    if start < near.done.command {
        return;
    }
    let said = &near.bytes[start..near.end];
    let line = near.bytes;
    let line = &line[start..line.len().min(start + 480)];
    let line = &line[..line_end(line)];
    let words = words(line, start);
    near.done.command = words.last().map_or(near.end, |word| word.start);
    for (programs, needed, flag, form) in COMMANDS {
        let is = |program: &&str| {
            said.len() >= program.len() && said[..program.len()].eq_ignore_ascii_case(program.as_bytes())
        };
        if !programs.iter().any(is) || !needed.is_empty() && !words.iter().any(|word| has(word.text, needed))
        {
            continue;
        }
        if let Some((from, to)) = given(&words, flag, *form) {
            near.push(from, to, if *form == Cookie { "cookie" } else { "password" });
        }
    }
}

/// `-b` is also in `-bc`.
fn has(word: &[u8], needed: &str) -> bool {
    match needed.strip_prefix('-') {
        Some(letter) => {
            word.starts_with(b"-")
                && !word.starts_with(b"--")
                && memmem::find(word, letter.as_bytes()).is_some()
        }
        None => word == needed.as_bytes(),
    }
}

/// The end of a line, and of the lines that continue it.
fn line_end(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text)
        .find(|at| !matches!(text[..*at], [.., b'\\'] | [.., b'\\', b'\r']))
        .unwrap_or(text.len())
}

fn given(words: &[Word], flag: &str, form: Form) -> Option<(usize, usize)> {
    let whole = |word: &Word| (word.start, word.start + word.text.len());
    let at = match flag {
        "" => 0,
        _ => words.iter().position(|word| word.text.starts_with(flag.as_bytes()) && word.text != b"--")?,
    };
    let word = &words[at];
    let rest = word.text.get(flag.len()..)?;
    let next = |many: usize| words.get(at + many);
    // `-p` and then a quoted word directly behind it, or the next word.
    let attached = || match rest {
        [] => next(1).filter(|next| {
            next.start <= word.start + word.text.len() + 1 && next.start > word.start + word.text.len()
        }),
        _ => None,
    };
    let found = match form {
        Attached | Either if !rest.is_empty() => {
            let lead = usize::from(rest[0] == b'=');
            (word.start + flag.len() + lead, word.start + word.text.len())
        }
        Attached => whole(attached()?),
        Next | Either if rest.is_empty() => whole(next(1)?),
        Next | Either if rest[0] == b'=' => (word.start + flag.len() + 1, word.start + word.text.len()),
        Next | Either => return None,
        After(many) => {
            let (from, to) = whole(next(many)?);
            (from, to)
        }
        Behind(sign) => {
            let all = [word].into_iter().chain(next(1)).chain(next(2));
            all.filter_map(|word| {
                let skipped = if word.start == words[at].start { flag.len() } else { 0 };
                let value = word.text.get(skipped..)?;
                let value_at = word.start + skipped;
                let text = value.strip_prefix(b":").filter(|_| sign == b':' && skipped > 0);
                if let Some(text) = text {
                    return Some((value_at + 1, value_at + 1 + text.len()));
                }
                let colon =
                    memchr::memchr(sign, value).filter(|at| *at > 0 && !value[..*at].contains(&b'/'))?;
                let end = if sign == b'/' {
                    memchr::memchr(b'@', value).unwrap_or(value.len())
                } else {
                    value.len()
                };
                (end > colon).then_some((value_at + colon + 1, value_at + end))
            })
            .next()?
        }
        Cookie => {
            let value = next(1)?;
            let equals = memchr::memchr(b'=', value.text)?;
            let end = memchr::memchr(b';', value.text).unwrap_or(value.text.len());
            let text = value.text.get(equals + 1..end)?;
            return (text.len() >= 12 && random(text))
                .then_some((value.start + equals + 1, value.start + end));
        }
    };
    let text = words.iter().find_map(|word| {
        let from = found.0.checked_sub(word.start)?;
        word.text.get(from..found.1 - word.start)
    })?;
    secret(text).then_some(found)
}

/// `echo SECRET | sudo -S`, `sudo -S … <<< SECRET`, `ConvertTo-SecureString "SECRET"`
pub(super) fn piped(near: &mut Near) {
    let said = &near.bytes[near.at..near.end];
    let (before, behind) = (near.before(), near.behind());
    let line = near.at - before.len();
    let mut found = Vec::new();
    for echo in ["echo ", "printf "] {
        if let Some(at) = memmem::rfind(before, echo.as_bytes()) {
            let start = at + echo.len();
            let words = words(&before[start..], line + start);
            let value =
                words.iter().find(|word| !word.text.starts_with(b"-") && !word.text.starts_with(b"%"));
            found.extend(value.map(|word| (word.start, word.text)));
        }
    }
    if let Some(at) = memmem::find(behind, b"<<<") {
        let words = words(&behind[at + 3..], near.end + at + 3);
        found.extend(words.first().map(|word| (word.start, word.text)));
    }
    if said.eq_ignore_ascii_case(b"ConvertTo-SecureString") {
        let quoted = words(behind, near.end);
        found.extend(
            quoted.iter().find(|word| !word.text.starts_with(b"-")).map(|word| (word.start, word.text)),
        );
        // `'secret' | ConvertTo-SecureString`
        let source = before.trim_ascii_end().strip_suffix(b"|").map(<[u8]>::trim_ascii_end);
        if let Some([inside @ .., quote @ (b'\'' | b'"')]) = source
            && let Some(open) = memchr::memrchr(*quote, inside)
        {
            found.push((line + open + 1, &inside[open + 1..]));
        }
    }
    for (start, text) in found {
        // `bob:secret` for chpasswd.
        let user = if said.eq_ignore_ascii_case(b"chpasswd") {
            memchr::memchr(b':', text).map_or(0, |at| at + 1)
        } else {
            0
        };
        if secret(&text[user..]) {
            near.push(start + user, start + text.len(), "password");
        }
    }
}

/// `kubectl create secret generic x --from-literal=KEY=SECRET`: a secret under any key.
pub(super) fn literal(near: &mut Near) {
    let behind = near.behind();
    let Some(equals) = memchr::memchr(b'=', behind) else { return };
    let value = &behind[equals + 1..];
    let words = words(&value[..value.len().min(128)], near.end + equals + 1);
    if let Some(word) = words.first()
        && !placeholder(word.text)
        && word.text.len() >= 4
    {
        near.push(word.start, word.start + word.text.len(), "secret");
    }
}

/// `send "SECRET\r"` of a script for expect(1) that waited for a password.
pub(super) fn expect(near: &mut Near) {
    let before = &near.bytes[near.at.saturating_sub(200)..near.at];
    if memmem::rfind(before, b"assword").is_none() && memmem::rfind(before, b"assphrase").is_none() {
        return;
    }
    let behind = near.behind();
    let Some(end) = memchr::memchr2(b'"', b'\\', behind) else { return };
    if secret(&behind[..end]) {
        near.push(near.end, near.end + end, "password");
    }
}

/// `SetBasicAuth("bob", "SECRET")`, `auth=('bob', 'SECRET')`, `setPassword("SECRET")`: the last string that could be
/// one.
pub(super) fn call(near: &mut Near) {
    let behind = near.behind();
    let said = near.bytes[near.at..near.end].to_ascii_lowercase();
    let behind = &behind[..memchr::memchr(b')', behind).unwrap_or(behind.len())];
    let alone = said.ends_with(b"password(");
    let (mut at, mut number) = (0, 0);
    while let Some(open) = memchr::memchr2(b'"', b'\'', &behind[at..]).map(|open| at + open) {
        let Some(end) = memchr::memchr(behind[open], &behind[open + 1..]) else { return };
        let text = &behind[open + 1..open + 1 + end];
        number += 1;
        if (alone || number >= 2 || !behind[..open].trim_ascii().is_empty())
            && secret(text)
            && (alone || chosen(text) || random(text))
        {
            near.push(near.end + open + 1, near.end + open + 1 + end, "password");
            return;
        }
        at = open + end + 2;
        if number == 4 {
            return;
        }
    }
}

/// `IDENTIFIED BY 'SECRET'`, `PASSWORD 'SECRET'`
pub(super) fn sql(near: &mut Near) {
    let behind = near.behind();
    let lead = behind.iter().take(12).take_while(|byte| b" =\\".contains(byte)).count();
    let Some(quote @ (b'\'' | b'"')) = behind.get(lead) else { return };
    let inside = &behind[lead + 1..];
    let Some(end) = memchr::memchr(*quote, inside) else { return };
    if secret(&inside[..end]) {
        near.push(near.end + lead + 1, near.end + lead + 1 + end, "password");
    }
}
