//! `config.toml`: providers, their addresses and keys, and the proxies on the way there.

use crate::base::env::pretend;
use crate::base::http::proxy::Route;
use crate::base::http::url::Url;
use crate::config::global::{Endpoint, Global, HttpEndpoint, KeySource};
use crate::config::model::Model;
use crate::fuzz::scratch::{Scratch, quiet};
use crate::fuzz::{is_told, is_told_as, parts, text};

/// Stands for a key, in seeds and in what the fuzzer makes of them.
const KEY: &str = "hunter2hunter2";

pub fn holds(bytes: &[u8]) {
    let [file, proxy] = parts::<2>(bytes);
    addresses(&text(file), &text(proxy));
    let scratch = Scratch::empty();
    let env = scratch.env();
    scratch.put(".config/axe/config.toml", file);
    let global = match Global::load(&env, &quiet()) {
        Ok(global) => global,
        Err(error) => {
            is_told_as(&error, 2);
            assert!(!error.line().contains(KEY), "a key is told: {}", error.line());
            return;
        }
    };
    global.retries(&env).unwrap();
    global.max_calls();
    for model in ["anthropic/m", "openai/m", "ollama/m", "command/claude", "command/own", "own/a/b", "a.b/m"]
    {
        match global.endpoint(&Model::parse(model).unwrap(), &env) {
            Ok(Endpoint::Http(HttpEndpoint { base_url, key, .. })) => {
                if let KeySource::Given(key) = &key {
                    assert!(!key.expose().trim().is_empty());
                }
                base_url.iter().for_each(|url| addresses(url, ""));
            }
            Ok(Endpoint::Command { .. }) => {}
            Err(error) => is_told(&error.line()),
        }
    }
}

/// An address that is taken says again what it is; one that is not is not quoted.
fn addresses(url: &str, proxy: &str) {
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(error) => return assert!(!error.line().contains(KEY), "{error}"),
    };
    // Of `/v1/v1` one is left, which would go the second time.
    if !url.path.ends_with("/v1") {
        assert_eq!(Url::parse(&url.to_string()).unwrap(), url, "{url}");
    }
    assert!(!url.host.contains(['/', '@']) && url.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
    if proxy.contains('\0') {
        return;
    }
    Route::to(&url, &pretend(&[("http_proxy", "h:1"), ("https_proxy", "h:1"), ("NO_PROXY", proxy)])).unwrap();
    match Route::to(&url, &pretend(&[("https_proxy", proxy), ("http_proxy", proxy)])) {
        Ok(Route::Relayed(Some(proxy))) => {
            assert!(!url.is_loopback());
            assert!(!proxy.host.contains(['\r', '\n', ' ', '/', '@']), "{}", proxy.host);
            assert!(proxy.login.is_none_or(|login| !login.expose().contains(['\r', '\n'])));
        }
        Ok(_) => {}
        Err(error) => assert!(!error.line().contains(KEY), "{error}"),
    }
}
