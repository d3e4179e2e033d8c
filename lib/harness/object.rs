//! A JSON object that another program wrote. A value is read when it is asked for; one of another type than expected
//! shows that the record is none that we know.

use crate::base::error::Error;
use crate::base::members::Members;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

/// Why a reader takes nothing from a record.
pub(super) enum Skip {
    /// It is of an unknown kind.
    Unknown(String),
    /// A value in it is of another type.
    Shape,
    /// Not JSON.
    Torn,
    /// The receiver wants no more.
    Stopped(Error),
}

impl From<Error> for Skip {
    fn from(error: Error) -> Skip {
        Skip::Stopped(error)
    }
}

/// `Ok`: a record of the expected program, with or without a turn.
pub(super) type Taken = Result<(), Skip>;

pub(super) fn unknown(kind: impl Into<String>) -> Taken {
    Err(Skip::Unknown(kind.into()))
}

pub(super) struct Object<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Object<'a> {
    pub(super) fn parse(json: &'a str) -> Result<Object<'a>, Skip> {
        match serde_json::from_str(json) {
            Ok(Members(members)) => Ok(Object(members)),
            Err(e) if e.classify() == Category::Data => Err(Skip::Shape),
            Err(_) => Err(Skip::Torn),
        }
    }

    /// `None` for a key that is missing or null.
    pub(super) fn raw(&self, key: &str) -> Option<&'a RawValue> {
        self.member(key).filter(|value| value.get() != "null")
    }

    /// The key is there, null or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.member(key).is_some()
    }

    fn member(&self, key: &str) -> Option<&'a RawValue> {
        let is_meant = |name: &RawValue| name.get().get(1..name.get().len() - 1) == Some(key);
        self.0.iter().find(|(name, _)| is_meant(name)).map(|(_, value)| *value)
    }

    pub(super) fn get<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, Skip> {
        let value = self.raw(key).map(|value| serde_json::from_str(value.get()));
        value.transpose().map_err(|_| Skip::Shape)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Skip> {
        self.get(key)
    }

    /// Its `type`.
    pub(super) fn kind(&self) -> Result<String, Skip> {
        Ok(self.get("type")?.unwrap_or_default())
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Object<'a>>, Skip> {
        self.raw(key).map(|value| Object::parse(value.get())).transpose()
    }

    /// A flag that says whose words these are; false if it is missing.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Skip> {
        Ok(self.get(key)?.unwrap_or_default())
    }

    /// Whether the key is there, and true.
    pub(super) fn is(&self, key: &str) -> bool {
        self.raw(key).is_some_and(|value| value.get() == "true")
    }

    /// The time of a record, where it has one.
    pub(super) fn time(&self, key: &str) -> Option<Timestamp> {
        self.get::<String>(key).ok()??.parse().ok()
    }
}
