//! The OpenAPI document of the API, made of the table of calls.
//!
//! Decides what every call has in common: its errors, the header of those that change something,
//! the token. The shapes of bodies and answers are in `schemas.json`.

use hyper::Method;
use serde_json::{Map, Value, json};

use super::super::guard::{CLIENT_HEADER, CLIENT_MAX};
use super::failure::ApiFailure;
use super::routes::{Param, ParameterKind, ROUTES, Route, RouteHandler};

/// The shapes of bodies and answers.
const SCHEMAS: &str = include_str!("schemas.json");

/// Statuses of errors that every call has. An account that is not there is a 404 of every call.
const COMMON: [u16; 6] = [400, 401, 403, 404, 500, 503];

pub fn document() -> Result<Value, ApiFailure> {
    let schemas: Value = serde_json::from_str(SCHEMAS)
        .map_err(|error| ApiFailure::failed(format!("the schemas of the API: {error}")))?;
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = call(route);
    }
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "latchfs",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The test bench of latchfs: holds, the clock, gates, faults, events.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // Only a server that is exposed, or has a private key, asks for the token.
        "security": [{}, { "token": [] }],
    }))
}

fn call(route: &Route) -> Value {
    let changes = route.method != Method::GET;
    let mut parameters: Vec<Value> = in_path(route.path).collect();
    parameters.extend(route.params().map(in_query));
    if changes {
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
    if let Some(schema) = route.body {
        let content = json!({ "application/json": { "schema": reference(schema) } });
        call["requestBody"] = json!({ "required": true, "content": content });
    }
    call
}

fn responses(route: &Route) -> Value {
    let mut content = json!({ "application/json": { "schema": reference(route.answer) } });
    if matches!(route.run, RouteHandler::Events) {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    let mut responses = json!({});
    responses[route.status.to_string()] =
        json!({ "description": route.summary, "content": content });
    let with_body = route.body.map_or(&[][..], |_| &[408, 413]);
    for status in COMMON.iter().chain(route.errors).chain(with_body) {
        let content = json!({ "application/json": { "schema": reference("Error") } });
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

/// The values in a path: numbers, but for names.
fn in_path(path: &'static str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let schema = match name {
            "name" => json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" }),
            _ => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    })
}

fn in_query(param: &Param) -> Value {
    let schema = match param.kind {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Word(words) => json!({ "type": "string", "enum": words }),
        ParameterKind::Words(words) => {
            let word = words.join("|");
            json!({ "type": "string", "pattern": format!("^({word})(,({word}))*$") })
        }
        ParameterKind::Flag => json!({ "type": "boolean" }),
        ParameterKind::Number { most } => {
            json!({ "type": "integer", "minimum": 0, "maximum": most })
        }
    };
    json!({
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.about,
        "schema": schema,
    })
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
        let calls = ROUTES.iter().map(|route| format!("{} {}", route.method, route.path));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, calls);
        // And each is shown: by its method and the fixed parts of its path.
        let shown: Vec<_> = page.lines().filter(|line| line.starts_with("$ ")).collect();
        for route in &ROUTES {
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
        let document = document().unwrap();
        let mut ids = Vec::new();
        for route in &ROUTES {
            let method = route.method.as_str().to_ascii_lowercase();
            let call = &document["paths"][route.path][method];
            assert_eq!(call["operationId"], route.id, "{} {}", route.method, route.path);
            ids.push(route.id);
        }
        let calls = document["paths"].as_object().unwrap().values();
        assert_eq!(calls.map(|path| path.as_object().unwrap().len()).sum::<usize>(), ids.len());
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ROUTES.len(), "a name stands for one call");
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
