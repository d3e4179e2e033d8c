//! The members of a JSON object in their order, including repeated ones, of which a map would keep only the last.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// Keys, as text or raw, and raw values.
pub struct Members<'a, K>(pub Vec<(K, &'a RawValue)>);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Members<'de, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect<K>(PhantomData<K>);
        impl<'de, K: Deserialize<'de>> Visitor<'de> for Collect<K> {
            type Value = Members<'de, K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de, K>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect(PhantomData))
    }
}
