import { randomBytes } from 'node:crypto'

export type InstanceId = string
export type MessageId = string
export type EventId = string

/** Crockford's base 32 in lower case: digits sort before letters, and no letter looks like a digit. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARACTERS = 10
const RANDOM_CHARACTERS = 16
const INSTANCE_CHARACTERS = 12

function randomCharacters(count: number): string {
  let text = ''
  for (const byte of randomBytes(count)) text += ALPHABET[byte & 31]
  return text
}

/** 48 bits of milliseconds and 80 random bits (the layout of a ULID): sorts by time, and two never meet. */
function timeOrderedId(now: number): string {
  let time = ''
  for (let rest = now, left = TIME_CHARACTERS; left > 0; left -= 1, rest = Math.floor(rest / 32)) {
    time = ALPHABET[rest % 32] + time
  }
  return time + randomCharacters(RANDOM_CHARACTERS)
}

/** `inst_` and 12 characters (decisions §6). */
export function newInstanceId(): InstanceId {
  return `inst_${randomCharacters(INSTANCE_CHARACTERS)}`
}

export function newMessageId(now: number): MessageId {
  return `msg_${timeOrderedId(now)}`
}

export function newEventId(now: number): EventId {
  return `evt_${timeOrderedId(now)}`
}

const WHATSAPP_ID_BYTES = 9

/** An id as WhatsApp Web makes them: `3EB0` and 18 upper-case hexadecimal digits. */
export function newWhatsappId(): string {
  return `3EB0${randomBytes(WHATSAPP_ID_BYTES).toString('hex').toUpperCase()}`
}
