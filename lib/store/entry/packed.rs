//! A note's metadata in few bytes, for a cache. Reading them back takes a tenth of parsing the front matter.

use crate::base::packed::{Unpack, put_bytes, put_number, put_signed};
use crate::store::entry::id::EntryId;
use crate::store::entry::meta::{Anchor, Branch, By, Lines, Meta, Scope, Source, Status, Tier};
use jiff::Timestamp;

/// `None` if the metadata has something that only the file can hold: then it has to be read.
pub fn pack(meta: &Meta) -> Option<Vec<u8>> {
    let mut to = Vec::with_capacity(256);
    put_bytes(&mut to, meta.id.as_str().as_bytes());
    put_bytes(&mut to, meta.title.as_bytes());
    put_bytes(&mut to, meta.summary.as_bytes());
    for list in [&meta.tags, &meta.paths, &meta.outside] {
        put_number(&mut to, list.len() as u64);
        list.iter().for_each(|item| put_bytes(&mut to, item.as_bytes()));
    }
    for word in [meta.status.as_str(), meta.tier.as_str(), meta.scope.as_str()] {
        put_bytes(&mut to, word.as_bytes());
    }
    put_number(&mut to, u64::from(meta.pinned));
    put_optional(&mut to, meta.until.map(|until| until.to_string()).as_deref());
    put_number(&mut to, u64::from(meta.rank.unwrap_or_default()));
    put_optional(&mut to, meta.by.map(By::as_str));
    put_optional(&mut to, meta.written.as_deref());
    put_number(&mut to, meta.used);
    put_number(&mut to, u64::from(meta.last_used.is_some()));
    if let Some(time) = meta.last_used {
        put_signed(&mut to, time.as_second());
        put_signed(&mut to, i64::from(time.subsec_nanosecond()));
    }
    put_signed(&mut to, meta.created_at);
    put_signed(&mut to, meta.updated_at);
    put_number(&mut to, meta.sources.len() as u64);
    for source in &meta.sources {
        if !source.other.is_empty() {
            return None;
        }
        source.keys().iter().for_each(|(_, value)| put_optional(&mut to, value.as_deref()));
    }
    put_number(&mut to, meta.aliases.len() as u64);
    meta.aliases.iter().for_each(|id| put_bytes(&mut to, id.as_str().as_bytes()));
    put_optional(&mut to, meta.superseded_by.as_ref().map(EntryId::as_str));
    put_optional(&mut to, meta.branch.as_ref().map(|branch| branch.name.as_str()));
    put_optional(&mut to, meta.branch.as_ref().and_then(|branch| branch.commit.as_deref()));
    put_optional(&mut to, meta.confirmed.map(|day| day.to_string()).as_deref());
    put_number(&mut to, meta.anchors.len() as u64);
    for Anchor { path, hash, lines, commit, name, says } in &meta.anchors {
        put_bytes(&mut to, path.as_bytes());
        put_optional(&mut to, hash.as_deref());
        put_optional(&mut to, lines.map(|lines| lines.to_string()).as_deref());
        [commit, name, says].iter().for_each(|text| put_optional(&mut to, text.as_deref()));
    }
    // A field that is added and forgotten here shows itself.
    (unpack(&to).as_ref() == Some(meta)).then_some(to)
}

pub fn unpack(bytes: &[u8]) -> Option<Meta> {
    let mut from = Unpack(bytes);
    let id = EntryId::whole(from.text()?)?;
    let meta = Meta {
        title: from.text()?.to_owned(),
        summary: from.text()?.to_owned(),
        tags: from.list(|from| owned(from.text()?))?,
        paths: from.list(|from| owned(from.text()?))?,
        outside: from.list(|from| owned(from.text()?))?,
        status: Status::parse(from.text()?)?,
        tier: Tier::parse(from.text()?)?,
        scope: Scope::parse(from.text()?)?,
        pinned: from.number()? == 1,
        until: optional(&mut from, |day| day.parse().ok())?,
        // No rank is 0.
        rank: Some(u8::try_from(from.number()?).ok()?).filter(|rank| *rank > 0),
        by: optional(&mut from, By::parse)?,
        written: optional(&mut from, owned)?,
        used: from.number()?,
        last_used: match from.number()? {
            0 => None,
            _ => Some(Timestamp::new(from.signed()?, i32::try_from(from.signed()?).ok()?).ok()?),
        },
        created_at: from.signed()?,
        updated_at: from.signed()?,
        sources: from.list(|from| {
            Some(Source {
                harness: optional(from, owned)?,
                thread_id: optional(from, owned)?,
                repo: optional(from, owned)?,
                cwd: optional(from, owned)?,
                at: optional(from, owned)?,
                other: Vec::new(),
            })
        })?,
        aliases: from.list(|from| EntryId::whole(from.text()?))?,
        superseded_by: optional(&mut from, EntryId::whole)?,
        branch: {
            let (name, commit) = (optional(&mut from, owned)?, optional(&mut from, owned)?);
            name.map(|name| Branch { name, commit })
        },
        confirmed: optional(&mut from, |day| day.parse().ok())?,
        anchors: from.list(|from| {
            Some(Anchor {
                path: owned(from.text()?)?,
                hash: optional(from, owned)?,
                lines: optional(from, Lines::parse)?,
                commit: optional(from, owned)?,
                name: optional(from, owned)?,
                says: optional(from, owned)?,
            })
        })?,
        id,
    };
    from.0.is_empty().then_some(meta)
}

fn put_optional(to: &mut Vec<u8>, text: Option<&str>) {
    put_number(to, u64::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(to, text.as_bytes());
    }
}

/// What `read` makes of a text, if there is one.
fn optional<T>(from: &mut Unpack<'_>, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    match from.number()? {
        0 => Some(None),
        _ => Some(Some(read(from.text()?)?)),
    }
}

fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::entry::Entry;

    fn meta(more: &str) -> Meta {
        let text = format!("---\nid: id__AAAAAA\ntitle: \"é 日本\"\n{more}---\n\nbody\n");
        Entry::parse(text.into_bytes()).unwrap().into_meta()
    }

    #[test]
    fn metadata_survives_packing() {
        for more in [
            "",
            "summary: s\ntags: [topic__a, area__b]\npaths: [src/db/**, \"*.sql\"]\nstatus: promoted\ntier: hot\nscope: repo\npinned: true\n",
            "used: 18446744073709551615\nlast_used: 2026-02-13T14:30:00.123456789Z\ncreatedAt: -1\nupdatedAt: 1771000000000\n",
            "until: 2026-03-20\nrank: 80\nby: tool\noutside: [a.example, b.example]\nwritten: 0a1b2c3d\n",
            "sources:\n  - {harness: codex, at: 2026-02-13T14:29:00Z, threadId: T-1, repo: github.com/o/r, cwd: /w}\n  - {cwd: /x}\n",
            "branch: {name: feat/x, commit: 0a1b2c3d}\nconfirmed: 2026-03-20\nanchors:\n  - {path: src/a.rs, hash: 0a1b, lines: 12-20}\n  - {path: a, in: f, says: x + 2}\n  - {path: b}\n",
            "aliases: [id__BBBBBB, id__CCCCCC]\nsupersededBy: id__DDDDDD\n",
        ] {
            let meta = meta(more);
            assert_eq!(unpack(&pack(&meta).unwrap()), Some(meta), "{more}");
        }
    }

    #[test]
    fn what_cannot_be_packed_says_so() {
        assert_eq!(pack(&meta("sources:\n  - {harness: codex, mood: good}\n")), None);
        let bytes = pack(&meta("aliases: [id__BBBBBB]\n")).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end]), None, "{end}");
        }
        assert_eq!(unpack(&[bytes, vec![0]].concat()), None);
    }
}
