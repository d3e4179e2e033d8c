//! Words near which secrets are written, and the finders that look around them.

use crate::memory::redact::commands;
use crate::memory::redact::files;
use crate::memory::redact::near::Near;
use crate::memory::redact::sentences;

pub(super) struct Cue {
    /// Found as they are, capitalised and in capitals, wherever the case changes behind the fourth byte. At least two
    /// bytes.
    pub(super) words: &'static [&'static str],
    /// Not inside a longer word.
    pub(super) word: bool,
    pub(super) find: fn(&mut Near),
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
