//! Expands `#[derive(Names)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Ident, LitStr, Result, Variant};

use crate::structure::{Whole, serde, variant_name};

struct Named<'a> {
    ident: &'a Ident,
    name: String,
    aliases: Vec<String>,
    never_given: bool,
}

impl<'a> Named<'a> {
    fn of(variant: &'a Variant, whole: &Whole) -> Result<Self> {
        let name = variant_name(variant, whole)?;
        let mut named = Self { ident: &variant.ident, name, aliases: Vec::new(), never_given: false };
        serde(&variant.attrs, |word, value| {
            if word == "alias" {
                named.aliases.extend(value);
            }
        })?;
        for attribute in variant.attrs.iter().filter(|attribute| attribute.path().is_ident("names")) {
            attribute.parse_nested_meta(|meta| {
                named.never_given = meta.path.is_ident("never_given");
                if named.never_given { Ok(()) } else { Err(meta.error("never_given is the only word here")) }
            })?;
        }
        Ok(named)
    }
}

pub(crate) fn names(item: &DeriveInput) -> Result<TokenStream> {
    let (ident, vis) = (&item.ident, &item.vis);
    let Data::Enum(data) = &item.data else { return Err(Error::new_spanned(ident, "an enum has names")) };
    let whole = Whole::of(item)?;
    let all = data.variants.iter().map(|variant| Named::of(variant, &whole)).collect::<Result<Vec<_>>>()?;
    let (variants, names): (Vec<&Ident>, Vec<&String>) = all.iter().map(|it| (it.ident, &it.name)).unzip();
    if data.variants.iter().any(|variant| !variant.fields.is_empty()) {
        return Ok(quote! {
            impl #ident {
                #vis const fn as_str(&self) -> &'static str {
                    match self { #(Self::#variants { .. } => #names,)* }
                }
            }
        });
    }
    let given: Vec<&Named<'_>> = all.iter().filter(|it| !it.never_given).collect();
    let problem = problem(item)?.unwrap_or_else(|| must_be(&given));
    let count = all.len();
    let read =
        given.iter().map(|Named { ident, name, aliases, .. }| quote!(#name #(| #aliases)* => Some(Self::#ident),));
    Ok(quote! {
        #[allow(dead_code, reason = "few enums need all of them")]
        impl #ident {
            #vis const ALL: [Self; #count] = [#(Self::#variants),*];
            #vis const NAMES: [&'static str; #count] = [#(#names),*];

            #vis const fn as_str(self) -> &'static str {
                match self { #(Self::#variants => #names,)* }
            }

            #vis fn named(name: &str) -> Option<Self> {
                match name { #(#read)* _ => None }
            }
        }

        impl ::std::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for #ident {
            type Err = ::shared::names::UnknownName;

            fn from_str(name: &str) -> ::std::result::Result<Self, Self::Err> {
                Self::named(name).ok_or(::shared::names::UnknownName(#problem))
            }
        }
    })
}

/// The value of `#[names(problem = "…")]`.
fn problem(item: &DeriveInput) -> Result<Option<String>> {
    let mut problem = None;
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("names")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("problem") {
                return Err(meta.error("problem is the only word here"));
            }
            problem = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    Ok(problem)
}

fn must_be(given: &[&Named<'_>]) -> String {
    match given {
        [one] => format!("must be {}", one.name),
        [one, other] => format!("must be {} or {}", one.name, other.name),
        _ => format!("must be one of {}", given.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn expanded(item: &DeriveInput) -> String {
        names(item).map_or_else(|error| error.to_string(), |tokens| tokens.to_string().replace(' ', ""))
    }

    #[test]
    fn the_problem_lists_the_names_that_a_request_may_give() {
        let one = expanded(&parse_quote!(
            enum Confirm {
                #[serde(rename = "read_back")]
                ReadBack,
            }
        ));
        assert!(one.contains(r#""mustberead_back""#), "{one}");
        let two = expanded(&parse_quote!(
            #[serde(rename_all = "lowercase")]
            enum Service {
                Vapi,
                Llm,
            }
        ));
        assert!(two.contains(r#""mustbevapiorllm""#), "{two}");
        let more = parse_quote!(
            #[serde(rename_all = "kebab-case")]
            enum Status {
                InProgress,
                Ended,
                #[serde(alias = "over")]
                Gone,
                #[serde(other)]
                #[names(never_given)]
                Other,
            }
        );
        let more = expanded(&more);
        assert!(more.contains(r#""mustbeoneofin-progress,ended,gone""#), "{more}");
        assert!(more.contains(r#""gone"|"over"=>Some(Self::Gone)"#), "{more}");
        assert!(!more.contains(r#""other"=>Some"#), "{more}");
        let own = expanded(&parse_quote!(
            #[names(problem = "must be a or b")]
            enum Letter {
                A,
            }
        ));
        assert!(own.contains(r#""mustbeaorb""#), "{own}");
    }

    #[test]
    fn an_enum_with_data_is_only_written() {
        let change = expanded(&parse_quote!(
            #[serde(rename_all = "snake_case")]
            enum Change {
                AddTool { id: u8 },
                Other,
            }
        ));
        assert!(change.contains(r#"Self::AddTool{..}=>"add_tool",Self::Other{..}=>"other","#), "{change}");
        assert!(!change.contains("FromStr"), "{change}");
    }

    #[test]
    fn mistakes_are_errors() {
        assert_eq!(
            expanded(&parse_quote!(
                struct One;
            )),
            "an enum has names"
        );
        assert_eq!(
            expanded(&parse_quote!(
                enum E {
                    #[names(sometimes)]
                    A,
                }
            )),
            "never_given is the only word here"
        );
        assert_eq!(
            expanded(&parse_quote!(
                #[names(error = "no")]
                enum E {
                    A,
                }
            )),
            "problem is the only word here"
        );
        assert_eq!(
            expanded(&parse_quote!(
                #[serde(rename_all = "Train-Case")]
                enum E {
                    A,
                }
            )),
            "rename_all is not known here"
        );
    }
}
