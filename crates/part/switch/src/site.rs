//! The MTA itself: names, limits, users.

use std::collections::BTreeMap;

use vere_mta400::{Grades, Site, User};
use vere_settings::{X400, X400User};
use vere_x400::OrAddress;

use crate::content;
use crate::error::{Fault, SwitchError};

pub(crate) fn site(x400: &X400) -> Result<Site, SwitchError> {
    let own = |key: &'static str| move |fault: Fault| SwitchError::Own(key, fault);
    let domain = content::domain(&x400.domain).map_err(own("domain"))?;
    let site = Site::new(domain, &x400.mta_name);
    let mut site = site.map_err(Fault::from).map_err(own("mta_name"))?;
    site.recipients_max = usize::try_from(x400.recipients_max).unwrap_or(usize::MAX);
    site.return_octets_max = usize::try_from(x400.return_size_max.as_u64()).unwrap_or(usize::MAX);
    site.grades = Grades {
        urgent: x400.expire.urgent.duration(),
        normal: x400.expire.normal.duration(),
        non_urgent: x400.expire.non_urgent.duration(),
    };
    site.alternate = address(x400.alternate.as_deref()).map_err(own("alternate"))?;
    site.users = users(&x400.users)?;
    Ok(site)
}

fn users(sections: &[X400User]) -> Result<BTreeMap<String, User>, SwitchError> {
    let user = |section: &X400User| -> Result<User, Fault> {
        Ok(User {
            content_types: content::types(&section.content_types)?,
            types: None,
            content_octets_max: section.size_max.map(|size| size.as_u64()),
            redirect_to: address(section.redirect_to.as_deref())?,
        })
    };
    let named = |section: &X400User| match user(section) {
        Ok(user) => Ok((section.name.clone(), user)),
        Err(fault) => Err(SwitchError::User(section.name.clone(), fault)),
    };
    sections.iter().map(named).collect()
}

fn address(text: Option<&str>) -> Result<Option<OrAddress>, Fault> {
    Ok(text.map(str::parse).transpose()?)
}
