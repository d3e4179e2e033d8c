//! A skill: instructions in a `SKILL.md`, with front matter that is not for the model.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::lossy;
use crate::config::toml_file;
use std::path::{Component, Path};

/// The skill `named`: a name, for `skills/NAME/SKILL.md` in the configuration directory; or a path: absolute, `~/…`, or
/// relative to that directory.
///
/// A path from the command line may also be relative to the directory `typed`, which is tried last: a file in a
/// stranger's checkout must not replace the user's own.
pub fn load(named: &str, typed: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<String> {
    let config = env.config_dir()?;
    let path = env.expand(named);
    let mut places = Vec::new();
    let mut parts = path.components();
    let is_name =
        !named.contains('.') && matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if is_name {
        places.push(config.join("skills").join(&path).join("SKILL.md"));
    }
    places.push(config.join(&path));
    places.extend(typed.map(|dir| dir.join(&path)));
    places.dedup();
    for (n, place) in places.iter().enumerate() {
        // Any directory may have a skill's name.
        if is_name && place.is_dir() && n + 1 < places.len() {
            continue;
        }
        if let Some(bytes) = toml_file::read(place, &format!("skill \"{named}\""))? {
            let (text, damaged) = lossy(bytes);
            if damaged {
                reporter
                    .warn(&format!("skill \"{named}\" is not valid UTF-8; the invalid bytes became U+FFFD"));
            }
            return Ok(without_front_matter(&text).to_owned());
        }
    }
    let tried: Vec<_> = places.iter().map(|place| format!("\"{}\"", place.display())).collect();
    Err(Error::config(format!("skill not found: {named}")).hint(format!("looked for {}", tried.join(", "))))
}

/// What follows the front matter: a first line `---` up to the next such line. Without an end there is none.
fn without_front_matter(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return text };
    let mut end = first.len();
    for line in lines {
        end += line.len();
        if line.trim_end() == "---" {
            return text[end..].trim_start_matches(['\r', '\n']);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_left_out() {
        assert_eq!(without_front_matter("---\nname: x\n---\n\n# Do it\n"), "# Do it\n");
        assert_eq!(without_front_matter("---\r\nname: x\r\n---\r\nDo\r\n"), "Do\r\n");
        assert_eq!(without_front_matter("\u{feff}---\na: b\n---"), "");
    }

    #[test]
    fn a_rule_in_the_text_is_no_front_matter() {
        for text in ["# Do it\n---\nx\n---\n", "---\nno end\n", "", "----\nx\n---\n"] {
            assert_eq!(without_front_matter(text), text);
        }
    }
}
