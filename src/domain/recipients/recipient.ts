/** The digits of a phone number with its country code, without a plus sign. */
export type PhoneNumber = string

export type Recipient =
  | { kind: 'number'; number: PhoneNumber }
  | { kind: 'group'; group: string }
  /** A person whose number may be unknown. */
  | { kind: 'lid'; lid: string }

const NUMBER = /^[1-9][0-9]{6,14}$/
const GROUP = /^[0-9]+(-[0-9]+)?@g\.us$/
const LID = /^[1-9][0-9]{4,19}@lid$/
/** Longer than any group ID that WhatsApp assigns (18 digits, or number-timestamp). */
const MAX_GROUP_LENGTH = 64
/** Short numbers, such as `0`, WhatsApp's own account, and `digits@bot`, an assistant. */
const OTHER_CHAT = /^([0-9]{1,6}|[0-9]{1,20}@bot)$/
/** A number with a server, and possibly a device, as libraries for WhatsApp write it. */
const NUMBER_JID = /^(\d+)(?::\d+)?@(?:s\.whatsapp\.net|c\.us)$/
/** Characters that people write between the digits of a number. */
const PUNCTUATION = /[\s().\-/\u2010-\u2015\u200e\u202a\u202c\u2060\ufeff]/g
const MAX_WRITTEN_LENGTH = 64

/** Null unless `to` is 7–15 ASCII digits starting 1–9, a group JID `digits[-digits]@g.us` or a LID `digits@lid` (contract §1). */
export function parseRecipient(to: string): Recipient | null {
  if (NUMBER.test(to)) return { kind: 'number', number: to }
  if (to.length <= MAX_GROUP_LENGTH && GROUP.test(to)) return { kind: 'group', group: to }
  return LID.test(to) ? { kind: 'lid', lid: to } : null
}

/** The name of a chat or person if it is a number, else null. */
export function numberIn(name: string): PhoneNumber | null {
  return NUMBER.test(name) ? name : null
}

/** Whether stored messages may have this chat. Nobody can write to some of these chats. */
export function isChat(chat: string): boolean {
  return parseRecipient(chat) !== null || OTHER_CHAT.test(chat)
}

/** The recipient that `to` probably means, such as `5511987654321` for `+55 (11) 98765-4321`. Null if it is not obvious. */
export function correctedRecipient(to: string): string | null {
  if (to.length > MAX_WRITTEN_LENGTH) return null
  const written = to.trim().toLowerCase()
  const [, user] = NUMBER_JID.exec(written) ?? []
  const digits = (user ?? written.replace(/^whatsapp:/, '').replaceAll(PUNCTUATION, '')).replace(/^(\+|00)/, '')
  const corrected = user === undefined && written.includes('@') ? written.replace(/:\d+@lid$/, '@lid') : digits
  return corrected !== to && parseRecipient(corrected) ? corrected : null
}

/** Brazil, Mexico, Argentina: the same number may be written with or without a digit after the country or area code. */
const OPTIONAL_DIGITS = [
  { long: /^(55\d\d)9(\d{8})$/, short: /^(55\d\d)(\d{8})$/, digit: '9' },
  { long: /^(52)1(\d{10})$/, short: /^(52)(\d{10})$/, digit: '1' },
  { long: /^(54)9(\d{10})$/, short: /^(54)(\d{10})$/, digit: '9' },
] as const

/** The number without the optional digit. Equal for all spellings of a number, and for a few pairs of different numbers. */
export function shortSpelling(number: string): string {
  for (const { long } of OPTIONAL_DIGITS) if (long.test(number)) return number.replace(long, '$1$2')
  return number
}

/** The other spelling of the number, if it has one. It may also be the number of somebody else. */
export function otherSpelling(number: string): string | null {
  const short = shortSpelling(number)
  if (short !== number) return short
  for (const { short: pattern, digit } of OPTIONAL_DIGITS) {
    const [, before, after] = pattern.exec(number) ?? []
    if (before !== undefined && after !== undefined) return before + digit + after
  }
  return null
}

/**
 * The numbers and the LID that a person may write from. The last one is a number, if one is known.
 * @param to a number or a LID, as the caller wrote it
 * @param address WhatsApp's answer to the look-up: null if the person is not on WhatsApp, undefined if there was no look-up
 */
export function namesOf(to: string, address: string | null | undefined): string[] {
  const name = address === undefined ? otherSpelling(to) : (address?.replace(/@s\.whatsapp\.net$/, '') ?? null)
  if (name === null || name === to) return [to]
  return name.endsWith('@lid') ? [name, to] : [to, name]
}
