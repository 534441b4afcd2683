//! What a configuration names must exist, and be the organization's.

use crate::{
    Deadline, Error, Result,
    actions::{Action, ToolConfig, sms::Sender},
    clients::{Pipedream, Secrets, pipedream::Project},
    models::OrganizationId,
    store::{KnowledgeBases, PhoneNumbers},
};

#[derive(Clone)]
pub struct References {
    pub phone_numbers: PhoneNumbers,
    pub knowledge_bases: KnowledgeBases,
    pub pipedream: Pipedream,
    /// Name or ARN of the Pipedream project's secret.
    pub pipedream_secret: String,
    pub secrets: Secrets,
}

impl References {
    /// Checks what the configuration names; a Pipedream action is pinned to the version that is there now.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the field.
    pub async fn check(&self, organization: OrganizationId, config: &mut ToolConfig, deadline: Deadline) -> Result<()> {
        match &mut config.action {
            Action::Sms(sms) => {
                let Sender::SpecificNumber { phone_number_id: id } = sms.from else { return Ok(()) };
                self.phone_numbers.get(organization, id).await.map(drop).map_err(|error| match error {
                    Error::NotFound(_) => {
                        Error::invalid("from.phone_number_id", "is not a phone number of this organization")
                    }
                    other => other,
                })
            }
            Action::PipedreamAction(action) => {
                let project: Project = self.secrets.get(&self.pipedream_secret).await?;
                let found = self.pipedream.action(&project, action.key(), deadline).await?;
                let found = found
                    .ok_or_else(|| Error::invalid("pipedreamMetadata.actionKey", "is not an action of Pipedream's"))?;
                action.pin(&found);
                Ok(())
            }
            Action::Query(query) => {
                let base = self.knowledge_bases.get(organization, query.knowledge_base_id()).await;
                let base = base.map_err(|error| match error {
                    Error::NotFound(_) => {
                        Error::invalid("knowledge_base_id", "is not a knowledge base of this organization")
                    }
                    other => other,
                })?;
                query.resolve(&base, config.attach_to_agent)
            }
            Action::ApiRequest(_) | Action::TransferCall(_) => Ok(()),
        }
    }
}
