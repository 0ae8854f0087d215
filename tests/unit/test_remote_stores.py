from __future__ import annotations

import pytest

from funes.errors import CorruptMemoryError
from funes.memory.remote.faults import RemoteBusyError, RemoteDeniedError, RemoteMissingError, RemoteUnreachableError
from funes.memory.remote.stores import storage_options, store_fault


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("s3://b/m", {}, {}),
        ("s3://b/m", {"AWS_DEFAULT_REGION": "eu-west-3"}, {"aws_region": "eu-west-3"}),
        (
            "s3://b/m",
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_ACCESS_KEY_ID": "never passed on"},
            {"aws_endpoint": "http://127.0.0.1:9000", "aws_region": "us-east-1", "allow_http": "true"},
        ),
        (
            "s3://b/m",
            {"AWS_ENDPOINT_URL_S3": "https://s3.acme.test", "AWS_ENDPOINT": "https://no", "AWS_REGION": "r1"},
            {"aws_endpoint": "https://s3.acme.test", "aws_region": "r1"},
        ),
        (
            "s3://b/m",
            {"AWS_ENDPOINT": "http://minio.acme.test:9000"},
            {"aws_endpoint": "http://minio.acme.test:9000", "aws_region": "us-east-1"},
        ),
        ("gs://b/m", {"AWS_ENDPOINT": "http://127.0.0.1:1"}, {}),
        (
            "gs://b/m",
            {"STORAGE_EMULATOR_HOST": "localhost:4443"},
            {"google_base_url": "http://localhost:4443", "google_skip_signature": "true", "allow_http": "true"},
        ),
        ("az://c/m", {}, {}),
        (
            "az://c/m",
            {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/acc"},
            {"azure_storage_endpoint": "http://127.0.0.1:10000/acc", "allow_http": "true"},
        ),
    ],
)
def test_where_a_store_is(url, environment, expected):
    assert storage_options(url, environment) == expected


SECRET = "-".join(("AKIA", "never", "shown"))


@pytest.mark.parametrize(
    ("url", "said", "error", "sentence"),
    [
        (
            "s3://b/m",
            "404: <Code>NoSuchBucket</Code>",
            RemoteMissingError,
            "There is no bucket b; check the address s3",
        ),
        ("az://c/m", "<Code>ContainerNotFound</Code>", RemoteMissingError, "There is no bucket c; "),
        ("s3://b/m", "Failed to get AWS credentials", RemoteDeniedError, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS"),
        ("gs://b/m", "Error performing token request", RemoteDeniedError, "set GOOGLE_APPLICATION_CREDENTIALS to the"),
        (
            "az://c/m",
            "no storage account configured.",
            RemoteDeniedError,
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_ST",
        ),
        (
            "s3://b/m",
            f"403 Forbidden <Key>{SECRET}</Key>",
            RemoteDeniedError,
            "may not use s3://b/m, or are not valid.",
        ),
        (
            "s3://b/m",
            "Generic S3 error: Failed to resolve region for bucket 'b'",
            RemoteUnreachableError,
            "in which region the bucket b is; check the name and the connection, or set AWS_REGION, and AWS_",
        ),
        (
            "s3://b/m",
            f"Server returned non-2xx status code: 503 Service Unavailable: {SECRET}",
            RemoteBusyError,
            "The store of s3://b/m has trouble of its own; run the command again later.",
        ),
        ("s3://b/m", "HTTP error: builder error", RemoteUnreachableError, "set AWS_ALLOW_HTTP=true"),
        (
            "s3://b/m",
            "HTTP error: error sending request",
            RemoteUnreachableError,
            "cannot be reached; check the connec",
        ),
        (
            "s3://b/m",
            f"Encountered corrupt file {SECRET}",
            CorruptMemoryError,
            "The memory in s3://b/m cannot be read:",
        ),
    ],
)
def test_faults_of_stores(url, said, error, sentence):
    fault = store_fault(ValueError(said), url)
    assert type(fault) is error
    assert sentence in fault.message
    assert SECRET not in fault.message
    assert fault.message.endswith(".")
