//! Parses and expands `#[operation]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, FnArg, GenericArgument, Ident, ItemFn, LitInt, LitStr, Path, PathArguments, Result, ReturnType, Token, Type,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

use crate::doc;

/// `POST "/api/{slug}/members", Admin, also(409), resource(AddMember)`
pub(crate) struct Stated {
    method: Ident,
    path: LitStr,
    caller: Caller,
    also: Vec<Refusal>,
    resource: Option<Ident>,
    tag: Option<LitStr>,
    throttle: Option<Ident>,
    when: Option<Ident>,
    answers: Option<Path>,
}

/// `Admin`; `verified(Admin)` if the handler verifies the token; `by(vapiBearer)` for another proof; `open` for everybody.
enum Caller {
    Member(Ident),
    Verified(Ident),
    Proof(Ident),
    Anybody,
}

impl Parse for Caller {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let word: Ident = input.parse()?;
        let of: fn(Ident) -> Self = match word.to_string().as_str() {
            "verified" => Self::Verified,
            "by" => Self::Proof,
            "open" => return Ok(Self::Anybody),
            _ => return Ok(Self::Member(word)),
        };
        let inner;
        parenthesized!(inner in input);
        inner.parse().map(of)
    }
}

/// `409`, or `429 = OverBudget` for another response than the usual one.
struct Refusal {
    status: LitInt,
    response: Option<Ident>,
}

impl Parse for Refusal {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let status = input.parse()?;
        let response = input.parse::<Option<Token![=]>>()?.map(|_| input.parse()).transpose()?;
        Ok(Self { status, response })
    }
}

impl Parse for Stated {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (method, path) = (input.parse()?, input.parse()?);
        input.parse::<Token![,]>()?;
        let (caller, also) = (input.parse()?, Vec::new());
        let (resource, tag, throttle, when, answers) = (None, None, None, None, None);
        let mut stated = Self { method, path, caller, also, resource, tag, throttle, when, answers };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let word: Ident = input.parse()?;
            let inner;
            parenthesized!(inner in input);
            match word.to_string().as_str() {
                "also" => stated.also = Punctuated::<_, Token![,]>::parse_terminated(&inner)?.into_iter().collect(),
                "resource" => stated.resource = Some(inner.parse()?),
                "tag" => stated.tag = Some(inner.parse()?),
                "throttle" => stated.throttle = Some(inner.parse()?),
                "when" => stated.when = Some(inner.parse()?),
                "answers" => stated.answers = Some(inner.parse()?),
                _ => {
                    return Err(Error::new(
                        word.span(),
                        "known are also(409, 429 = OverBudget), resource(LogicalId), tag(\"…\"), throttle(Columns), when(Condition) and answers(function)",
                    ));
                }
            }
        }
        Ok(stated)
    }
}

pub(crate) fn expand(stated: &Stated, handler: &ItemFn) -> Result<TokenStream> {
    let Stated { method, path, caller, also, resource, tag, throttle, when, answers } = stated;
    let tag = tag.as_ref().map(|tag| quote!(operation.tag = #tag;));
    let throttle = throttle.as_ref().map(ToString::to_string).map(|columns| quote!(operation.throttle = #columns;));
    let when = when.as_ref().map(ToString::to_string).map(|condition| quote!(operation.condition = #condition;));
    let (name, method) = (&handler.sig.ident, method.to_string());
    let id = camel(&name.to_string());
    let resource = resource.as_ref().map_or_else(|| capitalized(&id), Ident::to_string);
    let doc = doc(&handler.attrs);
    let mut types = handler.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(&*typed.ty),
        FnArg::Receiver(_) => None,
    });
    let deps = types.next().ok_or_else(|| Error::new(name.span(), "the first argument is &Deps"))?;
    types.next().ok_or_else(|| Error::new(name.span(), "the second argument is &Asked<'_> or &Found<'_>"))?;
    let parts: Vec<&Type> = types.collect();
    let answer = answer(&handler.sig.output).ok_or_else(|| Error::new(name.span(), "it returns Result<Answer>"))?;
    let (caller, asked, handled) = match caller {
        Caller::Member(role) => {
            let role = quote!(::shared::models::Role::#role);
            let let_in = if path.value().contains("{slug}") { quote!(of) } else { quote!(person) };
            let asked = quote!(::shared::http::Asked::#let_in(&deps.access, #role, found).await?);
            (quote!(Member(#role)), asked, quote!(asked.acting(handled)))
        }
        Caller::Verified(role) => (quote!(Verified(::shared::models::Role::#role)), quote!(found), quote!(handled)),
        Caller::Anybody => (quote!(Anybody), quote!(found), quote!(handled)),
        Caller::Proof(scheme) => {
            let scheme = scheme.to_string();
            (quote!(Proof(#scheme)), quote!(found), quote!(handled))
        }
    };
    let also = also.iter().map(|Refusal { status, response }| {
        let response = response.as_ref().map_or_else(String::new, Ident::to_string);
        quote!((#status, #response))
    });
    let (reply, describe_answer) = match answers {
        Some(describe) => (quote!(#handled.await), quote!(#describe)),
        None => (
            quote!(::shared::http::Answers::reply(#handled.await?)),
            quote!(<#answer as ::shared::http::Answers>::describe),
        ),
    };
    Ok(quote! {
        #handler

        #[allow(non_camel_case_types)]
        pub(crate) struct #name {}

        impl #name {
            pub(crate) const ROUTE: ::shared::http::Route = ::shared::http::Route {
                method: #method,
                path: #path,
                caller: ::shared::http::Caller::#caller,
                query: &[#(<#parts as ::shared::http::Part>::QUERY),*],
                own_query: false #(|| <#parts as ::shared::http::Part>::OWN_QUERY)*,
            };

            pub(crate) async fn answer(deps: #deps, found: ::shared::http::Found<'_>) -> ::shared::Result<::shared::http::Reply> {
                let asked = #asked;
                let handled = #name(deps, &asked #(, <#parts as ::shared::http::Part>::of(&asked)?)*);
                #reply
            }

            pub(crate) fn describe(document: &mut ::shared::http::Document) {
                let mut operation = ::shared::http::Operation::new(&Self::ROUTE, #id, #resource, #doc, &[#(#also),*]);
                #tag
                #throttle
                #when
                #(<#parts as ::shared::http::Part>::describe(&mut operation, &mut document.schemas);)*
                #describe_answer(&mut operation, &mut document.schemas);
                document.add(operation);
            }
        }
    })
}

/// `Answer` of `Result<Answer>`.
fn answer(output: &ReturnType) -> Option<&Type> {
    let ReturnType::Type(_, output) = output else { return None };
    let Type::Path(path) = &**output else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}

/// `add_member` becomes `addMember`.
fn camel(snake: &str) -> String {
    let mut parts = snake.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &capitalized(part))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
