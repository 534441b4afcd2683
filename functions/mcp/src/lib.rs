pub struct Deps;
impl Deps { pub fn new(_: &shared::Platform) -> shared::platform::Result<Self> { Ok(Self) } }
pub async fn handle(_: &Deps, _: shared::http::Request) -> shared::Result<shared::http::Reply> { Ok(shared::http::Reply::no_content()) }
