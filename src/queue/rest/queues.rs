//! Queues: list, create, delete, metadata and stored access policies. No condition is read: the
//! last writer wins (S102).
//!
//! Decides the marker of a list: the account and the first queue of the next page, as the service
//! writes it; a bare name is read too. Times of policies come back as they were sent.

use hyper::StatusCode;
use hyper::body::Incoming;

use super::{QueueCall, no_content};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_policies, write_policies};
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::queue::rules::parameters::LIST_MAX;
use crate::queue::service::{Created, QueueList};

impl QueueCall<'_> {
    pub(super) fn list_queues(self) -> Answer {
        let query = &self.query;
        let include = query.words("include");
        let with_metadata = include.iter().any(|word| word == "metadata");
        if let Some(word) = include.iter().find(|word| *word != "metadata") {
            return Err(Refusal::query("include", word, "it is not known"));
        }
        let most = self.page_size(LIST_MAX)?;
        let (prefix, marker) = (query.get("prefix"), query.get("marker"));
        let from = marker.and_then(|marker| marker.rsplit('/').next());
        let list = QueueList {
            prefix: prefix.unwrap_or_default().to_owned(),
            from: from.unwrap_or_default().to_owned(),
            most: Some(most),
        };
        let page = self.service()?.list_queues(self.context, &list)?;
        let mut xml = Xml::default();
        let endpoint = self.address.endpoint.as_str();
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
        let next = page.next.map(|name| format!("/{}/{name}", self.account.name()));
        xml.text("NextMarker", next.as_deref().unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().header("cache-control", "no-cache").xml(xml))
    }

    pub(super) async fn create_queue(self, _: Incoming) -> Answer {
        let (name, metadata) = (self.queue()?, self.metadata()?);
        let made = self.service()?.create_queue(self.context, name, metadata).await?;
        Ok(Reply::new(match made {
            Created::New => StatusCode::CREATED,
            Created::Existed => StatusCode::NO_CONTENT,
        }))
    }

    pub(super) async fn delete_queue(self, _: Incoming) -> Answer {
        self.service()?.delete_queue(self.context, self.queue()?).await?;
        Ok(no_content())
    }

    pub(super) fn queue_properties(self) -> Answer {
        let info = self.service()?.queue_info(self.context, self.queue()?)?;
        let reply = Reply::ok().header("cache-control", "no-cache");
        Ok(reply.header("x-ms-approximate-messages-count", info.messages).metadata(&info.metadata))
    }

    pub(super) async fn set_queue_metadata(self, _: Incoming) -> Answer {
        let (name, metadata) = (self.queue()?, self.metadata()?);
        self.service()?.set_metadata(self.context, name, metadata).await?;
        Ok(no_content())
    }

    pub(super) fn access_policy(self) -> Answer {
        let policies = self.service()?.policies(self.context, self.queue()?)?;
        let xml = write_policies(policies);
        Ok(Reply::ok().header("cache-control", "no-cache").xml(xml))
    }

    pub(super) async fn set_access_policy(self, body: Incoming) -> Answer {
        let policies = read_policies(&self.collect(body).await?)?;
        self.service()?.set_policies(self.context, self.queue()?, policies).await?;
        Ok(no_content())
    }
}
