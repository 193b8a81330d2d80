/** The documents of `docs/` that the panel shows, in the order that a newcomer needs them. */
export const GUIDES = [
  'panel',
  'webhooks',
  'feed',
  'errors',
  'limits',
  'whatsapp-situations',
  'alerts',
  'operations',
  'migrating',
  'backup',
  'security',
  'metrics',
  'contract',
] as const

export type Guide = (typeof GUIDES)[number]

export function findGuide(name: string): Guide | undefined {
  return GUIDES.find(guide => guide === name)
}
