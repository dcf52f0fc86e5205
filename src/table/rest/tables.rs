//! Create, list, get and delete tables; their access policies. They have no conditions: `If-Match`
//! is ignored (S78). Dates of policies are given back as they were sent.

use hyper::StatusCode;
use hyper::body::Incoming;

use super::error::refusal_of_form;
use super::headers::{Prefer, json, reply};
use super::json::read_table_name;
use super::{TableCall, option, table_name, token};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_policies, write_policies};
use crate::http::reply::Reply;
use crate::table::rules::{Filter, Top};
use crate::table::service::TableQuery;

impl TableCall<'_> {
    pub(super) async fn create_table(self, body: Incoming) -> Answer {
        let body = self.body(body).await?;
        let scope = self.scope()?;
        let prefer = Prefer::read(self.header("prefer")?);
        let name = table_name(&read_table_name(&body).map_err(refusal_of_form)?)?;
        let made = self.service()?.create_table(self.context, &name).await;
        made.map_err(|error| self.refusal(&error).about(name.as_str()))?;
        let location = format!("{}/Tables('{name}')", scope.base);
        let answer = match prefer {
            Some(Prefer::NoContent) => {
                reply(StatusCode::NO_CONTENT).header("dataserviceid", &location)
            }
            _ => json(StatusCode::CREATED, scope.level, scope.table(name.as_str())),
        };
        Ok(answer
            .header("location", location)
            .maybe("preference-applied", prefer.map(Prefer::applied)))
    }

    pub(super) fn list_tables(self) -> Answer {
        let scope = self.scope()?;
        let query = self.table_query()?;
        let page = self.service()?.list_tables(query);
        let page = page.map_err(|error| self.refusal(&error))?;
        let body = scope.tables(page.names.iter().map(String::as_str));
        let next = page.next.map(|name| token::write(&name));
        Ok(json(StatusCode::OK, scope.level, body).maybe("x-ms-continuation-nexttablename", next))
    }

    fn table_query(self) -> Result<TableQuery, Refusal> {
        self.check_options()?;
        let filter = option(self.request, "$filter");
        let filter = filter.filter(|text| !text.trim().is_empty());
        let filter = filter.map(|text| Filter::parse(&text)).transpose();
        let top = option(self.request, "$top");
        let from = option(self.request, "nexttablename").unwrap_or_default();
        Ok(TableQuery {
            filter: filter.map_err(refusal_of_form)?,
            top: Top::parse(top.as_deref()).map_err(refusal_of_form)?,
            from: token::read(&from).map_err(refusal_of_form)?,
        })
    }

    pub(super) fn get_table(self) -> Answer {
        let scope = self.scope()?;
        let name = self.service()?.table(&self.table()?);
        let name = name.map_err(|error| self.refusal(&error))?;
        Ok(json(StatusCode::OK, scope.level, scope.table(&name)))
    }

    pub(super) async fn delete_table(self, _: Incoming) -> Answer {
        let deleted = self.service()?.delete_table(self.context, &self.table()?).await;
        deleted.map_err(|error| self.refusal(&error))?;
        Ok(reply(StatusCode::NO_CONTENT))
    }
}

impl TableCall<'_> {
    pub(super) fn access_policy(self) -> Answer {
        let policies = self.service()?.policies(&self.table()?);
        let policies = policies.map_err(|error| self.refusal(&error))?;
        let xml = write_policies(policies);
        Ok(Reply::ok().xml(xml))
    }

    pub(super) async fn set_access_policy(self, body: Incoming) -> Answer {
        let policies = read_policies(&self.collect(body).await?)?;
        let set = self.service()?.set_policies(self.context, &self.table()?, policies).await;
        set.map_err(|error| self.refusal(&error))?;
        Ok(reply(StatusCode::NO_CONTENT))
    }
}
