<?php

/** $body: file_get_contents('php://input'); $signature: $_SERVER['HTTP_X_SERVICE_SIGNATURE'] */
function isFromPombal(string $body, string $signature, string $secret): bool
{
    $expected = 'sha256=' . hash_hmac('sha256', $body, $secret);
    return hash_equals($expected, $signature);
}
