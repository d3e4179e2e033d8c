//! Words near which secrets are written, and the finders that look around them.

use crate::memory::redact::commands;
use crate::memory::redact::files;
use crate::memory::redact::sentences;
use crate::memory::redact::span::{Certainty, Span};

/// How far a finder looks for the secret, in bytes.
pub(super) const REACH: usize = 320;

pub(super) struct Cue {
    /// Found as they are, capitalised and in capitals, wherever the case changes behind the fourth byte. At least two
    /// bytes.
    pub(super) words: &'static [&'static str],
    /// Not inside a longer word.
    pub(super) word: bool,
    pub(super) find: fn(&mut Near),
}

/// A cue's word in the text, and where finders put what they find.
pub(super) struct Near<'a, 'b> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) done: &'b mut Done,
    pub(super) spans: &'b mut Vec<Span>,
}

/// How far finders have come that must not read the same text twice.
#[derive(Default)]
pub(super) struct Done {
    pub(super) document: usize,
    pub(super) line: usize,
    pub(super) command: usize,
    /// The end of the last table, and the start of its header: two columns may be secret.
    pub(super) table: usize,
    pub(super) header: usize,
}

impl<'a> Near<'a, '_> {
    pub(super) fn push(&mut self, start: usize, end: usize, kind: &'static str) {
        self.spans.push(Span { start, end, kind, certainty: Certainty::Place });
    }

    /// The rest of the line, at most [`REACH`] bytes.
    pub(super) fn behind(&self) -> &'a [u8] {
        let rest = &self.bytes[self.end..self.bytes.len().min(self.end + REACH)];
        &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
    }

    /// The line up to the word, at most [`REACH`] bytes.
    pub(super) fn before(&self) -> &'a [u8] {
        let before = &self.bytes[self.at.saturating_sub(REACH)..self.at];
        &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..]
    }
}

const fn cue(words: &'static [&'static str], find: fn(&mut Near)) -> Cue {
    Cue { words, word: true, find }
}

const fn sign(words: &'static [&'static str], find: fn(&mut Near)) -> Cue {
    Cue { words, word: false, find }
}

pub(super) static CUES: &[Cue] = &[
    cue(
        &[
            "password", "passwort", "passphrase", "passcode", "passwd", "kennwort", "mot de passe", "mdp",
            "clave", "senha", "parola", "wachtwoord", "hasło", "haslo", "lösenord", "adgangskode", "passord",
            "salasana", "şifre", "sifre", "parool", "heslo", "jelszó", "pw:", "pw ", "pwd ", "pwd:", "pass:",
            "pass is ",
        ],
        sentences::password,
    ),
    // Other scripts have their own capitals, and no spaces between words.
    sign(
        &[
            "пароль", "Пароль", "ПАРОЛЬ", "密码", "密碼", "パスワード", "비밀번호", "Şifre", "κωδικός",
            "كلمة المرور", "סיסמה", "traseña", "trasena",
        ],
        sentences::password,
    ),
    cue(
        &[
            "token", "api key", "api-key", "apikey", "secret", "access key", "pat is ", "jeton", "schlüssel",
            "clé",
        ],
        sentences::token,
    ),
    cue(&["pin"], sentences::pin),
    cue(&["cvv", "cvc", "cvv2"], sentences::card_check),
    cue(
        &[
            "otp", "verification code", "2fa code", "one-time code", "security code", "login code",
            "mfa code", "passcode", "confirmation code", "bestätigungscode", "einmalcode",
        ],
        sentences::one_time_code,
    ),
    cue(
        &[
            "log in as", "log in with", "login as", "login with", "logged in as", "sign in as",
            "sign in with", "login:", "login is", "logins:", "creds", "credentials", "zugangsdaten",
            "zugang:", "identifiants", "credenciales", "credenciais", "credenziali", "inloggegevens",
            "anmelden als", "anmelden mit",
        ],
        sentences::login,
    ),
    sign(&["/pass:", "/pass ", "/password:", "/pw:"], sentences::login),
    cue(commands::PROGRAMS, commands::command),
    cue(
        &["sudo -s", "sudo -ks", "chpasswd", "--password-stdin", "passwd --stdin", "convertto-securestring"],
        commands::piped,
    ),
    sign(&["--password-stdin"], commands::piped),
    sign(&["--from-literal="], commands::literal),
    sign(&["send \""], commands::expect),
    cue(
        &[
            "setBasicAuth(", "httpBasicAuth(", "basicAuth(", "networkCredential(", "getConnection(",
            "mysqli_connect(", "mysql_connect(", "new PDO(", "setPassword(", "setPass(", "password(",
            "auth=(", "auth = (", "login(",
        ],
        commands::call,
    ),
    cue(
        &[
            "identified by", "with password", "passwort ", "auth_string", "plugin by", "password by",
            "sha2_password by",
        ],
        commands::sql,
    ),
    cue(&["kind: secret", "\"kind\": \"secret\"", "\"kind\":\"secret\""], files::kubernetes),
    cue(&["value"], files::named_value),
    cue(
        &["cookie:", "cookies:", "document.cookie", "cookie\": \"", "cookie\":\"", "curl -b"],
        files::cookies,
    ),
    cue(
        &[
            "phpsessid=", "jsessionid=", "connect.sid=", "asp.net_sessionid=", "laravel_session=",
            "sessionid=", "remember_token=",
        ],
        files::session,
    ),
    sign(
        &[
            "?appid=", "&appid=", "?key=", "&key=", "?code=", "&code=", "?apikey=", "&apikey=", "?hapikey=",
            "&hapikey=", "?auth=", "&auth=", "?sig=", "&sig=", "signature=", "?token=", "&token=",
            "?access_token=", "&access_token=", "?secret=", "&secret=",
        ],
        files::query,
    ),
    sign(&["jdbc:oracle:thin:"], files::oracle),
    sign(&[":5432:", ":5433:", ":6432:", ":*:", "*:*:"], files::pgpass),
    sign(&["sonar.login="], files::machine_made),
    sign(&["private-lines:"], files::putty),
    sign(&["\"d\":", "\"d\" :", "\"p\":", "\"q\":", "\"dp\":", "\"dq\":", "\"qi\":", "\"k\":"], files::jwk),
    cue(
        &[
            "psk=", "requirepass ", "masterauth ", "keyPassword ", "storePassword ", "keyPassword=",
            "storePassword=",
        ],
        files::bare,
    ),
    cue(
        &["private_key_id", "x-auth-key", "splunk ", "authtoken", "pat ", "pat:", "wif ", "wif:"],
        files::machine_made,
    ),
    sign(&[",password", ",passwort", ",passwd"], files::csv),
];
