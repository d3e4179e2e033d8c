//! Is a value a secret, or a placeholder, a word, or a name in code?

/// How much of a value is checked, in bytes: a random value is random from the start.
const SAMPLE: usize = 128;

/// Does it have enough different characters, unlike `xxxxxxxx`?
pub(super) fn varied(value: &[u8]) -> bool {
    different(&value[..value.len().min(SAMPLE)]) >= 6
}

fn different(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    value.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Was it made by a random generator? Words rarely change between lower case, upper case, digits and other
/// characters, and their letter pairs are those of a language; random characters differ in both.
pub(super) fn random(value: &[u8]) -> bool {
    let value = &value[..value.len().min(SAMPLE)];
    if value.len() < 12 || !value.iter().all(u8::is_ascii_graphic) || !varied(value) {
        return false;
    }
    let (mut changes, mut pairs, mut common) = (0, 0, 0);
    for two in value.windows(2) {
        let (a, b) = (char_kind(two[0]), char_kind(two[1]));
        // A capitalised word does not count as a change.
        if a != b && (a, b) != (CharKind::Upper, CharKind::Lower) {
            changes += 1;
        }
        if two[0].is_ascii_alphabetic() && two[1].is_ascii_alphabetic() {
            pairs += 1;
            common += usize::from(follows(two[0], two[1]));
        }
    }
    let changing = changes as f32 / (value.len() - 1) as f32;
    let worded = if pairs == 0 { 0.5 } else { common as f32 / pairs as f32 };
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    match changing {
        // Hexadecimal digits include few letters.
        some if some >= 0.12 && digits * 4 >= value.len() => true,
        many if many >= 0.33 => worded < 0.85,
        some if some >= 0.12 => worded < 0.60,
        _ => pairs >= 11 && pairs + 1 == value.len() && worded < 0.50,
    }
}

/// Could a person have chosen it as a password: letters with digits or other characters?
pub(super) fn password(value: &[u8]) -> bool {
    if !(6..=128).contains(&value.len()) || value.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()).count();
    // `-`, `_`, `.`, `/` and `:` also join words, and brackets enclose them.
    let signs =
        value.iter().filter(|byte| byte.is_ascii_punctuation() && !b"-_./:[]<>(){}|".contains(byte)).count();
    letters > 0 && (digits > 0 || (signs > 0 && letters + signs >= 8)) && different(value) >= 4
}

/// Did a person make it up, where nothing else says that it is not code: no number, no name with a number?
pub(super) fn chosen(value: &[u8]) -> bool {
    if value.len() > WORDY {
        return false;
    }
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let joins = |byte: &u8| b"()[]{}<>\"'`,;|\\$=&".contains(byte);
    // `self.password2`, `path/to/file2`, `Kind::Two2`
    let path = value.windows(2).any(|two| two == b"::") || value.contains(&b'/');
    let dotted = value.windows(2).any(|two| two[0] == b'.' && two[1].is_ascii_alphabetic());
    let core = value.trim_ascii_end();
    let core = &core[..core.len() - core.iter().rev().take_while(|byte| b"!?".contains(byte)).count()];
    let sign = core.iter().any(|byte| b"!#%^*+?@~".contains(byte));
    (digits > 0 || sign)
        && digits < value.len()
        && !value.iter().any(joins)
        && !path
        && !dotted
        && password(value)
        && !numbered(value)
        && !of_words(value, &[PLACEHOLDERS, CODE])
}

/// A size, a date, a version, or hexadecimal: `128KiB`, `2024-01-02T03`, `v1.2.3-rc4`, `0x12ab`.
fn numbered(value: &[u8]) -> bool {
    let first = if matches!(value.first(), Some(b'v' | b'V')) { 1 } else { 0 };
    let leading =
        value[first..].iter().take_while(|byte| byte.is_ascii_digit() || b".-:_+".contains(byte)).count();
    leading > 0 && {
        let tail = &value[first + leading..];
        tail.len() <= 3
            || value.starts_with(b"0x")
            || memchr::memchr2(b'.', b'-', &value[..first + leading]).is_some()
    }
}

/// Is it, as a whole, a placeholder or a reference to a value elsewhere? A part of a password may be any word.
pub(super) fn placeholder(value: &[u8]) -> bool {
    let sample = &value[..value.len().min(SAMPLE)];
    let opens = match sample {
        [] => true,
        [b'$', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'{' | b'(' | b'_' | b'['),
        [b'&', next, ..] => next.is_ascii_alphabetic(),
        [b'%', .., last] => *last == b'%' || sample.len() == 2,
        [b'<', .., last] => *last == b'>',
        [b'{', .., last] => *last == b'}',
        [b'[', .., last] => *last == b']',
        [b'(', .., last] => *last == b')',
        _ => false,
    };
    let has = |part: &&str| memchr::memmem::find(sample, part.as_bytes()).is_some();
    opens
        || (sample.iter().any(|byte| b".*{$#<:\xe2xX%".contains(byte)) && REFERENCES.iter().any(has))
        || sample.ends_with(b"EXAMPLE")
        || sample.ends_with(b"EXAMPLEKEY")
        || counted(sample)
        || value.len() <= WORDY && of_words(sample, &[PLACEHOLDERS])
}

/// The longest placeholder that is made of words.
const WORDY: usize = 64;

/// Signs of a template, of something left out, or of an address.
const REFERENCES: &[&str] = &["...", "…", "xxxx", "XXXX", "****", "•••", "${", "$(", "{{", "#{", "<%", "://"];

/// `1234567890`, `abcdefgh`, `00000000`: most characters follow from the one before.
fn counted(value: &[u8]) -> bool {
    let follows = |two: &&[u8]| {
        two[1] == two[0] || two[1] == two[0].wrapping_add(1) || [&b"90"[..], b"9a", b"0a"].contains(two)
    };
    let many = value.iter().filter(|byte| byte.is_ascii()).count();
    many == value.len()
        && value.len() >= 6
        && value.windows(2).filter(follows).count() * 10 >= value.len() * 6
}

/// Does it consist of nothing but these words, the signs between them, and a number that only counts?
fn of_words(value: &[u8], lists: &[&[&str]]) -> bool {
    if value.len() > SAMPLE || value.iter().any(|byte| b"!#%^*+?@~".contains(byte)) {
        return false;
    }
    let mut letters = false;
    for word in value.split(|byte| !byte.is_ascii_alphanumeric()) {
        let mut rest = word;
        while !rest.is_empty() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 {
                let number = &rest[..digits];
                if !(digits < 2 || b"1234567890".starts_with(number) || SIZES.contains(&number)) {
                    return false;
                }
                rest = &rest[digits..];
                continue;
            }
            letters = true;
            let run = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            if !is_made_of(&rest[..run], lists) {
                return false;
            }
            rest = &rest[run..];
        }
    }
    letters
}

/// Numbers in the names of types and methods.
const SIZES: &[&[u8]] = &[
    b"16", b"32", b"64", b"128", b"224", b"256", b"384", b"512", b"1024", b"2048", b"4096", b"509", b"25519",
];

/// Can the letters be cut into words of the lists, without a rest?
fn is_made_of(letters: &[u8], lists: &[&[&str]]) -> bool {
    const LONGEST: usize = 64;
    if letters.len() > LONGEST {
        return false;
    }
    if letters.len() == 1 {
        return true;
    }
    let mut can_end = [false; LONGEST + 1];
    can_end[0] = true;
    for from in 0..letters.len() {
        if !can_end[from] {
            continue;
        }
        for word in lists.iter().copied().flatten() {
            let to = from + word.len();
            if letters.get(from..to).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes())) {
                can_end[to] = true;
            }
        }
    }
    can_end[letters.len()]
}

/// Words of placeholders.
const PLACEHOLDERS: &[&str] = &[
    "your", "my", "the", "an", "of", "for", "to", "in", "at", "is", "api", "key", "keys", "token", "tokens",
    "secret", "secrets", "password", "passwd", "passwort", "pass", "pwd", "passphrase", "change", "changeme",
    "changed", "me", "it", "this", "that", "here", "goes", "right", "example", "examples", "sample", "test",
    "tests", "testing", "tester", "fake", "mock", "dummy", "placeholder", "insert", "replace", "replaced",
    "with", "todo", "fixme", "foo", "bar", "baz", "foobar", "abc", "xyz", "abcdef", "hidden", "redacted",
    "none", "null", "nil", "undefined", "value", "string", "some", "any", "new", "old", "real", "client",
    "access", "auth", "personal", "id", "db", "database", "app", "enter", "put", "paste", "xxx", "bearer",
    "private", "public", "account", "service", "project", "org", "user", "username", "admin", "root",
    "default", "local", "dev", "prod", "server", "not", "very", "super", "long", "strong", "random",
    "generated", "invalid", "valid", "wrong", "bad", "good", "from", "env", "file", "and", "or", "oauth",
    "session", "login", "credential", "credentials", "hash", "hashed", "encrypted", "signing", "webhook",
    "bot", "empty", "required", "optional", "unused", "demo", "temp", "tmp", "if", "needed", "com", "github",
    "openai", "anthropic", "first", "second", "other", "another", "only", "no", "true", "false",
];

/// Words of names in code that stand after a name for secrets.
const CODE: &[&str] = &[
    "str", "int", "uint", "float", "double", "vec", "byte", "bytes", "char", "bool", "base", "sha", "md",
    "utf", "http", "https", "ipv", "ed", "rsa", "aes", "ecdsa", "argon", "bcrypt", "scrypt", "crc", "hmac",
    "pbkdf", "len", "length", "size", "get", "set", "arg", "args", "param", "params", "var", "val", "num",
    "number", "type", "types", "kind", "field", "node", "item", "index", "name", "names", "data", "text",
    "code", "line", "input", "output", "result", "ident", "expr", "stmt", "lit", "ref", "ptr", "buf",
    "buffer", "next", "prev", "left", "right", "min", "max", "pos", "start", "end", "self", "mut", "opt",
    "option", "some", "fn", "func", "function", "latin", "iso", "big", "enum", "struct", "impl", "tree",
    "list", "map", "path", "url", "uri", "req", "res", "ctx", "obj", "object", "tmp", "read", "write",
    "send", "parse", "parser", "lexer", "match", "case", "state", "step", "stage", "phase", "level", "group",
    "class", "mode", "version", "rev", "part", "chunk", "block", "offset", "cap", "count", "digest", "salt",
    "nonce", "iv", "block", "cipher", "algo", "method", "scheme", "window", "win", "linux", "amd", "arm",
    "gpt", "claude", "llama", "mail", "email", "smtp", "mysql", "postgres", "sql", "redis", "utc", "py",
    "python", "js", "es",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    Sign,
}

fn char_kind(byte: u8) -> CharKind {
    match byte {
        b'a'..=b'z' => CharKind::Lower,
        b'A'..=b'Z' => CharKind::Upper,
        b'0'..=b'9' => CharKind::Digit,
        _ => CharKind::Sign,
    }
}

/// The 210 most common letter pairs in code and English prose: for each first letter, the second ones. They are 90 % of
/// the pairs there and 31 % of random pairs, counted over some thousand files.
const COMMON: [&str; 26] = [
    "bcdgilmnprstuvy", "aeilou", "aehiklortu", "adeiosu", "acdefglmnpqrstvxy", "aefiloru", "ehirs", "aeiot",
    "abcdefglmnoprstvz", "", "e", "adeilostuy", "aeimopsu", "acdefgiostuv", "bcdlmnoprstuvw", "aeiloprstuy",
    "u", "acdegimnorstuy", "acehiopstuy", "acehiloprstuy", "bceilmnprst", "aei", "ahior", "ept", "ps", "e",
];

/// [`COMMON`] with one bit per second letter.
static FOLLOWERS: [u32; 26] = {
    let mut table = [0; 26];
    let mut first = 0;
    while first < 26 {
        let seconds = COMMON[first].as_bytes();
        let mut at = 0;
        while at < seconds.len() {
            table[first] |= 1 << (seconds[at] - b'a');
            at += 1;
        }
        first += 1;
    }
    table
};

fn follows(first: u8, second: u8) -> bool {
    let letter = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    FOLLOWERS.get(usize::from(letter(first))).is_some_and(|seconds| seconds >> (letter(second) & 31) & 1 == 1)
}
