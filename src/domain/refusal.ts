/**
 * The catalogue of refusals: code → HTTP status and default message. Codes are stable (contract §1); docs/errors.md
 * lists each of them.
 */
export const REFUSALS = {
  invalid_token: [401, 'The token is missing or unknown: send "Authorization: Bearer <token>".'],
  invalid_admin_key: [401, 'The admin key is missing or wrong: send "Authorization: Bearer <ADMIN_KEY>".'],
  forbidden: [403, 'This key or account may not make this call.'],
  instance_not_found: [404, 'There is no such instance.'],
  message_not_found: [404, 'There is no such message.'],
  command_not_found: [404, 'There is no such command.'],
  group_not_found: [404, 'The linked number is not a member of this group, or the group is not known yet.'],
  quote_not_found: [
    400,
    'There is no such message in this chat to quote. If it is still queued, name its ID in Pombal.',
  ],
  chat_not_writable: [
    409,
    "Pombal cannot write to an assistant or to WhatsApp's own account: these messages can only be read.",
  ],
  not_own_message: [409, 'Only a message that the instance sent can be edited or deleted.'],
  not_incoming_message: [409, 'Only a received message can be marked as read.'],
  not_editable: [409, 'Only a text that was not deleted can be edited.'],
  edit_window_closed: [409, 'The message was sent more than 15 minutes ago, so WhatsApp does not let it be edited.'],
  media_not_found: [404, 'There is no such file.'],
  event_not_found: [404, 'There is no such event.'],
  account_not_found: [404, 'There is no such account.'],
  invitation_not_found: [404, 'The link was used, has expired, or never existed: ask for a new one.'],
  link_not_found: [404, 'The link was used, revoked, has expired, or never existed: ask for a new one.'],
  link_in_use: [
    409,
    'The link is in use in another browser, or this one accepts no cookies: continue there, or ask for a new link.',
  ],
  already_linked: [409, 'A number is linked to this instance: unlink it first.'],
  pairing_codes_spent: [409, 'The link has shown 3 pairing codes: scan the QR code, or ask for a new link.'],
  passkey_not_requested: [
    409,
    'WhatsApp does not ask for this now. The field `passkey` of the connection shows what it asks for.',
  ],
  passkey_expired: [409, 'The time for this answer is over: connect again for a new code.'],
  invalid_session: [400, 'The files are not a session that can be used.'],
  number_linked_here: [409, 'The number is linked to another instance: delete that instance first.'],
  session_exported: [
    409,
    'The session was exported: if no other program uses it any more, repeat this with "confirmExported": true.',
  ],
  proxy_unreachable: [422, 'The proxy does not answer: check its address and that it runs.'],
  proxy_login_refused: [422, 'The proxy refuses the user name or the password.'],
  proxy_without_whatsapp: [422, 'The proxy answers, but WhatsApp cannot be reached through it.'],
  sandbox_without_proxy: [409, 'A sandbox instance connects to no other server, so it has no proxy.'],
  too_many_links: [409, 'The instance has 10 open links: revoke one first.'],
  key_not_found: [404, 'The instance has no such key.'],
  endpoint_not_found: [404, 'There is no such endpoint.'],
  delivery_not_found: [404, 'There is no such delivery.'],
  alert_target_not_found: [404, 'There is no such alert target.'],
  not_found: [404, 'There is nothing at this address.'],
  method_not_allowed: [405, 'This address does not support this method: "Allow" lists those that it supports.'],
  invalid_phone_number: [
    400,
    '"to" must be a number of 7 to 15 digits with its country code, a group ending in @g.us, or a LID ending in @lid.',
  ],
  invalid_request: [400, 'The request is invalid.'],
  media_gone: [410, 'The file was erased: upload it again.'],
  media_too_large: [413, 'The file is too large for its type.'],
  media_quota_exceeded: [413, "The instance's files would exceed the quota: erase some, or wait until some expire."],
  payload_too_large: [413, 'The body is larger than this call allows.'],
  range_not_satisfiable: [416, 'The range is beyond the end of the file: "Content-Range" has its size.'],
  request_timeout: [408, 'The request took too long to arrive: send it again.'],
  headers_too_large: [431, 'The headers are too large: at most 16 KiB.'],
  unsupported_media_type: [415, 'Send the body as "Content-Type: application/json".'],
  instance_not_connected: [422, 'The instance is not connected to WhatsApp: link it first.'],
  cursor_expired: [
    410,
    'Events after this cursor were erased, or it belongs to another feed: begin without a cursor, and skip events that you have handled.',
  ],
  idempotency_key_reused: [422, 'This X-Idempotency-Key was used with another body: use a new key for each message.'],
  webhook_not_configured: [409, 'No endpoint receives events of this kind: set a webhook URL, or change a filter.'],
  media_unsupported: [422, 'WhatsApp does not show a file of this type in this form: send it as a document.'],
  media_in_use: [409, 'A queued message contains the file: wait until it is sent or has failed.'],
  media_pending: [409, 'The file is still being fetched: wait for the Retry-After time.'],
  media_not_configured: [409, 'This service stores no files: set MEDIA_URL.'],
  account_exists: [409, 'An account with this name exists: choose another name.'],
  last_owner: [409, 'The last owner cannot be removed or limited: invite another owner first.'],
  too_many_accounts: [409, 'There are 1,000 accounts: remove one first.'],
  too_many_keys: [409, 'The instance has 50 keys: revoke one first.'],
  too_many_alert_targets: [409, 'There are 20 alert targets: remove one first.'],
  oidc_not_configured: [409, 'People cannot sign in with a provider here: set OIDC_ISSUER.'],
  oidc_wrong_address: [409, 'To sign in with the provider, open the panel at PUBLIC_URL.'],
  oidc_attempt_ended: [
    400,
    'This sign-in did not begin in this browser, was used, or took more than 10 minutes: begin again.',
  ],
  oidc_denied: [403, 'The provider reports that the sign-in was cancelled or not allowed.'],
  oidc_failed: [
    403,
    "The provider's answer is not valid: begin again. The log contains the reason under the request ID.",
  ],
  oidc_email_unverified: [
    403,
    'The provider has not verified your e-mail address: verify it there, or ask an owner for an invitation link.',
  ],
  oidc_unknown_account: [403, 'No account has your e-mail address as its name: ask an owner for an invitation.'],
  oidc_other_login: [
    403,
    'The account with your e-mail address has a password or another login: ask an owner for a new link, and sign in from it.',
  ],
  oidc_login_taken: [
    409,
    'This login of the provider belongs to another account: sign in at the provider as somebody else.',
  ],
  oidc_unreachable: [502, 'The sign-in provider does not answer as it should: try again, or sign in with a password.'],
  cross_site_request: [403, 'The session is accepted only in requests from this site.'],
  delivery_pending: [409, 'A delivery of the event has not ended: wait until it is delivered or exhausted.'],
  too_many_redeliveries: [409, 'The endpoint has 100 finished deliveries of this event: read the event instead.'],
  delivery_not_waiting: [
    409,
    'The delivery is not waiting for a retry: it has ended, is due, or has not been attempted yet.',
  ],
  too_many_endpoints: [409, 'The instance has ten endpoints: delete one first.'],
  too_many_operator_endpoints: [409, 'There are ten operator endpoints: delete one first.'],
  not_a_sandbox: [409, 'Only a sandbox instance has simulated contacts.'],
  sandbox_disabled: [409, 'Sandbox instances are disabled: set SANDBOX=on.'],
  rate_limit_exceeded: [429, 'Too many requests: wait for the Retry-After time.'],
  too_many_transfers: [429, 'Too many files are being transferred: wait for the Retry-After time.'],
  lookup_budget_spent: [
    429,
    'The instance has checked as many unknown numbers today as it may: wait for the Retry-After time.',
  ],
  retry_too_soon: [429, 'The delivery was retried less than 10 seconds ago: wait for the Retry-After time.'],
  too_many_readers: [429, 'The instance has 5 open streams or polls of its events: close one of them.'],
  too_many_attempts: [429, 'Too many wrong keys: wait for the Retry-After time.'],
  internal_error: [500, 'Internal error: the log contains the details under the request ID.'],
  service_unavailable: [
    503,
    'Not available right now: repeat the call, with the same X-Idempotency-Key, after the Retry-After time.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type RefusalCode = keyof typeof REFUSALS

export interface RefusalDetail {
  /** JSON pointer or field name. */
  field: string
  message: string
}

/** An expected error that is answered to the caller; not a bug. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly details: readonly RefusalDetail[] | undefined
  /** Whole seconds for `Retry-After`. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: RefusalCode,
    message?: string,
    more: { details?: RefusalDetail[]; retryAfterSeconds?: number } = {},
  ) {
    super(message ?? REFUSALS[code][1])
    this.code = code
    this.details = more.details
    this.retryAfterSeconds = more.retryAfterSeconds
  }

  get status(): number {
    return REFUSALS[this.code][0]
  }
}
