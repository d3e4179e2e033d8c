//! Files with a JSON Schema: for an agent's answer, or for a tool's arguments.

use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::config::toml_file::{read, text};
use std::path::Path;

/// The schema in the file `path`. `named` is how the user wrote it.
pub fn load(path: &Path, named: &str) -> Result<Schema> {
    let Some(bytes) = read(path, &format!("schema \"{named}\""))? else {
        return Err(Error::config(format!("schema not found: {named}"))
            .hint(format!("looked for \"{}\"", path.display())));
    };
    let failed = |error: Error| error.context(format!("schema \"{named}\""));
    let value = serde_json::from_str(text(&bytes).map_err(failed)?)
        .map_err(|e| failed(Error::config(format!("not valid JSON: {e}"))))?;
    Schema::new(value).map_err(failed)
}
