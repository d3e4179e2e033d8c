//! `config.toml`: providers, retries, limits and prices. Environment variables override it.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::secret::Secret;
use crate::base::text::nearest;
use crate::config::model::{Model, PRICE_KEYS, Price, money};
use crate::config::preset::{preset, presets};
use crate::config::toml_file::{self, ANY, Keys};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// `kind` in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProviderKind {
    Anthropic,
    OpenAi,
    Ollama,
    Command,
}

/// The API of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Api {
    Anthropic,
    OpenAi,
    Ollama,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Global {
    providers: BTreeMap<String, ProviderEntry>,
    retry: Retry,
    pub limits: CallLimits,
    pub ledger: LedgerSettings,
    /// By `provider/model`.
    prices: BTreeMap<Model, Price>,
    /// Likewise.
    pub rates: BTreeMap<Model, Rate>,
    /// Models by their short names.
    pub models: BTreeMap<String, Model>,
}

/// How often a model may be asked by all programs of this machine together. An entry without a number shares only what a
/// service asks to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Rate {
    #[serde(deserialize_with = "per_minute")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Input and output.
    #[serde(deserialize_with = "per_minute")]
    pub tokens_per_minute: Option<NonZeroU32>,
}

fn per_minute<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU32>, D::Error> {
    let number = u32::deserialize(from).ok().and_then(NonZeroU32::new);
    number.map(Some).ok_or_else(|| serde::de::Error::custom("a rate is a whole number from 1"))
}

/// `[limits]`. Those of a day and a month hold for all runs together; 0: no limit.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct CallLimits {
    /// Model calls that one run may make, including those of its sub-agents.
    pub max_calls: Option<u32>,
    /// Input and output tokens of one run, including those of its sub-agents.
    pub max_tokens_total: Option<u64>,
    /// In tokens.
    pub per_day: u64,
    pub per_month: u64,
    /// In the currency of the prices.
    #[serde(deserialize_with = "limit")]
    pub per_day_cost: f64,
    #[serde(deserialize_with = "limit")]
    pub per_month_cost: f64,
}

fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    money(from, "a limit")
}

impl CallLimits {
    /// Whether a day or a month has a limit.
    pub fn has_periods(&self) -> bool {
        self.per_day > 0 || self.per_month > 0 || self.needs_prices()
    }

    /// Whether one of them is in money.
    pub fn needs_prices(&self) -> bool {
        self.per_day_cost > 0.0 || self.per_month_cost > 0.0
    }
}

/// `[ledger]`
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct LedgerSettings {
    /// Whether runs are recorded.
    pub enabled: bool,
}

impl Default for LedgerSettings {
    fn default() -> LedgerSettings {
        LedgerSettings { enabled: true }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Retry {
    /// Retries after a failed call; 0: none.
    max: Option<u32>,
}

/// `[providers.<name>]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ProviderEntry {
    kind: Option<ProviderKind>,
    api_key: Option<Secret>,
    api_key_file: Option<String>,
    api_key_command: Option<String>,
    base_url: Option<String>,
    command: Option<String>,
    stream: bool,
}

impl ProviderEntry {
    /// An empty key counts as none, and so does "none", for services that need no key.
    fn has_key(&self) -> bool {
        self.api_key.as_ref().is_some_and(|key| !matches!(key.expose().trim(), "" | "none"))
    }
}

pub const KEYS: Keys = &[
    ("", &["providers", "models", "default", "retry", "limits", "ledger", "prices", "rates"]),
    ("models", &["*"]),
    // An agent's keys; they are checked where it is loaded.
    ("default", &[ANY]),
    ("limits", &["max_calls", "max_tokens_total", "per_day", "per_month", "per_day_cost", "per_month_cost"]),
    ("ledger", &["enabled"]),
    ("retry", &["max"]),
    ("prices", &["*"]),
    ("prices.*", PRICE_KEYS),
    ("rates", &["*"]),
    ("rates.*", &["requests_per_minute", "tokens_per_minute"]),
    ("providers", &["*"]),
    ("providers.*", &["kind", "api_key", "api_key_file", "api_key_command", "base_url", "command", "stream"]),
];

/// Retries after a failed call, by default.
const RETRIES: u32 = 2;
/// Model calls in one run, by default.
const MOST_CALLS: u32 = 200;

/// Where a provider's key comes from. It is fetched only when a call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Given(Secret),
    File(String),
    Command(String),
    Missing,
}

/// How to reach a model.
#[derive(Debug, Clone)]
pub enum Endpoint {
    Http(HttpEndpoint),
    Command {
        line: String,
        /// Reaches the command as `AXE_MODEL`; `None` for `command/NAME`.
        model: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    pub api: Api,
    pub provider: String,
    /// `None`: the API's default.
    pub base_url: Option<String>,
    pub key: KeySource,
    /// The variable that may hold the key.
    pub key_variable: String,
    /// Whether replies are always asked for in pieces, so that no proxy ends a long silence.
    pub stream: bool,
    /// Of the provider's models, by name.
    pub rates: BTreeMap<String, Rate>,
}

impl Endpoint {
    /// `None` for a command.
    pub fn api(&self) -> Option<Api> {
        if let Endpoint::Http(endpoint) = self { Some(endpoint.api) } else { None }
    }

    pub fn is_streamed(&self) -> bool {
        matches!(self, Endpoint::Http(HttpEndpoint { stream: true, .. }))
    }
}

impl Global {
    /// A missing file counts as an empty one.
    pub fn load(env: &Env, reporter: &Reporter) -> Result<Global> {
        let path = env.config_dir()?.join("config.toml");
        let Some(bytes) = toml_file::read(&path, "config file")? else {
            // A Nix module that is switched off can leave such a link behind.
            if path.is_symlink() {
                toml_file::warn_of_dangling(&path, reporter);
            }
            return Ok(Global::default());
        };
        let failed = |error: Error| {
            error.context("failed to parse config file").hint(format!("correct \"{}\"", path.display()))
        };
        let (global, unknown) = toml_file::parse::<Global>(&bytes, KEYS).map_err(failed)?;
        if let Some(alias) = global.models.keys().find(|alias| alias.is_empty() || alias.contains('/')) {
            let alias = alias.escape_debug();
            return Err(failed(Error::config(format!("models.\"{alias}\": a short name has no slash"))));
        }
        for what in unknown {
            reporter.warn(&format!("config file \"{}\": {what}", path.display()));
        }
        let is_open =
            || path.canonicalize().and_then(|real| file::mode(&real)).is_ok_and(|mode| mode & 0o044 != 0);
        if global.providers.values().any(ProviderEntry::has_key) && is_open() {
            reporter.warn(&format!(
                "\"{0}\" contains an API key, and other users can read it; run: chmod 600 \"{0}\"",
                path.display()
            ));
        }
        Ok(global)
    }

    /// How often a failed call is retried: `AXE_RETRY_MAX`, else `[retry] max`, else 2.
    pub fn retries(&self, env: &Env) -> Result<u32> {
        match env.text("AXE_RETRY_MAX") {
            Some(text) => text.parse().map_err(|_| {
                Error::config(format!("AXE_RETRY_MAX is not a whole number: \"{text}\""))
                    .hint("0 disables retries")
            }),
            None => Ok(self.retry.max.unwrap_or(RETRIES)),
        }
    }

    /// How many model calls one run may make, including those of its sub-agents.
    pub fn max_calls(&self) -> u32 {
        self.limits.max_calls.unwrap_or(MOST_CALLS)
    }

    /// How many tokens one run may take, including those of its sub-agents; `None`: no limit.
    pub fn max_tokens_total(&self) -> Option<u64> {
        self.limits.max_tokens_total.filter(|limit| *limit > 0)
    }

    /// What the tokens of `model` cost, if config.toml says so.
    pub fn price(&self, model: &Model) -> Option<Price> {
        self.prices.get(model).copied()
    }

    /// The model that `text` names: PROVIDER/MODEL, or a short name from `[models]`.
    pub fn model(&self, text: &str) -> Result<Model> {
        if let Some(model) = self.models.get(text) {
            return Ok(model.clone());
        }
        Model::parse(text).map_err(|error| {
            if text.is_empty() || text.contains('/') {
                return error;
            }
            let near = nearest(text, self.models.keys().map(String::as_str));
            let near = near.map(|near| format!("did you mean \"{near}\"? Or ")).unwrap_or_default();
            // A text of JSON is one of TOML, too.
            let alias = serde_json::Value::from(text);
            error.hint(format!(
                "{near}define it under [models] in config.toml: {alias} = \"provider/model-name\""
            ))
        })
    }

    /// How to reach `model`: by the file's entry for its provider, or by a built-in one.
    pub fn endpoint(&self, model: &Model, env: &Env) -> Result<Endpoint> {
        let name = model.provider.as_str();
        let entry = self.providers.get(name).cloned().unwrap_or_default();
        let kind = match (entry.kind, name, &entry.command) {
            (Some(kind), ..) => kind,
            (None, "anthropic", _) => ProviderKind::Anthropic,
            (None, "openai", _) => ProviderKind::OpenAi,
            (None, "ollama", _) => ProviderKind::Ollama,
            (None, "command", _) => return self.named_command(&model.name),
            (None, _, Some(_)) => ProviderKind::Command,
            (None, ..) if self.providers.contains_key(name) => {
                return Err(Error::config(format!("provider \"{name}\" in config.toml has no kind"))
                    .hint("add kind = \"openai\", \"anthropic\", \"ollama\" or \"command\""));
            }
            (None, ..) => return Err(self.unsupported(name)),
        };
        let api = match kind {
            ProviderKind::Anthropic => Api::Anthropic,
            ProviderKind::OpenAi => Api::OpenAi,
            ProviderKind::Ollama => Api::Ollama,
            ProviderKind::Command => {
                let line = command_of(&entry, name)?;
                return Ok(Endpoint::Command { line, model: Some(model.name.clone()) });
            }
        };
        let variable = format!("{}_API_KEY", variable_part(name));
        let key = match (env.text(&variable), entry.api_key, entry.api_key_file, entry.api_key_command) {
            (Some(key), ..) => KeySource::Given(Secret::new(key)),
            (None, Some(key), ..) if !key.expose().trim().is_empty() => KeySource::Given(key),
            (None, _, Some(path), _) => KeySource::File(path),
            (None, _, None, Some(line)) => KeySource::Command(line),
            _ => KeySource::Missing,
        };
        let typed = env.text(&format!("AXE_{}_BASE_URL", variable_part(name))).map(str::to_owned);
        let base_url = typed.or(entry.base_url).filter(|url| !url.trim().is_empty());
        let rates = self.rates.iter().filter(|(model, _)| model.provider == name);
        Ok(Endpoint::Http(HttpEndpoint {
            api,
            provider: name.to_owned(),
            base_url,
            key,
            key_variable: variable,
            stream: entry.stream,
            rates: rates.map(|(model, rate)| (model.name.clone(), *rate)).collect(),
        }))
    }

    /// `command/<name>`: the provider of that name, else the preset.
    fn named_command(&self, name: &str) -> Result<Endpoint> {
        if let Some(entry) = self.providers.get(name)
            && matches!((entry.kind, &entry.command), (Some(ProviderKind::Command), _) | (None, Some(_)))
        {
            let line = command_of(entry, name)?;
            return Ok(Endpoint::Command { line, model: None });
        }
        let Some(line) = preset(name) else {
            let presets: Vec<_> = presets().into_iter().map(|(name, _)| name).collect();
            return Err(Error::config(format!("no command named \"{name}\"")).hint(format!(
                "define it in config.toml as [providers.{name}] with kind = \"command\", or use one of {}",
                presets.join(", ")
            )));
        };
        Ok(Endpoint::Command { line: line.to_owned(), model: None })
    }

    fn unsupported(&self, name: &str) -> Error {
        let mut names = vec!["anthropic", "openai", "ollama", "command"];
        let own: Vec<_> = self.providers.keys().filter(|own| !names.contains(&own.as_str())).collect();
        names.extend(own.into_iter().map(String::as_str));
        Error::usage(format!("unsupported provider \"{name}\": supported providers are {}", names.join(", ")))
    }
}

/// A shell would take an empty line for a success.
fn command_of(entry: &ProviderEntry, name: &str) -> Result<String> {
    entry.command.clone().filter(|line| !line.trim().is_empty()).ok_or_else(|| {
        Error::config(format!("provider \"{name}\" in config.toml has kind = \"command\" and no command"))
            .hint("add command = \"…\", a program that reads the prompt on stdin")
    })
}

/// `open-router` → `OPEN_ROUTER`
fn variable_part(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;
    use crate::config::scaffold;

    fn global(text: &str) -> Global {
        toml_file::parse(text.as_bytes(), KEYS).unwrap().0
    }

    fn endpoint(text: &str, model: &str, vars: &[(&str, &str)]) -> Result<Endpoint> {
        global(text).endpoint(&Model::parse(model).unwrap(), &pretend(vars))
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let text = "[providers.openai]\napi_key = 'file'\nbase_url = 'http://file'";
        let vars = [("OPENAI_API_KEY", "env"), ("AXE_OPENAI_BASE_URL", "http://env")];
        let Ok(Endpoint::Http(HttpEndpoint { key, base_url, .. })) = endpoint(text, "openai/x", &vars) else {
            panic!()
        };
        assert_eq!((key, base_url.as_deref()), (KeySource::Given(Secret::new("env")), Some("http://env")));
    }

    #[test]
    fn any_name_can_be_a_provider() {
        let text = "[providers.open-router]\nkind = 'openai'\napi_key_file = 'k'";
        let Ok(Endpoint::Http(HttpEndpoint { api, key, key_variable, .. })) =
            endpoint(text, "open-router/a/b", &[])
        else {
            panic!()
        };
        assert_eq!((api, key), (Api::OpenAi, KeySource::File("k".into())));
        assert_eq!(key_variable, "OPEN_ROUTER_API_KEY");
    }

    #[test]
    fn commands_are_found_by_provider_by_name_and_by_preset() {
        let text = "[providers.mine]\ncommand = 'cat'";
        let lines = ["mine/x", "command/mine", "command/llm"].map(|model| match endpoint(text, model, &[]) {
            Ok(Endpoint::Command { line, model }) => (line, model),
            other => panic!("{other:?}"),
        });
        let llm = ("llm --no-log".into(), None);
        assert_eq!(lines, [("cat".into(), Some("x".into())), ("cat".into(), None), llm]);
    }

    #[test]
    fn what_is_not_supported_names_what_is() {
        let error = endpoint("[providers.mine]\ncommand = 'cat'", "foo/x", &[]).unwrap_err();
        assert_eq!(
            error.message(),
            "unsupported provider \"foo\": supported providers are anthropic, openai, ollama, command, mine"
        );
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn a_key_of_the_wrong_type_is_not_quoted() {
        let error = toml_file::parse::<Global>(b"[providers.x]\napi_key = 12345", KEYS).unwrap_err().line();
        assert!(error.starts_with("line 2, column ") && !error.contains("12345"), "{error}");
    }

    #[test]
    fn the_scaffold_is_valid_as_it_stands_and_uncommented() {
        let (_, unknown) = toml_file::parse::<Global>(scaffold::CONFIG.as_bytes(), KEYS).unwrap();
        assert!(unknown.is_empty());
        let open: String = scaffold::CONFIG
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.starts_with('[') || line.contains(" = ") && !line.contains(": "))
            .map(|line| format!("{line}\n"))
            .collect();
        let (global, unknown) = toml_file::parse::<Global>(open.as_bytes(), KEYS).unwrap();
        assert_eq!((global.providers.len(), unknown), (5, vec![]));
    }

    #[test]
    fn retries_come_from_the_environment_then_the_file() {
        assert_eq!(global("").retries(&pretend(&[])).unwrap(), 2);
        assert_eq!(global("[retry]\nmax = 5").retries(&pretend(&[])).unwrap(), 5);
        assert_eq!(global("[retry]\nmax = 5").retries(&pretend(&[("AXE_RETRY_MAX", "0")])).unwrap(), 0);
        assert_eq!(global("").retries(&pretend(&[("AXE_RETRY_MAX", "x")])).unwrap_err().exit_code(), 2);
    }
}
