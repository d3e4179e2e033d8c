//! A skill: instructions in a `SKILL.md`, with front matter that is not for the model.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::lossy;
use std::path::Path;

/// The largest skill, in bytes.
const CAP: u64 = 1 << 20;

/// The skill at `path`: absolute, `~/…`, or relative to the configuration directory.
///
/// A path from the command line may also be relative to the directory `typed`, which is tried second: a file in a
/// stranger's checkout must not replace the user's own.
pub(crate) fn load(path: &str, typed: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<String> {
    let named = env.expand(path);
    let mut places = vec![env.config_dir()?.join(&named)];
    places.extend(typed.map(|dir| dir.join(&named)));
    for place in places {
        let read = file::if_exists(file::read(&place, CAP));
        if let Some(bytes) =
            read.map_err(|e| Error::config(format!("failed to read skill \"{path}\": {e}")).because(e))?
        {
            let (text, damaged) = lossy(bytes);
            if damaged {
                reporter
                    .warn(&format!("skill \"{path}\" is not valid UTF-8; the invalid bytes became U+FFFD"));
            }
            return Ok(without_front_matter(&text).to_owned());
        }
    }
    Err(Error::config(format!("skill not found: {path}")))
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
