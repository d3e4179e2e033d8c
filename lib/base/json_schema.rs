//! JSON Schema (2020-12, and what draft 7 writes differently), as much as describes the data of one answer.
//!
//! A keyword that would change what is accepted, and is not implemented, is an error when the schema is read: an answer
//! must never pass because a rule was skipped. `format` and the annotations are not rules.

use crate::base::error::{Error, Fault, Result};
use crate::base::fields::{kind, shown};
use regex_lite::Regex;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::sync::Arc;

/// How deep `$ref`s may lead.
const DEEPEST: usize = 150;
/// How many rules are looked at, before a schema counts as too complex: alternatives of alternatives multiply.
const MOST_STEPS: usize = 1_000_000;
/// As many faults are told as a person reads.
const MOST_FAULTS: usize = 20;

#[derive(Debug, Clone)]
pub struct Schema {
    value: Arc<Value>,
    is_checked: bool,
}

type Rules = Map<String, Value>;

/// What the value of a keyword is.
#[derive(Clone, Copy)]
enum Form {
    Schema,
    /// A list of schemas.
    Schemas,
    /// In draft 7, `items` may be a list of schemas, too.
    Items,
    /// A schema for each name.
    Named,
    Pattern,
    Reference,
    Plain(fn(&Value) -> bool),
}

const KEYWORDS: &[(Form, &str)] = &[
    (Form::Schema, "not if then else additionalProperties propertyNames contains additionalItems"),
    (Form::Schemas, "allOf anyOf oneOf prefixItems"),
    (Form::Items, "items"),
    (Form::Named, "properties patternProperties $defs definitions dependentSchemas"),
    (Form::Plain(are_types), "type"),
    (Form::Plain(Value::is_array), "enum"),
    (Form::Plain(are_names), "required"),
    (
        Form::Plain(|value| value.as_object().is_some_and(|all| all.values().all(are_names))),
        "dependentRequired",
    ),
    (
        Form::Plain(|value| whole(value).is_some()),
        "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains",
    ),
    (Form::Plain(Value::is_number), "minimum maximum exclusiveMinimum exclusiveMaximum"),
    (Form::Plain(|value| value.as_f64().is_some_and(|step| step > 0.0)), "multipleOf"),
    (Form::Plain(Value::is_boolean), "uniqueItems"),
    (Form::Pattern, "pattern"),
    (Form::Reference, "$ref"),
    // Whatever is said there.
    (
        Form::Plain(|_| true),
        "const $schema $id $comment $anchor $vocabulary title description default examples deprecated readOnly \
         writeOnly format contentEncoding contentMediaType contentSchema",
    ),
];
const TYPES: &[&str] = &["null", "boolean", "object", "array", "number", "integer", "string"];

impl Schema {
    /// Checks that `value` is a schema whose rules are all known.
    pub fn new(value: Value) -> Result<Schema> {
        check(&value, &value, "")?;
        Ok(Schema { value: Arc::new(value), is_checked: true })
    }

    /// One that accepts everything, for a program that checks the data itself.
    pub fn unchecked(value: Value) -> Schema {
        Schema { value: Arc::new(value), is_checked: false }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What is wrong with `value`; nothing if the schema accepts it.
    pub fn faults(&self, value: &Value) -> Vec<Fault> {
        if !self.is_checked {
            return Vec::new();
        }
        let judge = Validation { root: &self.value, steps: Cell::new(MOST_STEPS) };
        let mut faults = judge.judge(&self.value, value, "", DEEPEST);
        faults.truncate(MOST_FAULTS);
        faults
    }
}

fn fault(path: &str, message: impl Into<String>) -> Fault {
    Fault { path: path.to_owned(), message: message.into() }
}

/// Compares one value with a schema.
struct Validation<'a> {
    root: &'a Value,
    /// What is left of [`MOST_STEPS`].
    steps: Cell<usize>,
}

impl Validation<'_> {
    fn accepts(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        self.judge(schema, value, "", depth).is_empty()
    }

    fn judge(&self, schema: &Value, value: &Value, path: &str, depth: usize) -> Vec<Fault> {
        let only = |message: String| vec![fault(path, message)];
        let rules = match schema {
            Value::Bool(true) => return Vec::new(),
            Value::Object(rules) => rules,
            _ => return only("nothing is allowed here".to_owned()),
        };
        let steps = self.steps.get();
        self.steps.set(steps.saturating_sub(1));
        if steps == 0 {
            return only("the schema is too complex to check this".to_owned());
        }
        if depth == 0 {
            return only("the schema refers to itself without an end".to_owned());
        }
        if let Some(types) = rules.get("type") {
            let all: Vec<&str> = match types {
                Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            if !all.iter().any(|name| is_of(value, name)) {
                return only(format!("{} is expected, not {}", all.join(" or "), kind(value)));
            }
        }
        let mut faults = Vec::new();
        if let Some(Value::Array(allowed)) = rules.get("enum")
            && !allowed.iter().any(|one| same(one, value))
        {
            let allowed: Vec<_> = allowed.iter().take(10).map(shown).collect();
            faults.push(fault(path, format!("{} is none of {}", shown(value), allowed.join(", "))));
        }
        if let Some(only) = rules.get("const").filter(|only| !same(only, value)) {
            faults.push(fault(path, format!("{} is not {}", shown(value), shown(only))));
        }
        let of_kind = match value {
            Value::Number(_) => numbers(rules, value.as_f64().unwrap_or(f64::NAN), path),
            Value::String(text) => strings(rules, text, path),
            Value::Array(items) => self.arrays(rules, items, path, depth),
            Value::Object(members) => self.objects(rules, members, path, depth),
            Value::Null | Value::Bool(_) => Vec::new(),
        };
        faults.into_iter().chain(of_kind).chain(self.combined(rules, value, path, depth)).collect()
    }

    fn combined(&self, rules: &Rules, value: &Value, path: &str, depth: usize) -> Vec<Fault> {
        let target = rules.get("$ref").and_then(Value::as_str).and_then(|to| resolve(self.root, to));
        let all = target.into_iter().chain(list(rules, "allOf"));
        let mut faults: Vec<Fault> = all.flat_map(|part| self.judge(part, value, path, depth - 1)).collect();
        let accepted = |name| {
            let parts = list(rules, name);
            (parts.len(), parts.iter().filter(|part| self.accepts(part, value, depth - 1)).count())
        };
        if matches!(accepted("anyOf"), (1.., 0)) {
            faults.push(fault(path, "none of the alternatives (anyOf) accepts it"));
        }
        match accepted("oneOf") {
            (0, _) | (_, 1) => {}
            (_, 0) => faults.push(fault(path, "none of the alternatives (oneOf) accepts it")),
            (_, _) => faults.push(fault(path, "more than one of the alternatives (oneOf) accepts it")),
        }
        if rules.get("not").is_some_and(|not| self.accepts(not, value, depth - 1)) {
            faults.push(fault(path, "it is what \"not\" excludes"));
        }
        if let Some(condition) = rules.get("if") {
            let branch = if self.accepts(condition, value, depth - 1) { "then" } else { "else" };
            let branch = rules.get(branch);
            faults.extend(branch.into_iter().flat_map(|branch| self.judge(branch, value, path, depth - 1)));
        }
        faults
    }

    fn arrays(&self, rules: &Rules, items: &[Value], path: &str, depth: usize) -> Vec<Fault> {
        let mut faults = lengths(rules, ["minItems", "maxItems"], items.len(), "items", path);
        let is_repeated = |(n, item): (usize, &Value)| items[..n].iter().any(|other| same(other, item));
        if rules.get("uniqueItems") == Some(&Value::Bool(true)) && items.iter().enumerate().any(is_repeated) {
            faults.push(fault(path, "an item is repeated"));
        }
        if let Some(wanted) = rules.get("contains") {
            let found = items.iter().filter(|item| self.accepts(wanted, item, depth - 1)).count() as u64;
            let least = count(rules, "minContains").unwrap_or(1);
            if found < least || count(rules, "maxContains").is_some_and(|most| found > most) {
                faults.push(fault(path, format!("{found} of its items are what \"contains\" asks for")));
            }
        }
        // In draft 7, a list of schemas is in `items`, and the one for the others in `additionalItems`.
        let (first, others) = match rules.get("items") {
            Some(Value::Array(first)) => (first.as_slice(), rules.get("additionalItems")),
            others => (list(rules, "prefixItems"), others),
        };
        for (n, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(n).or(others) {
                faults.extend(self.judge(schema, item, &format!("{path}[{n}]"), depth - 1));
            }
        }
        faults
    }

    fn objects(&self, rules: &Rules, members: &Rules, path: &str, depth: usize) -> Vec<Fault> {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let size = members.len() as u64;
        let required = list(rules, "required").iter().filter_map(Value::as_str);
        let missing = required.filter(|name| !members.contains_key(*name));
        let mut faults: Vec<Fault> = missing.map(|name| fault(&below(name), "is missing")).collect();
        if count(rules, "minProperties").is_some_and(|least| size < least)
            || count(rules, "maxProperties").is_some_and(|most| size > most)
        {
            faults.push(fault(path, format!("{size} members are not as many as the schema asks for")));
        }
        let named = |key: &str| rules.get(key).and_then(Value::as_object);
        for (name, needed) in named("dependentRequired").into_iter().flatten() {
            let needed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
            for needed in needed.filter(|_| members.contains_key(name)) {
                if !members.contains_key(needed) {
                    faults.push(fault(&below(needed), format!("is missing, but \"{name}\" needs it")));
                }
            }
        }
        for (name, value) in members {
            let path = below(name);
            let is_named = |(pattern, _): &(&String, &Value)| {
                Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name))
            };
            let patterns = named("patternProperties").into_iter().flatten().filter(is_named);
            let mut schemas: Vec<&Value> =
                named("properties").and_then(|all| all.get(name)).into_iter().collect();
            schemas.extend(patterns.map(|(_, schema)| schema));
            match rules.get("additionalProperties").filter(|_| schemas.is_empty()) {
                Some(Value::Bool(false)) => faults.push(fault(&path, "unknown key")),
                others => schemas.extend(others),
            }
            faults.extend(schemas.into_iter().flat_map(|schema| self.judge(schema, value, &path, depth - 1)));
            if let Some(names) = rules.get("propertyNames")
                && !self.accepts(names, &Value::String(name.clone()), depth - 1)
            {
                faults.push(fault(&path, "is not a name that the schema allows"));
            }
        }
        if let Some(schemas) = named("dependentSchemas") {
            let whole = Value::Object(members.clone());
            let schemas = schemas.iter().filter(|(name, _)| members.contains_key(*name));
            faults.extend(schemas.flat_map(|(_, schema)| self.judge(schema, &whole, path, depth - 1)));
        }
        faults
    }
}

type Compare = fn(&f64, &f64) -> bool;

fn numbers(rules: &Rules, value: f64, path: &str) -> Vec<Fault> {
    let bounds: [(&str, Compare, &str); 4] = [
        ("minimum", f64::lt, "is less than"),
        ("maximum", f64::gt, "is more than"),
        ("exclusiveMinimum", f64::le, "is not more than"),
        ("exclusiveMaximum", f64::ge, "is not less than"),
    ];
    let number = |name| rules.get(name).and_then(Value::as_f64);
    let mut faults = Vec::new();
    for (name, is_beyond, words) in bounds {
        if let Some(bound) = number(name).filter(|bound| is_beyond(&value, bound)) {
            faults.push(fault(path, format!("{value} {words} {bound}")));
        }
    }
    // 0.3 is a multiple of 0.1, though not in binary.
    let is_multiple = |times: f64| (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0);
    if let Some(step) = number("multipleOf").filter(|step| !is_multiple(value / step)) {
        faults.push(fault(path, format!("{value} is not a multiple of {step}")));
    }
    faults
}

fn strings(rules: &Rules, text: &str, path: &str) -> Vec<Fault> {
    let mut faults = lengths(rules, ["minLength", "maxLength"], text.chars().count(), "characters", path);
    if let Some(pattern) = rules.get("pattern").and_then(Value::as_str)
        && !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
    {
        faults.push(fault(path, format!("it does not match the pattern {pattern}")));
    }
    faults
}

/// Whether there are as many of `what` as two rules demand.
fn lengths(rules: &Rules, [least, most]: [&str; 2], length: usize, what: &str, path: &str) -> Vec<Fault> {
    let length = length as u64;
    let least = count(rules, least).filter(|least| length < *least);
    let most = count(rules, most).filter(|most| length > *most);
    let too_few = least.map(|least| format!("it has {length} {what}; at least {least} are needed"));
    let too_many = most.map(|most| format!("it has {length} {what}; at most {most} are allowed"));
    too_few.into_iter().chain(too_many).map(|message| fault(path, message)).collect()
}

fn list<'a>(rules: &'a Rules, name: &str) -> &'a [Value] {
    rules.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn count(rules: &Rules, name: &str) -> Option<u64> {
    rules.get(name).and_then(whole)
}

/// A whole number from 0, also written as 2.0.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
}

fn is_of(value: &Value, name: &str) -> bool {
    match (name, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_)) => true,
        ("integer", Value::Number(n)) => {
            n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        _ => false,
    }
}

/// 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The part of the schema that a `$ref` names: `#`, or `#/` and a JSON pointer.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let pointer = pointer.replace("%25", "%");
    if pointer.is_empty() || pointer.starts_with('/') { root.pointer(&pointer) } else { None }
}

/// An error unless `schema` is one, with known rules only. `at` is its place.
fn check(schema: &Value, root: &Value, at: &str) -> Result<()> {
    let place = if at.is_empty() { "it" } else { at };
    let wrong = |why: String| Err(Error::config(format!("not a JSON Schema: {why}")));
    let rules = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(rules) => rules,
        other => return wrong(format!("{place} is {}, not an object", kind(other))),
    };
    for (name, value) in rules {
        let at = format!("{at}/{name}");
        let known = KEYWORDS.iter().find(|(_, names)| names.split(' ').any(|known| known == name));
        let Some((form, _)) = known else {
            // A name of the user's own says nothing about the data.
            if name.starts_with("x-") {
                continue;
            }
            return wrong(format!("{at} is not known here; this keyword cannot be checked"));
        };
        let is_right = match (form, value) {
            (Form::Plain(is_right), _) => is_right(value),
            (Form::Schemas | Form::Items, Value::Array(parts)) => {
                for (n, part) in parts.iter().enumerate() {
                    check(part, root, &format!("{at}/{n}"))?;
                }
                !parts.is_empty()
            }
            (Form::Schema | Form::Items, _) => check(value, root, &at).map(|()| true)?,
            (Form::Named, Value::Object(parts)) => {
                for (key, part) in parts {
                    check(part, root, &format!("{at}/{key}"))?;
                    if name == "patternProperties" {
                        compiles(key, &at)?;
                    }
                }
                true
            }
            (Form::Pattern, Value::String(pattern)) => compiles(pattern, &at).map(|()| true)?,
            (Form::Reference, Value::String(to)) => match resolve(root, to) {
                Some(Value::Object(_) | Value::Bool(_)) => true,
                _ => return wrong(format!("{at} leads nowhere: {}; only #/… is followed", shown(value))),
            },
            (Form::Schemas | Form::Named | Form::Pattern | Form::Reference, _) => false,
        };
        if !is_right {
            return wrong(format!("{at} cannot be {}", shown(value)));
        }
    }
    Ok(())
}

fn are_names(names: &Value) -> bool {
    names.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

/// The name of a type, or several.
fn are_types(value: &Value) -> bool {
    let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    value.as_array().map_or_else(|| is_type(value), |all| !all.is_empty() && all.iter().all(is_type))
}

fn compiles(pattern: &str, at: &str) -> Result<()> {
    let why =
        |e| Error::config(format!("not a JSON Schema: {at}: the pattern {pattern} cannot be used: {e}"));
    Regex::new(pattern).map(drop).map_err(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(schema: Value, value: Value) -> Vec<String> {
        Schema::new(schema).unwrap().faults(&value).iter().map(ToString::to_string).collect()
    }

    /// Values that each schema accepts, and values that it does not.
    #[test]
    fn each_keyword_accepts_and_rejects() {
        for (schema, right, wrong) in [
            (json!(true), vec![json!(1), json!(null)], vec![]),
            (json!({}), vec![json!(1), json!([])], vec![]),
            (json!(false), vec![], vec![json!(1)]),
            (
                json!({"type": "integer"}),
                vec![json!(1), json!(1.0), json!(u64::MAX)],
                vec![json!(1.5), json!("1")],
            ),
            (json!({"type": ["string", "null"]}), vec![json!("a"), json!(null)], vec![json!(1)]),
            (json!({"type": "number"}), vec![json!(1), json!(1.5)], vec![json!("1")]),
            (json!({"type": "boolean"}), vec![json!(true)], vec![json!(0)]),
            (
                json!({"enum": [1, "a", [1]]}),
                vec![json!(1.0), json!("a"), json!([1])],
                vec![json!(2), json!([2])],
            ),
            (json!({"const": {"a": 1}}), vec![json!({"a": 1.0})], vec![json!({"a": 2}), json!({})]),
            (
                json!({"minimum": 1, "maximum": 3}),
                vec![json!(1), json!(3), json!("x")],
                vec![json!(0), json!(3.1)],
            ),
            (json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}), vec![json!(2)], vec![json!(1), json!(3)]),
            (json!({"multipleOf": 0.1}), vec![json!(0.3), json!(7)], vec![json!(0.35)]),
            (
                json!({"minLength": 2, "maxLength": 3}),
                vec![json!("äö"), json!(1)],
                vec![json!("ä"), json!("abcd")],
            ),
            (json!({"pattern": "^a+$"}), vec![json!("aa")], vec![json!("b")]),
            (json!({"items": {"type": "string"}}), vec![json!([]), json!(["a"])], vec![json!(["a", 1])]),
            (
                json!({"prefixItems": [{"type": "string"}], "items": false}),
                vec![json!(["a"]), json!([])],
                vec![json!([1]), json!(["a", "b"])],
            ),
            (
                json!({"items": [{"type": "string"}], "additionalItems": {"type": "number"}}),
                vec![json!(["a", 1])],
                vec![json!(["a", "b"])],
            ),
            (json!({"minItems": 1, "maxItems": 2}), vec![json!([1])], vec![json!([]), json!([1, 2, 3])]),
            (json!({"uniqueItems": true}), vec![json!([1, 2])], vec![json!([1, 1.0])]),
            (json!({"contains": {"const": 1}}), vec![json!([2, 1])], vec![json!([2])]),
            (
                json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}),
                vec![json!([1, 1])],
                vec![json!([1]), json!([1, 1, 1, 1])],
            ),
            (
                json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}),
                vec![json!({"a": "x"}), json!(7)],
                vec![json!({}), json!({"a": 1}), json!({"a": "x", "b": 1})],
            ),
            (
                json!({"patternProperties": {"^x": {"type": "number"}}, "additionalProperties": {"type": "string"}}),
                vec![json!({"x1": 1, "y": "a"})],
                vec![json!({"x1": "a"}), json!({"y": 1})],
            ),
            (json!({"minProperties": 1, "maxProperties": 1}), vec![json!({"a": 1})], vec![json!({})]),
            (json!({"propertyNames": {"maxLength": 1}}), vec![json!({"a": 1})], vec![json!({"ab": 1})]),
            (json!({"dependentRequired": {"a": ["b"]}}), vec![json!({"b": 1})], vec![json!({"a": 1})]),
            (
                json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
                vec![json!({}), json!({"a": 1, "b": 1})],
                vec![json!({"a": 1})],
            ),
            (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), vec![json!(1)], vec![json!(3)]),
            (
                json!({"anyOf": [{"type": "string"}, {"minimum": 2}]}),
                vec![json!("a"), json!(2)],
                vec![json!(1)],
            ),
            (json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}), vec![json!(0), json!(3)], vec![json!(1)]),
            (json!({"not": {"type": "string"}}), vec![json!(1)], vec![json!("a")]),
            (
                json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 1}}),
                vec![json!("a"), json!(1)],
                vec![json!(""), json!(0)],
            ),
            (
                json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["v"]}}}),
                vec![json!({"v": 1, "next": {"v": 2}})],
                vec![json!({"v": 1, "next": {}})],
            ),
        ] {
            for value in right {
                assert_eq!(faults(schema.clone(), value.clone()), Vec::<String>::new(), "{schema} {value}");
            }
            for value in wrong {
                assert!(!faults(schema.clone(), value.clone()).is_empty(), "{schema} {value}");
            }
        }
    }

    #[test]
    fn faults_have_a_path() {
        let schema = json!({
            "type": "object", "required": ["title", "tags"], "additionalProperties": false,
            "properties": {"title": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        });
        assert_eq!(
            faults(schema.clone(), json!({"tags": ["a", 5], "more": 1})),
            ["title: is missing", "more: unknown key", "tags[1]: string is expected, not a number"]
        );
        assert_eq!(faults(schema, json!([])), ["object is expected, not an array"]);
    }

    #[test]
    fn what_is_no_schema_or_cannot_be_checked_is_an_error() {
        for (schema, why) in [
            (json!([]), "it is an array, not an object"),
            (json!("string"), "it is a string"),
            (json!({"type": "text"}), "/type cannot be \"text\""),
            (json!({"type": 5}), "/type cannot be 5"),
            (json!({"properties": {"a": 5}}), "/properties/a is a number"),
            (json!({"properties": []}), "/properties cannot be"),
            (json!({"required": "a"}), "/required cannot be"),
            (json!({"minLength": -1}), "/minLength cannot be -1"),
            (json!({"multipleOf": 0}), "/multipleOf cannot be 0"),
            (json!({"pattern": "("}), "/pattern: the pattern ( cannot be used"),
            (json!({"$ref": "#/$defs/x"}), "/$ref leads nowhere"),
            (json!({"$ref": "http://example.com/x"}), "/$ref leads nowhere"),
            (json!({"unevaluatedProperties": false}), "/unevaluatedProperties is not known"),
            (json!({"requried": ["a"]}), "/requried is not known"),
            (json!({"anyOf": []}), "/anyOf cannot be"),
        ] {
            let error = Schema::new(schema).unwrap_err();
            assert!(
                error.message().starts_with("not a JSON Schema: ") && error.message().contains(why),
                "{error}"
            );
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_without_an_end_ends() {
        let schema = json!({"$ref": "#"});
        assert_eq!(faults(schema, json!(1)), ["the schema refers to itself without an end"]);
        let alternatives = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(!faults(alternatives, json!(1)).is_empty());
        let nest = (0..200).fold(json!(1), |value, _| json!([value]));
        let faults = faults(json!({"items": {"$ref": "#"}}), nest);
        assert!(faults.len() <= 1, "{faults:?}");
    }
}
