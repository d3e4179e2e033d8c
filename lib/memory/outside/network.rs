//! Programs that ask the network: which hosts, and what they bring.

use crate::memory::addresses::{host_of, is_loopback};
use crate::memory::lists::List;
use crate::memory::outside::call::{Call, Origin, hosts_or, is_cluster, is_remote, remote_host};
use crate::memory::outside::commands::Shell;
use crate::memory::outside::shell::UNKNOWN;

impl Shell {
    pub(super) fn network(&mut self, call: &Call) {
        if let Some(hosts) = asked(call).filter(|_| !self.is_own_run(call)) {
            self.downloaded(call, &hosts);
            self.add(Some(hosts));
        }
    }

    /// `gh run view --log`: what the repository's own workflows printed, as its programs print it here.
    fn is_own_run(&self, call: &Call) -> bool {
        let repo = call.option(&["-R", "--repo"]).map(|repo| format!("/{repo}"));
        let is_own = |repo: String| self.own.as_ref().is_some_and(|own| own.ends_with(&repo));
        let words: Vec<&str> = std::iter::once(call.name.as_str()).chain(call.operands("gh")).collect();
        List("shows runs").begins(&words) > 0 && repo.is_none_or(is_own)
    }

    /// The files that a network program was told to make.
    pub(super) fn downloaded(&mut self, call: &Call, hosts: &[String]) {
        let base = |word: &str| {
            let path = word.split_once("://").map_or(word, |(_, rest)| rest);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
        };
        let folder = call.option(&["-P", "--directory-prefix", "--output-dir", "-D", "--dir"]);
        let output = call.option(&["-o", "--output", "--output-document", "-O"]).map(str::to_owned);
        let addresses = call.arguments().filter(|word| host_of(word).is_some() || is_remote(word));
        let mut files: Vec<String> = Vec::new();
        match call.name.as_str() {
            "scp" | "rsync" => {
                if let Some(target) = call.operands("").last() {
                    let names = addresses.map(|word| base(word.rsplit(':').next().unwrap_or(word)));
                    files.extend(names.map(|name| format!("{target}/{name}")));
                    files.push((*target).to_owned());
                }
            }
            "curl" => {
                if call.any(|word| is_cluster(word, "O") || word.starts_with("--remote-name")) {
                    files.extend(addresses.map(base));
                }
                // `-fsSLo FILE`
                let clustered = call.arguments().skip_while(|word| !is_output_cluster(word)).nth(1);
                files.extend(call.option(&["-o", "--output"]).or(clustered).map(str::to_owned));
            }
            "gh" | "glab" => {
                let words = call.operands("gh");
                let cloned = words.get(3).or(words.get(2)).filter(|_| words.get(1) == Some(&"clone"));
                let cloned = cloned.map(|word| base(word));
                files.extend([cloned, folder.map(str::to_owned), output].into_iter().flatten());
            }
            _ => files.extend(output.into_iter().chain(addresses.map(base))),
        }
        for mut file in files.into_iter().filter(|file| !file.is_empty() && file != "-") {
            if let Some(folder) = folder.filter(|folder| *folder != file) {
                file = format!("{folder}/{file}");
            }
            self.places.bring(self.path(&file), hosts);
        }
    }
}

/// `-fsSLo`: switches of curl, and the option for the file.
fn is_output_cluster(option: &str) -> bool {
    let switches = option.strip_prefix('-').and_then(|option| option.strip_suffix('o'));
    switches.is_some_and(|all| !all.is_empty() && all.bytes().all(|c| b"fgijkLNsSv#".contains(&c)))
}

/// The hosts in a call, without those in what is sent.
fn found_hosts(call: &Call) -> Vec<String> {
    // Options whose value is sent, or says how.
    let own = List("sent").after(&call.name);
    let all = own.and(List("sent").after("all"));
    let is_sent = |option: &str| {
        [own, all].into_iter().flatten().any(|sent| sent.contains(&option))
            || call.name.starts_with("curl") && is_output_cluster(option)
    };
    let mut found = Vec::new();
    let mut words = call.arguments();
    while let Some(word) = words.next() {
        match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, _)) if is_sent(option) => {}
            Some((_, value)) => found.extend(host_of(value)),
            None => found.extend(host_of(word)),
        }
        if is_sent(word) {
            words.next();
        }
    }
    found
}

/// The hosts that a network program asks; `None`: it stays on this machine, with every address.
fn asked(call: &Call) -> Origin {
    if call.is_about() {
        return None;
    }
    let name = call.name.as_str();
    let operands = call.operands("remote");
    let mut has_services = false;
    let named: Vec<String> = match name {
        "gh" => vec![call.option(&["--hostname"]).unwrap_or("github.com").to_lowercase()],
        "glab" => vec!["gitlab.com".to_owned()],
        "ssh" | "nc" | "ncat" | "netcat" | "telnet" | "sftp" | "ftp" | "lftp" => {
            operands.first().map(|word| remote_host(&word.replace("://", "@"))).into_iter().collect()
        }
        "scp" => operands.iter().filter(|word| is_remote(word)).map(|word| remote_host(word)).collect(),
        _ => {
            has_services = true;
            found_hosts(call)
        }
    };
    // Addresses from a file, and one that is only known when the command runs, may be any.
    let is_open = call.any(|word| {
        ["-K", "--config", "--input-file"].contains(&word)
            || word.starts_with(UNKNOWN)
            || word.contains("://\u{fffd}")
    });
    // `http://db:9200`: a service of the project, whose name nobody outside can have.
    let is_near = |host: &String| is_loopback(host) || has_services && !host.contains(['.', ':']);
    let is_local = !named.is_empty() && named.iter().all(is_near) && !is_open;
    (!is_local).then(|| hosts_or(named, name))
}
