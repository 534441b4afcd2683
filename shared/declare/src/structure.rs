//! Expands `#[derive(Body)]` and `#[derive(Described)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::{
    Attribute, Data, DataEnum, DeriveInput, Error, Expr, Field, Fields, Ident, ItemStruct, LitStr, MetaNameValue, Path,
    Result, Token, Type, Variant, parse_quote, punctuated::Punctuated,
};

use crate::doc;

/// Pairs of `#[schema(minimum = 1)]`: keywords of JSON Schema and their values.
type Keywords = Vec<(String, Expr)>;

/// A type: the name of its schema, its doc comment and keywords, and how serde writes it.
pub(crate) struct Whole {
    /// `MemberView` is described as `Member`, unless `#[schema(name = "…")]` says otherwise.
    component: String,
    /// Set by `name`: an enum with it has a schema of its own.
    is_named: bool,
    doc: String,
    more: Keywords,
    case: Option<String>,
    tag: Option<String>,
    untagged: bool,
}

impl Whole {
    pub(crate) fn of(item: &DeriveInput) -> Result<Self> {
        let name = item.ident.to_string();
        let mut whole = Self {
            component: name.strip_suffix("View").unwrap_or(&name).to_owned(),
            is_named: false,
            doc: doc(&item.attrs),
            more: keywords(&item.attrs)?,
            case: None,
            tag: None,
            untagged: false,
        };
        if let Some(name) = text(&mut whole.more, "name")? {
            whole.component = name.value();
            whole.is_named = true;
        }
        serde(&item.attrs, |word, value| match word {
            "rename_all" => whole.case = value,
            "tag" => whole.tag = value,
            "untagged" => whole.untagged = true,
            _ => {}
        })?;
        Ok(whole)
    }

    /// The doc comment and keywords, as the last arguments of `described::with`.
    fn about(&self) -> TokenStream {
        about(&self.doc, &self.more)
    }
}

/// A field: its serialized name, doc comment, type and keywords.
struct Member<'a> {
    ident: &'a Ident,
    name: String,
    doc: String,
    of: &'a Type,
    /// `#[schema(of = "Other")]` describes the field as another type.
    shown_as: Option<Type>,
    more: Keywords,
    flat: bool,
    hidden: bool,
    may_be_absent: bool,
}

impl<'a> Member<'a> {
    fn all(fields: &'a Fields, case: Option<&str>) -> Result<Vec<Self>> {
        let members = fields.iter().map(|field| Self::of(field, case)).collect::<Result<Vec<_>>>()?;
        Ok(members.into_iter().filter(|member| !member.hidden).collect())
    }

    fn of(field: &'a Field, case: Option<&str>) -> Result<Self> {
        let ident = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "a field has a name"))?;
        let name = ident.to_string().trim_start_matches("r#").to_owned();
        let mut member = Self {
            ident,
            name: if case == Some("camelCase") { camel(&name) } else { name },
            doc: doc(&field.attrs),
            of: &field.ty,
            shown_as: None,
            more: keywords(&field.attrs)?,
            flat: false,
            hidden: false,
            may_be_absent: false,
        };
        member.shown_as = text(&mut member.more, "of")?.map(|of| of.parse()).transpose()?;
        serde(&field.attrs, |word, value| match (word, value) {
            ("rename", Some(name)) => member.name = name,
            ("flatten", _) => member.flat = true,
            ("skip" | "skip_serializing", _) => member.hidden = true,
            ("skip_serializing_if", _) => member.may_be_absent = true,
            _ => {}
        })?;
        Ok(member)
    }

    fn schema(&self, schema: &TokenStream) -> TokenStream {
        let about = about(&self.doc, &self.more);
        quote! { ::shared::described::with(#schema, #about) }
    }

    /// Adds the member to `members`.
    fn pushed(&self) -> TokenStream {
        let (name, of) = (&self.name, self.shown_as.as_ref().unwrap_or(self.of));
        if self.flat {
            return quote! { members.flatten::<#of>(schemas); };
        }
        let required = !self.may_be_absent;
        let kind = if required { quote!(schema) } else { quote!(schema_if_present) };
        let schema = self.schema(&quote!(<#of as ::shared::described::Described>::#kind(schemas)));
        quote! { members.push(#name, #required, #schema); }
    }
}

fn about(doc: &str, more: &Keywords) -> TokenStream {
    let (names, values) = (more.iter().map(|it| &it.0), more.iter().map(|it| &it.1));
    quote! { #doc, &[#((#names, ::shared::described::Json::from(#values))),*] }
}

fn keywords(attributes: &[Attribute]) -> Result<Keywords> {
    let mut keywords = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("schema")) {
        let pairs = attribute.parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated)?;
        keywords.extend(pairs.into_iter().map(|pair| (name_of(&pair.path), pair.value)));
    }
    Ok(keywords)
}

/// Takes out a word of ours, which is no keyword of JSON Schema.
fn text(more: &mut Keywords, ours: &str) -> Result<Option<LitStr>> {
    let Some(at) = more.iter().position(|(word, _)| word == ours) else { return Ok(None) };
    let (_, text) = more.remove(at);
    syn::parse2(text.into_token_stream()).map(Some)
}

fn name_of(path: &Path) -> String {
    path.segments.iter().map(|segment| segment.ident.to_string().trim_start_matches("r#").to_owned()).collect()
}

/// Each word of `#[serde(word, word = "value")]`.
pub(crate) fn serde(attributes: &[Attribute], mut found: impl FnMut(&str, Option<String>)) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            let value = meta.value().and_then(syn::parse::ParseBuffer::parse::<LitStr>).ok();
            found(&name_of(&meta.path), value.map(|value| value.value()));
            Ok(())
        })?;
    }
    Ok(())
}

pub(crate) fn body(item: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &item.data else { return Err(Error::new_spanned(&item.ident, "a body is a struct")) };
    let (name, vis, whole) = (&item.ident, &item.vis, Whole::of(item)?);
    let (component, about) = (&whole.component, whole.about());
    let draft = format_ident!("{name}Draft");
    let members = Member::all(&data.fields, None)?;
    let idents: Vec<&Ident> = members.iter().map(|member| member.ident).collect();
    let names: Vec<&String> = members.iter().map(|member| &member.name).collect();
    let types: Vec<&Type> = members.iter().map(|member| member.of).collect();
    let described = members.iter().map(|member| {
        let (name, of) = (&member.name, member.of);
        let schema = member.schema(&quote!(<#of as ::shared::declared::BodyMember>::schema(schemas)));
        quote! { members.push(#name, <#of as ::shared::declared::BodyMember>::REQUIRED, #schema); }
    });
    Ok(quote! {
        #[allow(dead_code, reason = "a check looks at some of the fields")]
        #vis struct #draft { #(#vis #idents: <#types as ::shared::declared::BodyMember>::Draft),* }

        impl ::shared::declared::Body for #name {
            type Draft = #draft;

            fn draft(fields: &mut ::shared::fields::Fields<'_>) -> #draft {
                #draft { #(#idents: <#types as ::shared::declared::BodyMember>::draft(fields, #names)),* }
            }

            fn whole(draft: #draft) -> Option<Self> {
                Some(Self { #(#idents: <#types as ::shared::declared::BodyMember>::whole(draft.#idents)?),* })
            }
        }

        impl ::shared::described::Described for #name {
            fn schema(schemas: &mut ::shared::described::Schemas) -> ::shared::described::Json {
                schemas.object(#component, #about, |schemas| {
                    let mut members = ::shared::described::Members::default();
                    #(#described)*
                    members
                })
            }
        }
    })
}

pub(crate) fn described(item: &DeriveInput) -> Result<TokenStream> {
    let (name, whole) = (&item.ident, Whole::of(item)?);
    let schema = match &item.data {
        Data::Struct(data) => {
            let (component, about, pushed) = (&whole.component, whole.about(), pushed(&data.fields, &whole)?);
            quote! {
                schemas.object(#component, #about, |schemas| {
                    let mut members = ::shared::described::Members::default();
                    #pushed
                    members
                })
            }
        }
        Data::Enum(data) => of_enum(&whole, data)?,
        Data::Union(_) => return Err(Error::new_spanned(name, "a struct or an enum is described")),
    };
    let (impl_generics, generics, bounds) = item.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::shared::described::Described for #name #generics #bounds {
            fn schema(schemas: &mut ::shared::described::Schemas) -> ::shared::described::Json {
                #schema
            }
        }
    })
}

/// Adds the fields to `members`.
fn pushed(fields: &Fields, whole: &Whole) -> Result<TokenStream> {
    let members = Member::all(fields, whole.case.as_deref())?;
    Ok(members.iter().map(Member::pushed).collect())
}

/// The names of an enum's variants as serialized by serde, or for variants with data one schema each.
fn of_enum(whole: &Whole, data: &DataEnum) -> Result<TokenStream> {
    let schema = if data.variants.iter().all(|variant| variant.fields.is_empty()) && whole.tag.is_none() {
        let names = data.variants.iter().map(|variant| variant_name(variant, whole)).collect::<Result<Vec<_>>>()?;
        quote! {{
            let _ = &schemas;
            ::shared::described::names(&[#(#names),*])
        }}
    } else {
        let variants = data.variants.iter().map(|variant| of_variant(variant, whole)).collect::<Result<Vec<_>>>()?;
        quote!(::shared::described::json!({"oneOf": ::shared::described::Json::from(vec![#(#variants),*])}))
    };
    if !whole.is_named {
        return Ok(schema);
    }
    let (component, about) = (&whole.component, whole.about());
    Ok(quote!(schemas.named(#component, |schemas| ::shared::described::with(#schema, #about))))
}

/// The schema of a variant of an enum that serde tags inside the object, or not at all.
fn of_variant(variant: &Variant, whole: &Whole) -> Result<TokenStream> {
    let single = match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first().map(|field| &field.ty),
        _ => None,
    };
    let pushed = match (single, &whole.tag) {
        (Some(of), None) if whole.untagged => {
            return Ok(quote!(<#of as ::shared::described::Described>::schema(schemas)));
        }
        (Some(of), Some(_)) => quote!(members.flatten::<#of>(schemas);),
        (None, Some(_)) => pushed(&variant.fields, whole)?,
        (None, None) if whole.untagged => pushed(&variant.fields, whole)?,
        _ => return Err(Error::new_spanned(variant, "a variant with data belongs to a tagged or untagged enum")),
    };
    let doc = doc(&variant.attrs);
    let tag = whole.tag.as_ref().map(|tag| {
        let name = variant_name(variant, whole)?;
        Ok::<_, Error>(quote!(members.push(#tag, true, ::shared::described::json!({"const": #name}));))
    });
    let tag = tag.transpose()?;
    Ok(quote! {{
        let mut members = ::shared::described::Members::default();
        #tag
        #pushed
        members.closed(#doc)
    }})
}

pub(crate) fn variant_name(variant: &Variant, whole: &Whole) -> Result<String> {
    let plain = variant.ident.to_string();
    let mut name = match whole.case.as_deref() {
        Some("snake_case") => snake(&plain),
        Some("lowercase") => plain.to_lowercase(),
        Some("UPPERCASE") => plain.to_uppercase(),
        Some("kebab-case") => snake(&plain).replace('_', "-"),
        None => plain,
        Some(_) => return Err(Error::new_spanned(variant, "rename_all is not known here")),
    };
    serde(&variant.attrs, |word, value| {
        if let ("rename", Some(other)) = (word, value) {
            name = other;
        }
    })?;
    Ok(name)
}

pub(crate) fn skip_serializing_none(mut item: ItemStruct) -> Result<TokenStream> {
    if !item.attrs.iter().any(|attribute| attribute.path().is_ident("derive")) {
        return Err(Error::new_spanned(&item.ident, "skip_serializing_none stands above derive"));
    }
    for field in &mut item.fields {
        let mut has_its_own = false;
        serde(&field.attrs, |word, _| has_its_own |= word.starts_with("skip_serializing"))?;
        if let Type::Path(of) = &field.ty
            && of.path.segments.last().is_some_and(|last| last.ident == "Option")
            && !has_its_own
        {
            field.attrs.push(parse_quote!(#[serde(default, skip_serializing_if = "Option::is_none")]));
        }
    }
    Ok(item.into_token_stream())
}

fn snake(pascal: &str) -> String {
    let mut snake = String::new();
    for letter in pascal.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn camel(snake: &str) -> String {
    let mut words = snake.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (begin, rest) = word.split_at(word.len().min(1));
        name + &begin.to_ascii_uppercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(item: ItemStruct) -> String {
        skip_serializing_none(item).map_or_else(|error| error.to_string(), |tokens| tokens.to_string())
    }

    #[test]
    fn an_absent_value_is_left_out_unless_its_field_says_otherwise() {
        let row = skipped(parse_quote! {
            #[derive(Serialize)]
            struct Row {
                id: String,
                name: Option<String>,
                #[serde(rename = "at")]
                created_at: std::option::Option<u64>,
                #[serde(default, skip_serializing)]
                lease: Option<u64>,
            }
        });
        assert_eq!(row.matches("skip_serializing_if").count(), 2, "{row}");
        assert_eq!(row.matches("default").count(), 3, "{row}");
    }

    #[test]
    fn below_its_derive_the_attribute_would_come_too_late() {
        let row = skipped(parse_quote!(
            struct Row {
                name: Option<String>,
            }
        ));
        assert_eq!(row, "skip_serializing_none stands above derive");
    }
}
