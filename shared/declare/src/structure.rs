//! Expands `#[derive(Body)]` and `#[derive(Described)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DataEnum, DataStruct, DeriveInput, Error, Expr, Field, Ident, LitStr, Path, Result, Token, Type,
    punctuated::Punctuated,
};

use crate::doc;

/// A field: its serialized name, doc comment, type and `#[schema(…)]`.
struct Member<'a> {
    ident: &'a Ident,
    name: String,
    doc: String,
    of: &'a Type,
    more: Vec<(String, Expr)>,
    flat: bool,
    may_be_absent: bool,
}

impl<'a> Member<'a> {
    fn all(data: &'a DataStruct) -> Result<Vec<Self>> {
        data.fields.iter().map(Self::of).collect()
    }

    fn of(field: &'a Field) -> Result<Self> {
        let ident = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "a field has a name"))?;
        let mut member = Self {
            ident,
            name: ident.to_string().trim_start_matches("r#").to_owned(),
            doc: doc(&field.attrs),
            of: &field.ty,
            more: Vec::new(),
            flat: false,
            may_be_absent: false,
        };
        for attribute in &field.attrs {
            if attribute.path().is_ident("schema") {
                let pairs = attribute.parse_args_with(Punctuated::<syn::MetaNameValue, Token![,]>::parse_terminated)?;
                member.more.extend(pairs.into_iter().map(|pair| (name_of(&pair.path), pair.value)));
            }
        }
        serde(&field.attrs, |word, value| match (word, value) {
            ("rename", Some(name)) => member.name = name,
            ("flatten", _) => member.flat = true,
            ("skip_serializing_if", _) => member.may_be_absent = true,
            _ => {}
        })?;
        Ok(member)
    }

    fn schema(&self, schema: &TokenStream) -> TokenStream {
        let (doc, names, values) = (&self.doc, self.more.iter().map(|it| &it.0), self.more.iter().map(|it| &it.1));
        quote! { ::shared::described::with(#schema, #doc, &[#((#names, ::shared::described::Json::from(#values))),*]) }
    }
}

fn name_of(path: &Path) -> String {
    path.segments.iter().map(|segment| segment.ident.to_string().trim_start_matches("r#").to_owned()).collect()
}

/// Each word of `#[serde(word, word = "value")]`.
fn serde(attributes: &[Attribute], mut found: impl FnMut(&str, Option<String>)) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            let value = meta.value().and_then(syn::parse::ParseBuffer::parse::<LitStr>).ok();
            found(&name_of(&meta.path), value.map(|value| value.value()));
            Ok(())
        })?;
    }
    Ok(())
}

/// `MemberView` is described as `Member`.
fn component(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_suffix("View").unwrap_or(&name).to_owned()
}

pub(crate) fn body(item: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &item.data else { return Err(Error::new_spanned(&item.ident, "a body is a struct")) };
    let (name, vis, of_whole, component) = (&item.ident, &item.vis, doc(&item.attrs), component(&item.ident));
    let draft = format_ident!("{name}Draft");
    let members = Member::all(data)?;
    let idents: Vec<&Ident> = members.iter().map(|member| member.ident).collect();
    let names: Vec<&String> = members.iter().map(|member| &member.name).collect();
    let types: Vec<&Type> = members.iter().map(|member| member.of).collect();
    let described = members.iter().map(|member| {
        let (name, of) = (&member.name, member.of);
        let schema = member.schema(&quote!(<#of as ::shared::http::declared::BodyMember>::schema(schemas)));
        quote! { (#name.to_owned(), <#of as ::shared::http::declared::BodyMember>::REQUIRED, #schema) }
    });
    Ok(quote! {
        #[allow(dead_code, reason = "a check looks at some of the fields")]
        #vis struct #draft { #(#vis #idents: <#types as ::shared::http::declared::BodyMember>::Draft),* }

        impl ::shared::http::declared::Body for #name {
            type Draft = #draft;

            fn draft(fields: &mut ::shared::fields::Fields<'_>) -> #draft {
                #draft { #(#idents: <#types as ::shared::http::declared::BodyMember>::draft(fields, #names)),* }
            }

            fn whole(draft: #draft) -> Option<Self> {
                Some(Self { #(#idents: <#types as ::shared::http::declared::BodyMember>::whole(draft.#idents)?),* })
            }
        }

        impl ::shared::described::Described for #name {
            fn schema(schemas: &mut ::shared::described::Schemas) -> ::shared::described::Json {
                schemas.object(#component, #of_whole, |schemas| vec![#(#described),*])
            }
        }
    })
}

pub(crate) fn described(item: &DeriveInput) -> Result<TokenStream> {
    let (name, of_whole, component) = (&item.ident, doc(&item.attrs), component(&item.ident));
    let schema = match &item.data {
        Data::Struct(data) => of_struct(&component, &of_whole, data)?,
        Data::Enum(data) => of_enum(item, data)?,
        Data::Union(_) => return Err(Error::new_spanned(name, "a struct or an enum is described")),
    };
    Ok(quote! {
        impl ::shared::described::Described for #name {
            fn schema(schemas: &mut ::shared::described::Schemas) -> ::shared::described::Json {
                #schema
            }
        }
    })
}

fn of_struct(component: &str, of_whole: &str, data: &DataStruct) -> Result<TokenStream> {
    let members = Member::all(data)?;
    let described = members.iter().map(|member| {
        let (name, of) = (&member.name, member.of);
        if member.flat {
            return quote! { members.extend(schemas.members_of::<#of>()); };
        }
        let required = !member.may_be_absent;
        let kind = if required { quote!(schema) } else { quote!(schema_if_present) };
        let schema = member.schema(&quote!(<#of as ::shared::described::Described>::#kind(schemas)));
        quote! { members.push((#name.to_owned(), #required, #schema)); }
    });
    Ok(quote! {
        schemas.object(#component, #of_whole, |schemas| {
            let mut members = Vec::new();
            #(#described)*
            members
        })
    })
}

/// The names of an enum's variants, as serialized by serde.
fn of_enum(item: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let mut case = None;
    serde(&item.attrs, |word, value| {
        if word == "rename_all" {
            case = value;
        }
    })?;
    let mut names = Vec::new();
    for variant in &data.variants {
        if !variant.fields.is_empty() {
            return Err(Error::new_spanned(variant, "an enum that is described has no data"));
        }
        let plain = variant.ident.to_string();
        let mut name = match case.as_deref() {
            Some("snake_case") => snake(&plain),
            Some("lowercase") => plain.to_lowercase(),
            None => plain,
            Some(_) => return Err(Error::new_spanned(&item.ident, "rename_all is snake_case or lowercase")),
        };
        serde(&variant.attrs, |word, value| {
            if let ("rename", Some(other)) = (word, value) {
                name = other;
            }
        })?;
        names.push(name);
    }
    Ok(quote! {
        let _ = schemas;
        ::shared::described::names(&[#(#names),*])
    })
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
