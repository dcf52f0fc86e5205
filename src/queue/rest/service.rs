//! The service as a whole: its queues, page by page.
//!
//! Decides the marker: the account and the first queue of the next page, as the service writes
//! it; a bare name is read too.

use super::queues;
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::queue::rules::parameters::LIST_MAX;
use crate::queue::service::QueueList;

pub(super) fn list(call: &Call<'_>) -> Answer {
    let query = &call.query;
    let include = query.words("include");
    let with_metadata = include.iter().any(|word| word == "metadata");
    if let Some(word) = include.iter().find(|word| *word != "metadata") {
        return Err(Refusal::query("include", word, "it is not known"));
    }
    let most = call.page_size(LIST_MAX)?;
    let (prefix, marker) = (query.get("prefix"), query.get("marker"));
    let from = marker.and_then(|marker| marker.rsplit('/').next());
    let list = QueueList {
        prefix: prefix.unwrap_or_default().to_owned(),
        from: from.unwrap_or_default().to_owned(),
        most: Some(most),
    };
    let page = queues(call)?.list_queues(call.context, &list)?;
    let mut xml = Xml::default();
    let endpoint = call.address.endpoint.as_str();
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
    xml.maybe("Prefix", prefix);
    xml.maybe("Marker", marker);
    if query.get("maxresults").is_some() {
        xml.text("MaxResults", &most.to_string());
    }
    xml.open("Queues");
    for (name, metadata) in &page.queues {
        xml.open("Queue");
        xml.text("Name", name);
        if with_metadata {
            xml.open("Metadata");
            for (name, value) in metadata.iter() {
                xml.text(name, value);
            }
            xml.close("Metadata");
        }
        xml.close("Queue");
    }
    xml.close("Queues");
    let next = page.next.map(|name| format!("/{}/{name}", call.account.name()));
    xml.text("NextMarker", next.as_deref().unwrap_or_default());
    xml.close("EnumerationResults");
    Ok(Reply::ok().header("cache-control", "no-cache").xml(xml))
}
