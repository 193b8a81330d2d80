import type { Words } from '../../i18n/en.ts'

/** The meaning of an unsuccessful status, and what to do. Undefined for a success or without a status. */
export function statusText(status: number | null, { tools: { statuses } }: Words): string | undefined {
  if (status === null || (status >= 200 && status < 300)) return undefined
  if (status < 400) return statuses.redirect
  if (status === 401 || status === 403) return statuses.unauthorized
  if (status === 404 || status === 405 || status === 410) return statuses.notFound
  if (status === 413) return statuses.tooLarge
  if (status === 429) return statuses.tooMany
  return status < 500 ? statuses.client : statuses.server
}
