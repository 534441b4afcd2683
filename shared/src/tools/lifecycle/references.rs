//! Checks that resources named by a configuration exist and belong to the organization.

use futures_util::{future::try_join_all, try_join};

use crate::{
    Deadline, Error, Result,
    actions::{ToolAction, ToolConfig, sms::Sender},
    clients::{Outbound, Pipedream, Secrets, pipedream::Project},
    error::{Problems, found},
    models::{OrganizationId, ToolId},
    store::{Agents, Database, KnowledgeBases, PhoneNumbers, Tools},
    tool::arguments,
};

#[derive(Clone)]
pub struct References {
    agents: Agents,
    phone_numbers: PhoneNumbers,
    knowledge_bases: KnowledgeBases,
    tools: Tools,
    pipedream: Pipedream,
    pipedream_secret: String,
    secrets: Secrets,
    outbound: Outbound,
}

impl References {
    /// `pipedream`: the client, and the secret with the project.
    pub fn new(database: &Database, pipedream: (Pipedream, String), secrets: Secrets, outbound: Outbound) -> Self {
        let (pipedream, pipedream_secret) = pipedream;
        Self {
            agents: Agents::new(database),
            phone_numbers: PhoneNumbers::new(database),
            knowledge_bases: KnowledgeBases::new(database),
            tools: Tools::new(database),
            pipedream,
            pipedream_secret,
            secrets,
            outbound,
        }
    }

    /// Checks the references of a configuration, and pins a Pipedream action to its current version. `known`: the tool and its
    /// previously saved configuration.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field.
    pub async fn check(
        &self,
        organization: OrganizationId,
        config: &mut ToolConfig,
        known: Option<(ToolId, &ToolConfig)>,
        deadline: Deadline,
    ) -> Result<()> {
        self.check_if_call_over(organization, config, known).await?;
        self.check_action(organization, config, known.map(|(_, known)| known), deadline).await
    }

    async fn check_if_call_over(
        &self,
        organization: OrganizationId,
        config: &ToolConfig,
        known: Option<(ToolId, &ToolConfig)>,
    ) -> Result<()> {
        let Some(after_call) = &config.if_call_over else { return Ok(()) };
        if known.is_some_and(|(_, known)| known.if_call_over == config.if_call_over) {
            return Ok(());
        }
        let wrong = |problem: String| Err(Error::invalid("if_call_over.tool", problem));
        if known.is_some_and(|(id, _)| id == after_call.tool) {
            return wrong("is this tool itself; choose another".to_owned());
        }
        let Some(row) = found(self.tools.get(organization, after_call.tool).await)? else {
            return wrong("is not a tool of this organization".to_owned());
        };
        if let Some(why) = ToolConfig::stored(&row)?.unfit_after_call() {
            return wrong(format!("names {}, which {why}", row.name));
        }
        let parameters = row.function_schema.get("parameters").cloned().unwrap_or_default();
        match arguments::names_fit(&parameters, &after_call.templates(&config.label)) {
            Ok(()) => Ok(()),
            Err(problem) => Err(Error::invalid("if_call_over.arguments", problem)),
        }
    }

    async fn check_action(
        &self,
        organization: OrganizationId,
        config: &mut ToolConfig,
        known: Option<&ToolConfig>,
        deadline: Deadline,
    ) -> Result<()> {
        match &mut config.action {
            ToolAction::Sms(sms) => {
                let Sender::SpecificNumber { phone_number_id: id } = sms.from else { return Ok(()) };
                self.phone_numbers.get(organization, id).await.map(drop).map_err(|error| match error {
                    Error::NotFound(_) => {
                        Error::invalid("from.phone_number_id", "is not a phone number of this organization")
                    }
                    other => other,
                })
            }
            ToolAction::PipedreamAction(action) => {
                let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
                let (found, account) = try_join!(
                    self.pipedream.action(&project, action.key(), deadline),
                    self.pipedream.account(&project, organization, action.account(), deadline),
                )?;
                let mut problems = Problems::default();
                let known = known.and_then(|known| match &known.action {
                    ToolAction::PipedreamAction(known) => Some(known),
                    _ => None,
                });
                if let Some(found) = &found {
                    action.check_against_component(found, account.as_ref(), known, &mut problems);
                } else {
                    problems.add("pipedreamMetadata.actionKey", "is not an action of Pipedream's");
                }
                if account.is_none() {
                    problems.add(
                        "pipedreamMetadata.accountId",
                        "is not an account that this organization has connected at Pipedream",
                    );
                }
                action.pin(&problems.into_result(found)?);
                Ok(())
            }
            ToolAction::Query(query) => {
                let base = self.knowledge_bases.get(organization, query.knowledge_base_id()).await;
                let base = base.map_err(|error| match error {
                    Error::NotFound(_) => {
                        Error::invalid("knowledge_base_id", "is not a knowledge base of this organization")
                    }
                    other => other,
                })?;
                query.resolve(&base, config.attach_to_agent)
            }
            ToolAction::TransferCall(transfer) => {
                let looks = transfer.assistants().into_iter().map(|(field, assistant)| async move {
                    let agent = self.agents.with_assistant(organization, assistant).await?;
                    Ok::<_, Error>(agent.is_none().then_some(field))
                });
                let mut problems = Problems::default();
                for field in try_join_all(looks).await?.into_iter().flatten() {
                    problems
                        .add(field, "is not the assistant of an agent of this organization; register it as one first");
                }
                problems.into_result(Some(()))
            }
            ToolAction::PlaceCall(call) => {
                let number = self.phone_numbers.get(organization, call.phone_number_id).await;
                let agent = match call.agent_id {
                    Some(agent) => self.agents.get(organization, agent).await.map(drop),
                    None => Ok(()),
                };
                let mut problems = Problems::default();
                match number {
                    Ok(number) => {
                        if number.vapi_phone_number_id.is_none() {
                            problems.add("phone_number_id", "has no vapi_phone_number_id, which calls from it need");
                        }
                        if call.agent_id.or(number.agent_id).is_none() {
                            problems.add("agent_id", "is required, because the phone number has no agent");
                        }
                    }
                    Err(Error::NotFound(_)) => {
                        problems.add("phone_number_id", "is not a phone number of this organization");
                    }
                    Err(error) => return Err(error),
                }
                match agent {
                    Err(Error::NotFound(_)) => problems.add("agent_id", "is not an agent of this organization"),
                    other => other?,
                }
                problems.into_result(Some(()))
            }
            ToolAction::ApiRequest(request) => {
                let mut problems = Problems::default();
                for (field, address) in request.addresses() {
                    if let Err(why) = self.outbound.check_configured(&address) {
                        problems.add(field, format!("can never be called: {why}"));
                    }
                }
                problems.into_result(Some(()))
            }
            ToolAction::ServiceRequest(_) => Ok(()),
        }
    }
}
