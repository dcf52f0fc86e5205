//! Stored access policies of a container: their letters.

use super::fixture::{Blobs, Got};

const ACL: &str = "/con?restype=container&comp=acl";

fn set(blobs: &Blobs, policy: &str) -> Got {
    let text = format!(
        "<SignedIdentifiers><SignedIdentifier><Id>p</Id>{policy}</SignedIdentifier>\
         </SignedIdentifiers>"
    );
    blobs.ask("PUT", ACL, &[], text.as_bytes())
}

fn lettered(blobs: &Blobs, letters: &str) -> Got {
    set(blobs, &format!("<AccessPolicy><Permission>{letters}</Permission></AccessPolicy>"))
}

#[test]
fn a_permission_has_the_letters_of_containers() {
    let blobs = Blobs::new();
    lettered(&blobs, "racwdxyltfmeopi").is(200);
    let kept = blobs.get(ACL, &[]).is(200).text();
    for letters in ["xyz", "ru", "r w", "R"] {
        lettered(&blobs, letters).refused(400, "InvalidXmlDocument");
    }
    assert_eq!(blobs.get(ACL, &[]).is(200).text(), kept);
}
