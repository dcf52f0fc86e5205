//! The OpenAPI document of the API, made of the table of calls and of their types.
//!
//! Decides what every call has in common: its errors, the header of those that change something,
//! the token.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use hyper::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body::{AdminResponse, json as json_answer};
use super::call::ApiCall;
use super::calls::Api;
use super::failure::ApiFailure;
use super::guard::{CLIENT_HEADER, CLIENT_MAX};
use super::routes::GetDocument;
use super::routes::{ACCOUNT, Param, ROUTES, Route};

/// Statuses of errors that every call has. An account that is not there is a 404 of every call.
const COMMON: [u16; 6] = [400, 401, 403, 404, 500, 503];

/// The name of the shape of errors.
const ERROR: &str = "Error";

/// The OpenAPI document.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    pub openapi: String,
    pub info: Map<String, Value>,
    pub paths: Map<String, Value>,
    pub components: Map<String, Value>,
    pub security: Vec<Map<String, Value>>,
}

impl Api {
    pub(super) async fn document(
        self: Arc<Self>,
        call: ApiCall,
        _: GetDocument,
    ) -> Result<AdminResponse, ApiFailure> {
        static OF_ALL: LazyLock<Value> = LazyLock::new(|| document(false));
        static OF_OWNERS: LazyLock<Value> = LazyLock::new(|| document(true));
        let made = if call.peer.is_owner() { &OF_OWNERS } else { &OF_ALL };
        Ok(json_answer(StatusCode::OK, made))
    }
}

/// The document; with the calls of the control socket for its owner.
fn document(for_owner: bool) -> Value {
    let mut paths = Map::new();
    let mut shapes = ROUTES.shapes.clone();
    for route in ROUTES.routes.iter().filter(|route| for_owner || !route.for_owner) {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = call(route);
        if let Some((name, schema)) = &route.body {
            shapes.insert(name.clone(), schema.clone());
        }
    }
    let needed = named(&json!(paths), &shapes);
    shapes.retain(|name, _| needed.contains(name));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "latchfs",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The test bench of latchfs: holds, the clock, gates, faults, events.",
        },
        "paths": paths,
        "components": {
            "schemas": shapes,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // Only a server that is exposed, or has a private key, asks for the token.
        "security": [{}, { "token": [] }],
    })
}

/// The shapes that a value names, and those that these name.
fn named(value: &Value, shapes: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut texts = vec![value.to_string()];
    while let Some(text) = texts.pop() {
        for name in text.split("#/components/schemas/").skip(1) {
            let name = name.split('"').next().unwrap_or_default();
            if found.insert(name.to_owned()) {
                texts.extend(shapes.get(name).map(Value::to_string));
            }
        }
    }
    found
}

fn call(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route.params.iter().map(parameter).collect();
    parameters.push(json!({
        "name": ACCOUNT,
        "in": "query",
        "required": false,
        "description": "The account; the first one without it",
        "schema": { "type": "string" },
    }));
    if route.method != Method::GET && !route.for_owner {
        parameters.push(json!({
            "name": CLIENT_HEADER,
            "in": "header",
            "required": true,
            "description": "The name of the client, which others are told",
            "schema": {
                "type": "string", "pattern": format!("^[!-~]{{1,{CLIENT_MAX}}}$"),
            },
        }));
    }
    let mut call = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route),
    });
    if let Some((name, _)) = &route.body {
        let content = json!({ "application/json": { "schema": reference(name) } });
        call["requestBody"] = json!({ "required": true, "content": content });
    }
    call
}

fn responses(route: &Route) -> Value {
    let mut content = json!({ "application/json": { "schema": reference(&route.answer) } });
    if route.path == super::events::PATH {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    let mut responses = json!({});
    responses[route.status.to_string()] =
        json!({ "description": route.summary, "content": content });
    let with_body = route.body.as_ref().map_or(&[][..], |_| &[408, 413]);
    for status in COMMON.iter().chain(route.errors).chain(with_body) {
        let content = json!({ "application/json": { "schema": reference(ERROR) } });
        responses[status.to_string()] =
            json!({ "description": meaning(*status), "content": content });
    }
    responses
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request makes no sense",
        401 => "The token is missing or wrong",
        403 => "Host, Origin or the client's name is not accepted",
        404 => "What the request names is not there",
        408 => "What the request waits for did not happen",
        409 => "A rule refused; the error has the holder where there is one",
        413 => "The body is too long",
        503 => "A bound of the server is reached",
        _ => "The server has an error",
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn parameter(param: &Param) -> Value {
    let mut schema = param.schema.clone();
    if param.in_path && schema["type"] == "string" {
        schema["pattern"] = json!("^[A-Za-z0-9._-]{1,64}$");
    }
    let mut parameter = json!({
        "name": param.name,
        "in": if param.in_path { "path" } else { "query" },
        "required": param.required,
        "schema": schema,
    });
    if !param.about.is_empty() {
        parameter["description"] = json!(param.about);
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_api_lists_every_call_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md");
        let page = std::fs::read_to_string(page).unwrap();
        let list = page.split_once("## All calls").unwrap().1;
        let mut listed: Vec<_> =
            list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let routes = || ROUTES.routes.iter();
        let calls = routes().map(|route| format!("{} {}", route.method, route.path));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, calls);
        // And each is shown: by its method and the fixed parts of its path.
        let shown: Vec<_> = page.lines().filter(|line| line.starts_with("$ ")).collect();
        for route in routes().filter(|route| !route.for_owner) {
            let path = route.path.strip_prefix("/api/v1/").unwrap();
            let parts: Vec<_> = path.split('/').filter(|part| !part.starts_with('{')).collect();
            let call = format!("api {} ", route.method);
            let is_it = |line: &&&str| {
                line.split(&call).skip(1).any(|after| {
                    let target = after.trim_start_matches(['\'', '"']);
                    let end = target.find([' ', '\'', '"', '?', ')']).unwrap_or(target.len());
                    let given: Vec<_> = target[..end].split('/').collect();
                    given.len() == path.split('/').count()
                        && parts.iter().all(|part| given.contains(part))
                })
            };
            let count = shown.iter().filter(is_it).count();
            assert!(count > 0, "{} {} is not shown", route.method, route.path);
        }
    }

    #[test]
    fn the_document_has_every_call_once_and_every_shape_that_it_names() {
        for for_owner in [false, true] {
            check(for_owner);
        }
    }

    fn check(for_owner: bool) {
        let document = document(for_owner);
        let mut ids = Vec::new();
        for route in ROUTES.routes.iter().filter(|route| for_owner || !route.for_owner) {
            let method = route.method.as_str().to_ascii_lowercase();
            let call = &document["paths"][route.path][method];
            assert_eq!(call["operationId"], route.id, "{} {}", route.method, route.path);
            ids.push(route.id);
        }
        let calls = document["paths"].as_object().unwrap().values();
        assert_eq!(calls.map(|path| path.as_object().unwrap().len()).sum::<usize>(), ids.len());
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "a name stands for one call");
        let text = document.to_string();
        let named = text.split("#/components/schemas/").skip(1);
        for name in named.map(|rest| rest.split('"').next().unwrap()) {
            let shape = &document["components"]["schemas"][name];
            assert!(shape.is_object(), "{name} is not among the schemas");
        }
        let shapes = document["components"]["schemas"].as_object().unwrap();
        for name in shapes.keys() {
            assert!(text.contains(&format!("schemas/{name}\"")), "nothing names {name}");
        }
    }
}
