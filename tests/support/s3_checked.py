#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""s3_checked.py PORT: moto's S3 on loopback with a bucket named "bucket" and one user; every later request must be signed rightly by
him. Prints his key id and secret on one line when it is ready."""
import json
import os
import sys
from urllib.parse import quote, unquote

import boto3
import requests
from moto.iam.access_control import IAMRequestBase
from moto.server import ThreadedMotoServer

port = int(sys.argv[1])
base = f"http://127.0.0.1:{port}"
out = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(1, 2)  # it tells of every request
# A query is signed with every character of its values encoded. moto has decoded some by then, and refuses what AWS takes.
plain_request = IAMRequestBase._create_aws_request


def canonical_request(self):
    request = plain_request(self)
    path, mark, query = request.url.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&")]
    request.url = path + mark + "&".join(name + equals + quote(unquote(value), safe="-._~") for name, equals, value in pairs)
    return request


IAMRequestBase._create_aws_request = canonical_request
server = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
server.start()


def client(service):
    return boto3.client(service, endpoint_url=base, region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


client("s3").create_bucket(Bucket="bucket")
people = client("iam")
people.create_user(UserName="kiln")
key = people.create_access_key(UserName="kiln")["AccessKey"]
people.put_user_policy(UserName="kiln", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
requests.post(base + "/moto-api/reset-auth", data="0", timeout=10)
print(key["AccessKeyId"], key["SecretAccessKey"], file=out, flush=True)
sys.stdin.read()
