/** What an API key may do under `/v1` (contract §6). The instance's own token may do everything. */
export const SCOPES = ['send', 'read', 'events', 'webhooks', 'media'] as const
export type Scope = (typeof SCOPES)[number]

/** How many keys an instance may have, including expired ones. */
export const MAX_API_KEYS = 50

/** The roles of people, from the most rights to the fewest. Operators and viewers may be limited to named instances. */
export const ROLES = ['owner', 'operator', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** Whether `role` includes what `needed` may do. */
export function includesRole(role: Role, needed: Role): boolean {
  const rank = ROLES.indexOf(role)
  return rank >= 0 && rank <= ROLES.indexOf(needed)
}

/** How many instances one account can be limited to. */
export const MAX_ACCOUNT_INSTANCES = 1_000
export const MAX_ACCOUNTS = 1_000

/** Two accounts may not have names with the same key. */
export function accountNameKey(name: string): string {
  return name.normalize('NFKC').trim().toLowerCase()
}
