<?php

/** $body: file_get_contents('php://input') */
function isFromPombal(string $body, array $server, string $secret): bool
{
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $signed = "{$server['HTTP_WEBHOOK_ID']}.{$server['HTTP_WEBHOOK_TIMESTAMP']}.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    // For 24 hours after a new secret was created, there is also a signature with each former secret.
    foreach (explode(' ', $server['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            // Each attempt has a new timestamp, so an old one means that somebody posts a recorded request again.
            return abs(time() - (int) $server['HTTP_WEBHOOK_TIMESTAMP']) <= 300;
        }
    }
    return false;
}
