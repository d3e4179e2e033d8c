//! A model behind HTTP: its address, its key, and retries.

use crate::base::command_line::first_word;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::http::Response;
use crate::base::http::error::HttpErrorKind;
use crate::base::http::proxy::Route;
use crate::base::http::url::Url;
use crate::base::secret::Secret;
use crate::base::sync::lock;
use crate::base::text::one_line;
use crate::base::{file, http};
use crate::config::global::{Api, HttpEndpoint, KeySource, Rate};
use crate::provider::command::level;
use crate::provider::error::{CallError, body_of, hidden_status};
use crate::provider::message::{Dialect, Reply, Request};
use crate::provider::retry::{backoff, random, retry_after};
use crate::provider::stream::{Assembler, GZIP};
use crate::provider::wire::mend;
use crate::provider::{anthropic, ollama, openai};
use crate::store::rates::Rates;
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The longest key, in bytes, that a file or a command may give.
const KEY_CAP: usize = 64 * 1024;

pub struct ApiClient {
    api: Api,
    /// The base URL, without the API's own path.
    base: Url,
    route: Route,
    key: Option<Secret>,
    provider: String,
    /// How often the models may be asked, by name; and the file that says when.
    rates: BTreeMap<String, Rate>,
    shared: Option<Box<Rates>>,
    /// Until when models that have no rate are not asked.
    paused: Mutex<BTreeMap<String, Instant>>,
    /// What each model turned out to accept.
    dialects: Mutex<BTreeMap<String, Dialect>>,
    /// The clock when the client was made, for `Retry-After` dates.
    made: (Timestamp, Instant),
}

impl ApiClient {
    /// Checks the address, then fetches the key: a command that asks for a password runs last.
    pub(super) fn connect(endpoint: &HttpEndpoint, env: &Env, deadline: Deadline) -> Result<ApiClient> {
        let HttpEndpoint { api, provider, base_url, key, key_variable, rates, .. } = endpoint;
        let api = *api;
        let base = base_url.as_deref().unwrap_or(match api {
            Api::Anthropic => "https://api.anthropic.com",
            Api::OpenAi => "https://api.openai.com",
            Api::Ollama => "http://localhost:11434",
        });
        let base = Url::parse(base).map_err(|error| {
            // A URL that may contain a password or a key is not shown.
            let quoted = match base.contains(['@', '?', '#']) {
                true => String::new(),
                false => format!(" \"{}\"", one_line(base, 200)),
            };
            error
                .context(format!("invalid base URL{quoted} of provider \"{provider}\""))
                .hint("write it like https://host:port/path")
        })?;
        let route = Route::to(&base, env)?;
        let key = fetch(key, provider, env, deadline)?;
        if api != Api::Ollama && key.is_none() {
            return Err(Error::api(format!(
                "API key for provider \"{provider}\" is not configured (set {key_variable} or add to config.toml)"
            )));
        }
        if key.as_ref().is_some_and(|key| !http::fits_header(key.expose())) {
            return Err(Error::config(format!(
                "the API key for provider \"{provider}\" contains a line break or another character that keys \
                 cannot have"
            )));
        }
        key.iter().cloned().for_each(Secret::remember);
        let shared = if rates.is_empty() { None } else { Some(Box::new(Rates::new(env)?)) };
        let (provider, rates) = (provider.clone(), rates.clone());
        let (paused, dialects) = (Mutex::default(), Mutex::default());
        let made = (env.now(), Instant::now());
        Ok(ApiClient { api, base, route, key, provider, rates, shared, paused, dialects, made })
    }

    /// Asks, and retries up to `retries` times if that may help and the deadline allows it. Returns the last error.
    pub(super) fn ask(
        &self,
        request: &Request,
        deadline: Deadline,
        retries: u32,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, CallError> {
        let mut dialect = self.dialects().get(&request.model).cloned().unwrap_or_default();
        let mut notes = Vec::new();
        let (mut tried, mut has_turn) = (0, request.has_turn);
        loop {
            if !std::mem::take(&mut has_turn) {
                let turn = self.await_turn(request, Some(deadline), Duration::MAX);
                if let Err(mut late) = turn {
                    late.retries = tried;
                    return Err(late);
                }
            }
            let mut error = match self.once(request, &dialect, deadline, on_text) {
                Ok(mut reply) => {
                    self.count(request, &reply);
                    self.dialects().insert(request.model.clone(), dialect);
                    reply.warnings.splice(0..0, notes);
                    reply.retries = tried;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if let Some((rejected, note)) = error.alternative(self.api, request, &dialect) {
                dialect.insert(rejected);
                notes.extend(note.map(|note| self.redacted(note)));
                continue;
            }
            let asked = error.retry_after.as_deref().and_then(|value| retry_after(value, self.now()));
            let wait = backoff(tried, asked, random());
            if error.stops_all() {
                self.pause(&request.model, wait);
            }
            if !error.is_transient || tried >= retries || wait >= deadline.remaining() {
                if error.is_transient && asked.is_some_and(|asked| asked >= deadline.remaining()) {
                    error.hint = Some("the service asks to wait longer than --timeout allows".to_owned());
                }
                error.message = self.redacted(error.message);
                error.retries = tried;
                return Err(error);
            }
            std::thread::sleep(wait);
            tried += 1;
        }
    }

    /// Waits until the model may be asked, but not beyond the deadline, and no longer than `for_pause` if the service has
    /// asked to wait, whichever call it has told so.
    pub(super) fn await_turn(
        &self,
        request: &Request,
        deadline: Option<Deadline>,
        for_pause: Duration,
    ) -> Result<(), CallError> {
        loop {
            let patience = deadline.map_or(Duration::MAX, Deadline::remaining);
            let for_pause = for_pause.min(patience);
            let Some((rates, rate, model)) = self.shared_rate(&request.model) else {
                let until = lock(&self.paused).get(&request.model).copied();
                let pause =
                    until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
                match () {
                    () if pause.is_zero() => return Ok(()),
                    () if pause >= for_pause => return Err(CallError::no_turn(pause)),
                    () => std::thread::sleep(pause),
                }
                continue;
            };
            let wait = rates
                .take(&model, rate, self.expected(request), patience, for_pause)
                .map_err(|e| CallError::server(format!("the rate of \"{model}\" cannot be kept: {e}")))?
                .map_err(CallError::no_turn)?;
            std::thread::sleep(wait);
            // Meanwhile a service may have asked somebody to wait.
            if wait.is_zero() || rates.paused(&model).is_ok_and(|pause| pause.is_zero()) {
                return Ok(());
            }
        }
    }

    /// The rate of a model, where it is kept, and the model's name there.
    fn shared_rate(&self, model: &str) -> Option<(&Rates, Rate, String)> {
        let rate = self.rates.get(model).copied()?;
        Some((self.shared.as_deref()?, rate, format!("{}/{model}", self.provider)))
    }

    /// How many tokens a call may take.
    fn expected(&self, request: &Request) -> u64 {
        request.tokens().saturating_add(request.most_output(Some(self.api)))
    }

    /// Counts a reply's tokens.
    fn count(&self, request: &Request, reply: &Reply) {
        let used = reply.tokens.input.saturating_add(reply.tokens.output);
        if let Some((rates, rate, model)) = self.shared_rate(&request.model)
            && rate.tokens_per_minute.is_some()
            && used > 0
        {
            // If it cannot be written, the next call says so.
            let _ = rates.settle(&model, rate, self.expected(request), used);
        }
    }

    /// Nobody asks the model for so long: in this process, or, if it has a rate, on this machine.
    fn pause(&self, model: &str, wait: Duration) {
        if let Some((rates, _, model)) = self.shared_rate(model) {
            // If it cannot be written, the next call says so.
            let _ = rates.pause(&model, wait);
            return;
        }
        let now = Instant::now();
        if let Some(until) = now.checked_add(wait) {
            let mut paused = lock(&self.paused);
            let known = paused.entry(model.to_owned()).or_insert(until);
            *known = until.max(*known);
        }
    }

    fn once(
        &self,
        request: &Request,
        dialect: &Dialect,
        deadline: Deadline,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, CallError> {
        let (path, body) = match self.api {
            Api::Anthropic => (anthropic::PATH, anthropic::body(request, dialect)),
            Api::OpenAi => (openai::path(&self.base.path), openai::body(request, dialect)),
            Api::Ollama => (ollama::PATH, ollama::body(request, dialect)),
        };
        let url = self.base.at(path);
        let mut assembler = Assembler::new(self.api, on_text);
        let mut on_piece = |piece: &[u8]| assembler.take(piece);
        let on_piece: Option<http::OnPiece> = if request.is_streamed { Some(&mut on_piece) } else { None };
        let sent = self.route.post(&url, &self.headers(), body, deadline, on_piece);
        let has_begun = assembler.has_begun();
        let is_whole = assembler.is_whole();
        let sent = sent.or_else(|error| if is_whole { Ok(Response::default()) } else { Err(error) });
        let mut response = sent.map_err(|error| match (error.kind, self.api) {
            (HttpErrorKind::Refused, Api::Ollama) => CallError::outage(format!(
                "connection refused: is Ollama running? (expected at {})",
                self.base
            )),
            _ => {
                let mut error = CallError::from(error);
                error.is_transient &= !has_begun;
                error.is_outage &= !has_begun;
                error
            }
        })?;
        if !has_begun {
            self.check(&response)?;
            // A stream under another name.
            let first = response.body.trim_ascii_start().first();
            if request.is_streamed && !matches!(first, None | Some(b'{' | b'<')) {
                assembler.take(&response.body);
            }
        }
        let was_streamed = assembler.has_begun();
        let mended = if was_streamed {
            let (body, mended) = assembler.end()?;
            response.body = body;
            mended
        } else {
            let mended = mend(&mut response.body);
            check_document(&response)?;
            mended
        };
        let mut reply = match self.api {
            Api::Anthropic => anthropic::reply(&response.body, request),
            Api::OpenAi => openai::reply(&response.body, request),
            Api::Ollama => ollama::reply(&response.body, request),
        }?;
        reply.was_streamed = was_streamed;
        if mended {
            reply.warnings.push("the reply has invalid characters; they became U+FFFD".to_owned());
        }
        Ok(reply)
    }

    /// An error unless it is a success that can be read.
    fn check(&self, response: &Response) -> Result<(), CallError> {
        if !(200..=299).contains(&response.status) {
            let mut error = CallError::from_response(response.status, response);
            if response.status == 404 {
                error.hint = Some(format!("check the model's name and the base URL {}", self.base));
            }
            return Err(error);
        }
        if let Some(encoding) = compression(response) {
            let mut error = CallError::compressed(&encoding);
            error.hint = Some(format!("look for a proxy that does this on the way to {}", self.base));
            return Err(error);
        }
        Ok(())
    }

    fn dialects(&self) -> MutexGuard<'_, BTreeMap<String, Dialect>> {
        lock(&self.dialects)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        if self.api == Api::Anthropic {
            headers.push(("anthropic-version", anthropic::VERSION.to_owned()));
        }
        if let Some(key) = &self.key {
            headers.push(match self.api {
                Api::Anthropic => ("x-api-key", key.expose().to_owned()),
                Api::OpenAi | Api::Ollama => ("authorization", format!("Bearer {}", key.expose())),
            });
        }
        headers
    }

    /// A server may quote the key in its error. Messages are already cut here, maybe in the middle of the key.
    fn redacted(&self, message: String) -> String {
        let Some(key) = self.key.as_ref().map(Secret::expose).filter(|key| key.len() >= 4) else {
            return message;
        };
        let message = message.replace(key, "[key]");
        let cuts = (4..key.len()).rev().filter_map(|n| key.get(..n));
        cuts.fold(message, |message, part| message.replace(&format!("{part}..."), "[key]..."))
    }

    fn now(&self) -> Timestamp {
        let (then, since) = self.made;
        let passed = SignedDuration::try_from(since.elapsed()).unwrap_or_default();
        then.checked_add(passed).unwrap_or(then)
    }
}

/// The compression of a body: we cannot read any, and ask for none.
fn compression(response: &Response) -> Option<String> {
    let named = response.header("content-encoding").filter(|name| !name.eq_ignore_ascii_case("identity"));
    named.or_else(|| response.body.starts_with(GZIP).then(|| "gzip".to_owned()))
}

/// An error unless the body is a complete document, and no error under a status of 200. minreq does not see whether a chunked body was
/// cut. JSON does.
fn check_document(response: &Response) -> Result<(), CallError> {
    if let Err(e) = serde_json::from_slice::<&RawValue>(&response.body) {
        if e.is_eof() {
            return Err(CallError::broke_off(response.body.len()));
        }
        let what = response.header("content-type").unwrap_or_else(|| "no content type".to_owned());
        let why = one_line(&e.to_string(), 200);
        return Err(CallError::server(format!("the reply is not JSON ({what}): {why}")));
    }
    let body = body_of(&response.body);
    match body.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(CallError::from_response(hidden_status(error), response)),
        None => Ok(()),
    }
}

/// The key from its source; `None` if there is none.
fn fetch(source: &KeySource, provider: &str, env: &Env, deadline: Deadline) -> Result<Option<Secret>> {
    let trimmed = |text: &str| Some(Secret::new(text.trim())).filter(|key| !key.expose().is_empty());
    match source {
        KeySource::Missing => Ok(None),
        KeySource::Given(key) => Ok(trimmed(key.expose())),
        KeySource::File(path) => {
            let path = env.config_dir()?.join(env.expand(path));
            let bytes = file::read(&path, KEY_CAP as u64).map_err(|e| {
                Error::config(format!("the API key for provider \"{provider}\" cannot be read: {e}"))
                    .because(e)
            })?;
            let key = std::str::from_utf8(&bytes).ok().and_then(trimmed);
            key.map(Some).ok_or_else(|| {
                Error::config(format!("no API key for provider \"{provider}\" in \"{}\"", path.display()))
            })
        }
        KeySource::Command(line) => run(line, provider, env, deadline).map(Some),
    }
}

/// No message contains what the command printed on stdout: it may be part of a key.
fn run(line: &str, provider: &str, env: &Env, deadline: Deadline) -> Result<Secret> {
    let word = first_word(line);
    let failed = |why: &str| {
        Error::config(format!("api_key_command of provider \"{provider}\": command \"{word}\" {why}"))
    };
    let dir = env.config_dir()?;
    let finished = exec::run(Invocation {
        is_heard: true,
        level: level(env),
        ..Invocation::new(CommandLine::Shell(line), &dir, KEY_CAP, deadline)
    })
    .map_err(|fault| failed(&fault.to_string()))?;
    if !finished.status.success() {
        return Err(failed(&format!("failed ({})", exec::how_it_ended(finished.status))));
    }
    let key = std::str::from_utf8(&finished.stdout).unwrap_or_default().trim();
    if key.is_empty() { Err(failed("printed no key")) } else { Ok(Secret::new(key)) }
}

#[cfg(test)]
mod tests;
