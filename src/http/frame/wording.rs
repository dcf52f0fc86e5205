//! The service's own message for each error code, since people search for these texts.
//!
//! Decides only the text. A refusal starts with it and adds the cause in brackets
//! ([`super::refusal::Refusal::explained`]); which code a cause has is decided in the error table
//! of its service.

/// The sentence of a code; none for a code that is not in the table.
pub fn of(code: &str) -> Option<&'static str> {
    TABLE.iter().find(|(known, _)| *known == code).map(|(_, sentence)| *sentence)
}

/// The start of a sentence about a failed authentication, where the challenge says more.
const SEE_CHALLENGE: &str = "Server failed to authenticate the request. Please refer to the \
                             information in the www-authenticate header.";

const TABLE: [(&str, &str); 60] = [
    // Who asks.
    (
        "AuthenticationFailed",
        "Server failed to authenticate the request. Make sure the value of Authorization header is \
         formed correctly including the signature.",
    ),
    ("NoAuthenticationInformation", SEE_CHALLENGE),
    (
        "InvalidAuthenticationInfo",
        "Authentication information is not given in the correct format. Check the value of \
         Authorization header.",
    ),
    (
        "AuthorizationSourceIPMismatch",
        "This request is not authorized to perform this operation using this source IP.",
    ),
    (
        "AuthorizationProtocolMismatch",
        "This request is not authorized to perform this operation using this protocol.",
    ),
    (
        "AuthorizationServiceMismatch",
        "This request is not authorized to perform this operation using this service.",
    ),
    (
        "AuthorizationResourceTypeMismatch",
        "This request is not authorized to perform this operation using this resource type.",
    ),
    (
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
    ),
    ("AuthorizationFailure", "This request is not authorized to perform this operation."),
    (
        "InsufficientAccountPermissions",
        "The account being accessed does not have sufficient permissions to execute this \
         operation.",
    ),
    // The request itself.
    ("InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format."),
    ("MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified."),
    (
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    (
        "OutOfRangeQueryParameterValue",
        "One of the query parameters specified in the request URI is outside the permissible \
         range.",
    ),
    (
        "MissingRequiredQueryParameter",
        "A query parameter that's mandatory for this request is not specified.",
    ),
    ("InvalidUri", "The requested URI does not represent any resource on the server."),
    ("InvalidInput", "One of the request inputs is not valid."),
    ("OutOfRangeInput", "One of the request inputs is out of range."),
    ("InvalidXmlDocument", "XML specified is not syntactically valid."),
    (
        "InvalidXmlNodeValue",
        "The value provided for one of the XML nodes in the request body was not in the correct \
         format.",
    ),
    ("InvalidContinuationToken", "The specified continuation token is invalid."),
    ("InvalidRange", "The range specified is invalid for the current size of the resource."),
    (
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
    ),
    ("OperationTimedOut", "The operation could not be completed within the permitted time."),
    ("UnsupportedHttpVerb", "The resource doesn't support specified Http Verb."),
    ("NotImplemented", "The requested operation is not implemented on the specified resource."),
    (
        "ServerBusy",
        "The server is currently unable to receive requests. Please retry your request.",
    ),
    ("InternalError", "The server encountered an internal error. Please retry the request."),
    (
        "Md5Mismatch",
        "The MD5 value specified in the request did not match with the MD5 value calculated by \
         the server.",
    ),
    (
        "InvalidMd5",
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 \
         encoded.",
    ),
    (
        "Crc64Mismatch",
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by \
         the server.",
    ),
    // Names and metadata.
    ("InvalidResourceName", "The specified resource name contains invalid characters."),
    ("InvalidFileOrDirectoryPathName", "The specified file or directory path name is invalid."),
    ("EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty."),
    (
        "InvalidMetadata",
        "The metadata specified is invalid. It has characters that are not permitted.",
    ),
    ("MetadataTooLarge", "The size of the specified metadata exceeds the maximum size permitted."),
    // Files and directories.
    ("ResourceNotFound", "The specified resource does not exist."),
    ("ParentNotFound", "The specified parent path does not exist."),
    ("ResourceAlreadyExists", "The specified resource already exists."),
    (
        "ResourceTypeMismatch",
        "The specified resource type does not match the type of the existing resource.",
    ),
    ("DirectoryNotEmpty", "The specified directory is not empty."),
    ("SharingViolation", "The specified resource may be in use by an SMB client."),
    ("DeletePending", "The specified resource is marked for deletion by an SMB client."),
    ("FileLockConflict", "A portion of the specified file is locked by an SMB client."),
    (
        "ReadOnlyAttribute",
        "The specified resource is read-only and cannot be modified at this time.",
    ),
    (
        "CannotDeleteFileOrDirectory",
        "The file or directory could not be deleted because it is in use by an SMB client.",
    ),
    ("HandleLimitExceeded", "The maximum number of open handles on the file has been reached."),
    (
        "FileGenerationMismatch",
        "The file has been recreated or renamed since the previous snapshot was taken.",
    ),
    ("FileInvalidPermission", "The specified file permission is not valid."),
    ("FileInvalidPermissionKey", "The specified file permission key is not valid."),
    // Shares.
    ("ShareNotFound", "The specified share does not exist."),
    ("ShareAlreadyExists", "The specified share already exists."),
    ("ShareBeingDeleted", "The specified share is being deleted. Try operation later."),
    ("ShareSnapshotNotFound", "The specified snapshot does not exist."),
    ("ShareHasSnapshots", "The share has snapshots and the operation requires no snapshots."),
    ("ShareSizeLimitReached", "The share size limit has been reached."),
    // Copies.
    ("PendingCopyOperation", "There is currently a pending copy operation."),
    ("NoPendingCopyOperation", "There is currently no pending copy operation."),
    (
        "CopyIdMismatch",
        "The specified copy ID did not match the copy ID for the pending copy operation.",
    ),
    ("CannotVerifyCopySource", "Could not verify the copy source within the specified time."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_one_sentence_and_each_sentence_ends() {
        for (at, (code, sentence)) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|(other, _)| other != code), "{code}");
            assert!(sentence.ends_with('.') && !sentence.contains("latchfs"), "{code}");
            assert_eq!(of(code), Some(*sentence));
        }
        assert_eq!(of("NoSuchCode"), None);
    }
}
