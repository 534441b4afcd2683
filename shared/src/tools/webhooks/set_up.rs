//! Instructions for setting up a hook at its service.

use super::Scheme;

impl Scheme {
    /// Sentences for the person who sets a hook up; `url` and `secret` are the hook's.
    pub const fn set_up(self) -> &'static str {
        match self {
            Self::Slack => {
                "At api.slack.com/apps, under Event Subscriptions, enter the hook's url as Request URL and subscribe to the bot \
                 events. The hook's secret is the Signing Secret under Basic Information."
            }
            Self::Github => {
                "At GitHub, in the settings of the repository, organization or app, under Webhooks, enter the hook's url and \
                 secret, choose application/json, and choose the events."
            }
            Self::Stripe => {
                "At dashboard.stripe.com, under Developers, Webhooks, add an endpoint with the hook's url and choose the events. \
                 The hook's secret is the endpoint's signing secret, whsec_…."
            }
            Self::Notion => {
                "At notion.so/my-integrations, under Webhooks, create a subscription with the hook's url. Notion sends its token \
                 to the hook: PATCH /api/{slug}/hooks/{id} {\"reveal\": true} shows it once, and it is entered at Notion."
            }
            Self::GooglePubsub => {
                "In Google Cloud, let Gmail publish to a Pub/Sub topic (users.watch, renewed daily), and make a push subscription \
                 with the hook's url and the service account that the hook names."
            }
            Self::GoogleCalendar => {
                "Open a channel with events.watch of the Calendar API: address is the hook's url, token its secret, id the \
                 hook's tenant. Open another before it ends."
            }
            Self::Hubspot => {
                "At developers.hubspot.com, in the app, under Webhooks, enter the hook's url as Target URL and create the \
                 subscriptions. The hook's secret is the app's client secret."
            }
            Self::MicrosoftGraph => {
                "Create a subscription with POST /subscriptions of Microsoft Graph: notificationUrl is the hook's url, \
                 clientState its secret. Renew it before it ends."
            }
            Self::Twilio => {
                "In the Twilio console, in the settings of the phone number or messaging service, enter the hook's url for \
                 \"A message comes in\" with HTTP POST. Statuses of messages that tools send come by themselves; of other messages, if \
                 the url is the messaging service's status callback, or the message's StatusCallback. The hook's secret is \
                 the account's auth token."
            }
            Self::Telegram => {
                "Call setWebhook of the Bot API with the hook's url as url and its secret as secret_token. A bot has one webhook: \
                 this one takes the place of any other."
            }
            Self::Linear => {
                "In Linear, under Settings, API, Webhooks, create a webhook with the hook's url and choose the kinds of data. The \
                 hook's secret is the signing secret that Linear shows."
            }
            Self::StandardWebhooks => {
                "Let the program that sends events POST JSON to the hook's url, signed with its secret by the Standard Webhooks \
                 specification (standardwebhooks.com has libraries), with the event's name as type."
            }
            Self::Hmac => {
                "Let the sender POST JSON or a form to the hook's url, with an HMAC of the body, keyed with the hook's secret, in the \
                 hook's header. A repeated body is the same event, so equal events need an id or a time in them."
            }
            Self::Bearer => {
                "Let the sender POST JSON or a form to the hook's url, with the hook's secret in the header Authorization: Bearer, or \
                 alone in the hook's header. A repeated body is the same event, so equal events need an id or a time in them."
            }
            Self::Basic => {
                "Let the sender POST JSON or a form to the hook's url, with the hook's user, and its secret as password, in the header \
                 Authorization: Basic. A repeated body is the same event, so equal events need an id or a time in them."
            }
            Self::Unsigned => {
                "Let the sender POST JSON or a form to the hook's url, from an allowed address. A repeated body is the same event, so \
                 equal events need an id or a time in them."
            }
            Self::Pipedream => "It is set up when an automation is activated that needs it.",
        }
    }
}
