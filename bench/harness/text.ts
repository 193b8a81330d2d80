import type { Target } from '../processes/load.ts'

export const TEXT = 'Your order 4711 is on its way and should be with you tomorrow 🚚'

/** The call that sends the text through the instance with this token. */
export function textRequest(token: string, to: string): Target['requests'][number] {
  return { path: '/v1/messages/text', token, body: { to, text: TEXT } }
}

/** The numbers of simulated contacts, at most 30,000. */
export function contactNumbers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `55119876${60_010 + index}`)
}
