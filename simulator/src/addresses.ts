import { createHash } from 'node:crypto'

/** The user that a JID names. Every user has one phone number and one LID. */
export interface Address {
  /** Phone number, digits only. */
  number: string
  /** 0 is the phone itself. */
  device: number
  lid: boolean
}

const NUMBER = /^[1-9]\d{4,14}$/
const GROUP = /^\d+(-\d+)?@g\.us$/
const ASSISTANT = /^\d{1,15}@bot$/
/** Longer than any that WhatsApp assigns. */
const MAX_GROUP_LENGTH = 64
const USER_JID = /^(\d{1,15})(?:_\d{1,3})?(?::(\d{1,3}))?@(s\.whatsapp\.net|c\.us|lid)$/
const LID_DIGITS = 15
const LARGEST_LID = 10 ** LID_DIGITS - 1
/** No country has this code, so no simulated phone has a real person's number. */
const SIMULATED_PREFIX = '888'
const SIMULATED_DIGITS = 11

export function isNumber(text: unknown): text is string {
  return typeof text === 'string' && NUMBER.test(text)
}

/** True for the form of the numbers that are derived from account keys. */
export function isDerivedNumber(number: string): boolean {
  return number.length === SIMULATED_PREFIX.length + SIMULATED_DIGITS && number.startsWith(SIMULATED_PREFIX)
}

/** Where people post their status. */
export const STATUS = 'status@broadcast'

export function isGroup(text: unknown): text is string {
  return typeof text === 'string' && text.length <= MAX_GROUP_LENGTH && GROUP.test(text)
}

/** The LID is 999999999999999 minus the number. It never equals the number, and the number can be computed from it. */
export function lidOf(number: string): string {
  return (LARGEST_LID - Number(number)).toString().padStart(LID_DIGITS, '0')
}

/** True for the address of an assistant, such as Meta AI. */
export function isAssistant(text: unknown): text is string {
  return typeof text === 'string' && ASSISTANT.test(text)
}

function numberOfLid(lid: string): string {
  return (LARGEST_LID - Number(lid)).toString()
}

export function parseAddress(jid: string | undefined): Address | null {
  const parts = USER_JID.exec(jid ?? '')
  if (!parts) return null
  const lid = parts[3] === 'lid'
  const number = lid ? numberOfLid(parts[1]!) : parts[1]!
  return isNumber(number) ? { number, device: Number(parts[2] ?? 0), lid } : null
}

export function pnJid(number: string, device = 0): string {
  return `${number}${device === 0 ? '' : `:${device}`}@s.whatsapp.net`
}

export function lidJid(number: string, device = 0): string {
  return `${lidOf(number)}${device === 0 ? '' : `:${device}`}@lid`
}

/** The phone number for an account key: the key itself if it is a number, otherwise one derived from its digest. */
export function numberOfKey(key: string): string {
  if (isNumber(key)) return key
  return SIMULATED_PREFIX + digestDigits(key, SIMULATED_DIGITS)
}

export function digestDigits(text: string, digits: number): string {
  const digest = createHash('sha256').update(text).digest().readBigUInt64BE()
  return (digest % 10n ** BigInt(digits)).toString().padStart(digits, '0')
}
