/** The digits of a phone number with its country code, without a plus sign. */
export type PhoneNumber = string

export type Recipient = { kind: 'number'; number: PhoneNumber } | { kind: 'group'; group: string }

const NUMBER = /^[1-9][0-9]{6,14}$/
const GROUP = /^[0-9]+(-[0-9]+)?@g\.us$/
/** Longer than any group ID that WhatsApp assigns (18 digits, or number-timestamp). */
const MAX_GROUP_LENGTH = 64

/** Null unless `to` is 7–15 ASCII digits starting 1–9, or a group JID `digits[-digits]@g.us` (contract §1). */
export function parseRecipient(to: string): Recipient | null {
  if (NUMBER.test(to)) return { kind: 'number', number: to }
  if (to.length <= MAX_GROUP_LENGTH && GROUP.test(to)) return { kind: 'group', group: to }
  return null
}
