//! The blob client of the Azure SDK for Rust, which knows no account key: it is given signatures.
//!
//! Usage: latchfs-rust-client CONTAINER_URL READ_ONLY_URL, both with a SAS. Panics where an answer
//! is not as expected.

use std::num::NonZero;

use azure_core::http::{RequestContent, Url};
use azure_storage_blob::models::{
    BlobClientGetPropertiesResultHeaders as _, BlobClientUploadOptions,
    BlobContainerClientListBlobsOptions, StorageErrorCode,
};
use azure_storage_blob::{BlobContainerClient, StorageError};
use futures::TryStreamExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls = std::env::args().skip(1).map(|url| Url::parse(&url));
    let mut container = || BlobContainerClient::new(urls.next().expect("a URL")?, None, None);
    let (container, read_only) = (container()?, container()?);

    // Long enough for blocks that are sent side by side, under a name that needs escapes.
    let long: Vec<u8> = (0..=250).cycle().take(9 << 20).collect();
    let blob = container.blob_client("my folder/Grüße & plus+.bin");
    let options = BlobClientUploadOptions {
        parallel: NonZero::new(4),
        partition_size: NonZero::new(1 << 20),
        ..Default::default()
    };
    blob.upload(RequestContent::from(long.clone()), Some(options)).await?;
    assert!(blob.download(None).await?.body.collect().await? == long, "the bytes differ");

    let etag = blob.get_properties(None).await?.etag()?;
    let only_new = || Some(BlobClientUploadOptions::default().if_not_exists());
    let refused = blob.upload(RequestContent::from(b"new".to_vec()), only_new()).await;
    let refused = StorageError::try_from(refused.expect_err("the blob exists"))?;
    assert_eq!(refused.error_code, Some(StorageErrorCode::BlobAlreadyExists));
    let if_match = || BlobClientUploadOptions { if_match: etag.clone(), ..Default::default() };
    blob.upload(RequestContent::from(b"second".to_vec()), Some(if_match())).await?;
    let refused = blob.upload(RequestContent::from(b"third".to_vec()), Some(if_match())).await;
    let refused = StorageError::try_from(refused.expect_err("the ETag is an old one"))?;
    assert_eq!(refused.error_code, Some(StorageErrorCode::ConditionNotMet));

    let prefix = Some("my folder/".to_owned());
    let options = BlobContainerClientListBlobsOptions { prefix, ..Default::default() };
    let listed: Vec<_> = read_only.list_blobs(Some(options))?.try_collect().await?;
    let names: Vec<_> = listed.into_iter().filter_map(|one| one.name).collect();
    assert_eq!(names, ["my folder/Grüße & plus+.bin"]);
    let seen = read_only.blob_client(&names[0]);
    assert!(seen.download(None).await?.body.collect().await? == b"second"[..]);
    let refused = seen.delete(None).await.expect_err("the SAS does not allow that");
    let refused = StorageError::try_from(refused)?;
    assert_eq!(refused.error_code, Some(StorageErrorCode::AuthorizationPermissionMismatch));

    blob.delete(None).await?;
    assert!(!blob.exists().await?);
    Ok(())
}
