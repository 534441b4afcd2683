//! Expands `#[derive(Parts)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Data, DeriveInput, Error, Expr, Field, Result};

pub(crate) fn expand(item: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &item.data else { return Err(Error::new_spanned(&item.ident, "a struct has parts")) };
    let (name, vis) = (&item.ident, &item.vis);
    let parts = data.fields.iter().map(part).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        impl #name {
            #vis fn new(platform: &::shared::Platform) -> ::shared::platform::Result<Self> {
                Ok(Self { #(#parts),* })
            }
        }
    })
}

fn part(field: &Field) -> Result<TokenStream> {
    let (name, of) = (&field.ident, &field.ty);
    let made = if let Some(stated) = field.attrs.iter().find(|attribute| attribute.path().is_ident("part")) {
        stated.parse_args::<Expr>()?.into_token_stream()
    } else {
        quote!(<#of as ::shared::platform::PlatformPart>::of(platform)?)
    };
    Ok(quote!(#name: #made))
}
