import type { RefusalCode } from '../../api/types.ts'

export const problems = {
  unreachable: 'The service does not answer. Is it running? This page retries automatically.',
  /** The request was a change, not a read. */
  unanswered:
    'The service did not answer, so the change may or may not have been made. It is not retried automatically. Once the service answers, check, and repeat the change if needed.',
  internal_error: 'Something went wrong in Pombal. Try again; the log has the details.',
  /** The answer came from a reverse proxy, not from the service. */
  too_large_for_proxy:
    'A proxy between the browser and Pombal refuses a file of this size. Raise the limit in the settings of the proxy, or send a smaller file.',
  refused_by_proxy: (status: number) =>
    `Something between the browser and Pombal, such as a proxy, answered ${status}. Check its settings and its log.`,
  service_unavailable: 'The service is busy or restarting. Try again in a moment.',
  invalid_admin_key: 'Your session has ended. Sign in again.',
  instance_not_found: 'This instance no longer exists.',
  message_not_found: 'There is no such message.',
  event_not_found: 'There is no such event.',
  invalid_phone_number:
    'The recipient must be a number with its country code (7–15 digits), a LID ending in @lid, or a group ending in @g.us.',
  instance_not_connected: 'The instance is not connected to WhatsApp. Link it first, or wait until it is back.',
  webhook_not_configured: 'No endpoint receives events of this kind. Set a webhook URL, or change a filter.',
  endpoint_not_found: 'This endpoint no longer exists.',
  delivery_not_found: 'This delivery no longer exists.',
  delivery_not_waiting: 'This delivery does not wait for a retry. It has ended, or its next attempt is due already.',
  too_many_endpoints: 'The instance has ten endpoints. Delete one first.',
  too_many_operator_endpoints: 'There are ten endpoints for all instances. Remove one first.',
  retry_too_soon: 'This delivery was retried less than 10 seconds ago.',
  too_many_redeliveries: 'This event has already been delivered or given up 100 times.',
  delivery_pending: 'This event is still on its way. It can be redelivered once it has been delivered or given up.',
  not_a_sandbox: 'Only a sandbox instance has simulated contacts.',
  sandbox_disabled: 'The sandbox is switched off here. Start Pombal with SANDBOX=on to use it.',
  cross_site_request: 'The browser reports that this request came from another site. Reload the page.',
  too_many_attempts: (seconds: number) => `Too many failed attempts. Wait ${seconds} s.`,
  rate_limit_exceeded: (seconds: number) => `Too many calls. Wait ${seconds} s.`,
  /** In English the service's own message is shown for other refusals and for invalid fields. */
  refusals: {} as Partial<Record<RefusalCode, string>>,
  fields: { oldPassword: 'The old password is wrong.' } as Partial<Record<string, string>>,
  /** Like `fields`, for one call (`ApiError.subject`). The field `''` is for an error that concerns no single field. */
  calls: {} as Partial<Record<string, Partial<Record<string, string>>>>,
  requestId: (id: string) => `Request ID for the log: ${id}`,
}
