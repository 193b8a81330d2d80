/** What an API key may do under `/v1` (contract §6). The instance's own token may do everything. */
export const SCOPES = ['send', 'read', 'events', 'webhooks', 'media'] as const
export type Scope = (typeof SCOPES)[number]

/** Keys of one instance, including expired ones. */
export const MAX_API_KEYS = 50
